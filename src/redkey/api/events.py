"""Events of the ledger, one by one and by what they speak of: `/events`, `/tasks/{id}/events`, and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import Listed, Page, sequence_after
from redkey.api.stream import EventStream, event_types, follow
from redkey.commands.decision import not_found
from redkey.http.event_stream import MEDIA_TYPE as EVENT_STREAM
from redkey.http.route import READ, Route
from redkey.readmodel.events import ShownEvent, show
from redkey.services.queries import Question, query
from redkey.services.subscriptions import Filter
from redkey.wire.decode import decode
from redkey.wire.ids import wire_id_of

EventPage = Listed[ShownEvent]
EXAMPLE = {
    "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    "type": "task.claimed",
    "sequence": 55291,
    "timestamp": "2026-05-07T18:15:00.000000001Z",
    "actor": {"type": "agent", "id": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"},
    "subject": {"type": "task", "id": "task_01JTMX9A2B3C4D5E6F7G8H9JKP"},
    "data": {
        "taskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP",
        "attempt": 1,
        "agentId": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN",
        "claimId": "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ",
        "leaseExpiresAt": "2026-05-07T18:25:00.000000001Z",
    },
}


class EventQuery(Page, frozen=True, kw_only=True):
    """Which events of a thing: types with commas between, in the order of the ledger or newest first."""

    type: Annotated[str, Meta(max_length=1024)] = ""
    order: Literal["asc", "desc"] = "asc"


async def get_event(call: Call) -> ShownEvent:
    """One event."""
    record = call.services.store.find(call.topic, wire_id_of(call.path["event_id"]))
    if record is None or not call.path["event_id"].startswith("evt_"):
        raise not_found("event")
    return show(decode(record.wire), record.sequence, record.timestamp)


async def task_events(call: Call) -> EventPage:
    """What happened to a task, with the attempts to claim it."""
    task_id = call.path["task_id"]
    if call.services.store.row(call.topic, "task", task_id) is None:
        raise not_found("task")
    return await _events_of(call, task_id=task_id)


async def claim_events(call: Call) -> EventPage:
    """What happened to a claim."""
    claim_id = call.path["claim_id"]
    if not claim_id.startswith("clm_") or not call.services.store.events(call.topic, claim_id, limit=1):
        raise not_found("claim")
    return await _events_of(call, claim_id=claim_id)


async def agent_events(call: Call) -> EventPage | EventStream:
    """What an agent did and what happened to it; as a live stream when text/event-stream is asked for."""
    agent_id = call.path["agent_id"]
    if call.services.store.row(call.topic, "agent", agent_id) is None:
        raise not_found("agent")
    if call.accepts(EVENT_STREAM.encode()):
        wanted = Filter(types=event_types(call.query.type, "type"), agent_id=agent_id)
        return follow(call, wanted, sequence_after(call.query) if call.query.after else None)
    return await _events_of(call, agent_id=agent_id)


async def _events_of(call: Call, *, task_id: str = "", claim_id: str = "", agent_id: str = "") -> EventPage:
    types = event_types(call.query.type, "type")
    return await event_page(call, Question(types=types, task_id=task_id, claim_id=claim_id, agent_id=agent_id))


async def event_page(call: Call, question: Question) -> EventPage:
    """The page of events that a call asks for."""
    asked: EventQuery = call.query
    store, cost = call.services.store, call.services.config.limits.query_records
    after = sequence_after(asked) if asked.after else None
    ordered = msgspec.structs.replace(question, newest_first=asked.order == "desc")
    found = await call.in_thread(lambda: query(store, call.topic, ordered, after, asked.limit, cost))
    return Listed(tuple(found.events), None if found.next is None else str(found.next))


def _route(path: str, handler: Callable[[Call], Any], summary: str, media: tuple[str, ...] = ()) -> Route:
    return Route(
        "GET",
        path,
        handler,
        READ,
        query=EventQuery,
        reply=EventPage,
        summary=summary,
        media=("application/json", *media),
        reply_example={"items": [EXAMPLE], "next": None},
    )


ROUTES = [
    Route("GET", "/events/{event_id}", get_event, READ, reply=ShownEvent, summary="One event.", reply_example=EXAMPLE),
    _route("/tasks/{task_id}/events", task_events, "What happened to a task, with the attempts to claim it."),
    _route("/claims/{claim_id}/events", claim_events, "What happened to a claim."),
    _route(
        "/agents/{agent_id}/events",
        agent_events,
        "What an agent did and what happened to it, such as claims it missed; live with Accept: text/event-stream.",
        (EVENT_STREAM,),
    ),
]
