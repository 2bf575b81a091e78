"""A call of an A2A client, and what it gets back: tasks, events and their proofs as it asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.a2a.messages import LEDGER
from redkey.services.caller import Caller
from redkey.services.use_cases.a2a_tasks import Sighted, Told
from redkey.wire.a2a import A2ATask, shown_context

Json = dict[str, Any]

EXTENSIONS = (LEDGER,)


class Call(msgspec.Struct, frozen=True):
    """Who asks, and what came beside the request: headers, or the metadata of gRPC."""

    caller: Caller
    # The fresh caller for what a request needs done beside itself.
    beside: Caller
    tenant: str = ""
    idempotency_key: str = ""
    last_event_id: str = ""
    extensions: frozenset[str] = frozenset()


class Event(msgspec.Struct, frozen=True):
    """One object of a stream, and the id by which a client resumes after it."""

    id: str
    found: Json


def shown_task(call: Call, sighted: Sighted, history_length: int | None) -> Json:
    """A task with as much history as asked for, and with its place on the ledger for clients of the extension."""
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
    """An update of a task as an event of a stream."""
    found = told.found
    if LEDGER in call.extensions:
        ((name, body),) = found.items()
        proof = {LEDGER: _proof(call, told.position, told.sequence, told.event_id)}
        found = {name: body | {"metadata": proof}}
    return Event(told.position, found)


def first_event(call: Call, sighted: Sighted, skipped: int, history_length: int | None) -> Event:
    """The task as the first event of a stream; without an id when objects of the next record were sent before."""
    position = "" if skipped else str(sighted.sequence)
    return Event(position, {"task": shown_task(call, sighted, history_length)})


def _lineage(task: A2ATask) -> Mapping[str, str]:
    """The place of a task among others, in the words in which a message may name it."""
    parent = {"parentTaskId": task.parent_task_id} if task.parent_task_id else {}
    return {**parent, "correlationId": shown_context(task.correlation_id)}


def _proof(call: Call, position: str, sequence: int, event_id: str) -> Mapping[str, str]:
    """Where a stream resumes, where the ledger has it, and where its receipt is, which anybody can verify offline."""
    url = f"{call.caller.means.config.public_url}/events/{event_id}/receipt?format=proof"
    return {"position": position, "sequence": str(sequence), "eventId": event_id, "receiptUrl": url}
