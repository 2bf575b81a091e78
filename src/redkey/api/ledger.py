"""The ledger as a whole: queries over all events of the workspace."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from redkey.api.call import Call
from redkey.api.events import EXAMPLE, EventPage, EventQuery, event_page
from redkey.api.stream import event_types, queue_name
from redkey.commands.decision import invalid
from redkey.errors import Finding
from redkey.http.route import READ, Route
from redkey.services.queries import Question
from redkey.wire.times import parse_time

Filter = Annotated[str, msgspec.Meta(max_length=64)]
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)?", re.ASCII)


class LedgerQuery(EventQuery, frozen=True, kw_only=True):
    """Which events: all conditions that are given must hold. `from` is included, `to` is not."""

    agent_id: Filter = ""
    task_id: Filter = ""
    claim_id: Filter = ""
    workflow_id: Filter = ""
    queue_id: Filter = ""
    from_: Filter = msgspec.field(default="", name="from")
    to: Filter = ""


async def query_ledger(call: Call) -> EventPage:
    """Events by type, by what they speak of, by time. A page may be short of its limit and still have a next."""
    asked: LedgerQuery = call.query
    question = Question(
        types=event_types(asked.type, "type"),
        task_id=asked.task_id,
        claim_id=asked.claim_id,
        agent_id=asked.agent_id,
        workflow_id=asked.workflow_id,
        queue_id=queue_name(asked.queue_id),
        since=_time(asked.from_, "from"),
        until=_time(asked.to, "to"),
    )
    return await event_page(call, question)


def _time(text: str, name: str) -> int:
    """Nanoseconds of a UTC time, or of the beginning of a day; 0 when none is given."""
    if not text:
        return 0
    try:
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        return parse_time(f"{text}T00:00:00Z" if len(text) == 10 else text)
    except (ValueError, OverflowError):
        text = "a time is as in 2026-05-07T18:15:00Z, or a day as in 2026-05-07"
        raise invalid([Finding("parameter_invalid", f"/{name}", text)]) from None


ROUTES = [
    Route(
        "GET",
        "/ledger/query",
        query_ledger,
        READ,
        query=LedgerQuery,
        reply=EventPage,
        summary="Query the ledger of the workspace.",
        reply_example={"items": [EXAMPLE], "next": "55291"},
    ),
]
