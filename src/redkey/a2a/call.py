"""One call of an A2A client, and how tasks and events are rendered for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.services.caller import Caller
from redkey.services.use_cases.a2a_tasks import Sighted, Told
from redkey.wire.a2a import LEDGER, A2ATask, shown_context

Json = dict[str, Any]

EXTENSIONS = (LEDGER,)


class Call(msgspec.Struct, frozen=True):
    """The caller, and what its HTTP headers or gRPC metadata say about the request."""

    caller: Caller
    # A second caller, for commands that the request needs beside its own; it has no idempotency key.
    beside: Caller
    tenant: str = ""
    idempotency_key: str = ""
    last_event_id: str = ""
    extensions: frozenset[str] = frozenset()


class Event(msgspec.Struct, frozen=True):
    """One object of a stream, and the event id from which a client resumes."""

    id: str
    found: Json


def shown_task(call: Call, sighted: Sighted, history_length: int | None) -> Json:
    """Render a task with the requested history length; clients of the extension also get its place on the ledger."""
    shown = sighted.shown
    if history_length is not None and "history" in shown:
        kept = shown["history"][-history_length:] if history_length else []
        shown = {name: value for name, value in shown.items() if name != "history"}
        if kept:
            shown["history"] = kept
    if LEDGER in call.extensions:
        proof = _proof(call, str(sighted.sequence), sighted.sequence, sighted.event_id)
        shown = shown | {"metadata": {LEDGER: {**proof, **_lineage(sighted.task)}}}
    return shown


def shown_event(call: Call, told: Told) -> Event:
    """Render an update of a task as an event of a stream."""
    found = told.found
    if LEDGER in call.extensions:
        ((name, body),) = found.items()
        proof = _proof(call, told.position, told.sequence, told.event_id)
        found = {name: body | {"metadata": {LEDGER: {**proof, **_extensions(told.extensions)}}}}
    return Event(told.position, found)


def first_event(call: Call, sighted: Sighted, skipped: int, history_length: int | None) -> Event:
    """Render the task as the first event of a stream.

    It has no event id when the client already has some objects of the next record: that position must stay.
    """
    position = "" if skipped else str(sighted.sequence)
    return Event(position, {"task": shown_task(call, sighted, history_length)})


def _lineage(task: A2ATask) -> Json:
    """Return parent, correlation and extensions of a task, under the names that a message may use for them."""
    parent = {"parentTaskId": task.parent_task_id} if task.parent_task_id else {}
    return {**parent, "correlationId": shown_context(task.correlation_id), **_extensions(task.extensions)}


def _extensions(extensions: Mapping[str, Any]) -> Json:
    return {"extensions": extensions} if extensions else {}


def _proof(call: Call, position: str, sequence: int, event_id: str) -> Mapping[str, str]:
    """Return position, sequence, event id and receipt URL; the receipt can be verified offline."""
    url = f"{call.caller.means.config.public_url}/events/{event_id}/receipt?format=proof"
    return {"position": position, "sequence": str(sequence), "eventId": event_id, "receiptUrl": url}
