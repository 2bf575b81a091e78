"""Drafts: what a decision wants on the ledger, before it has an id, a time and a place in its stream."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Protocol

import msgspec

from redkey.reducers.world import World
from redkey.wire.catalogue import catalogue
from redkey.wire.ids import crockford
from redkey.wire.times import write_time


class Ids(Protocol):
    """Where fresh ids come from: 26 characters of ULID, unique and unguessable."""

    def ulid(self) -> str: ...


class Draft(msgspec.Struct, gc=False):
    """One wire to be. `wire_id` is set when the cause alone must give the id, so that a second copy is void."""

    type: str
    stream_id: str
    payload: dict[str, Any]
    context_id: str
    sender: str = "system"
    causation_id: str = ""
    wire_id: str = ""
    stream: dict[str, Any] | None = None
    structure: dict[str, Any] | None = None


def derived_id(cause: str, event: str, subject: str) -> str:
    """The id of a wire that follows from a cause: whoever derives it gives it the same one.

    `cause` ends in a ULID; its time is kept, so that ids stay in the order of time.
    """
    digest = sha256(f"{cause}\n{event}\n{subject}".encode()).digest()
    return f"wire_{cause[-26:-16]}{crockford(digest[:10])}"


_STATES = {name: event.state for name, event in catalogue().items()}


def seal(world: World, draft: Draft, timestamp: int, ids: Ids) -> dict[str, Any]:
    """The wire of a draft at this place in the order."""
    stream: dict[str, Any] = {
        "stream_id": draft.stream_id,
        "stream_seq": world.next_seq(draft.stream_id),
        "context_id": draft.context_id,
    }
    if draft.causation_id:
        stream["causation_id"] = draft.causation_id
    if draft.stream is not None:
        stream.update(draft.stream)
    wire: dict[str, Any] = {
        "wire": "1.1",
        "wire_id": draft.wire_id or "wire_" + ids.ulid(),
        "type": draft.type,
        "sender": draft.sender,
        "ts": write_time(timestamp),
        "stream": stream,
        "payload": draft.payload,
    }
    state = _STATES[draft.type]
    if state is not None:
        wire["state"] = state
    return wire
