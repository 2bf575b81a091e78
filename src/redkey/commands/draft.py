"""Drafts: what a decision wants on the ledger, before it has an id, a time and a place in its stream."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Protocol

import msgspec

from redkey.ledger.ports import Content
from redkey.reducers.world import World
from redkey.wire.catalogue import VERSION
from redkey.wire.envelope import STATES, AnyWire, Wire
from redkey.wire.events import AnyPayload, WireStream
from redkey.wire.ids import crockford
from redkey.wire.times import write_time


class Ids(Protocol):
    """Where fresh ids come from: 26 characters of ULID, unique and unguessable."""

    def ulid(self) -> str: ...


class Draft(msgspec.Struct, gc=False):
    """One wire to be. `wire_id` is set when the cause alone must give the id, so that a second copy is void."""

    payload: AnyPayload
    stream_id: str
    context_id: str
    sender: str = "system"
    causation_id: str = ""
    wire_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    parent_task_id: str = ""
    structure: dict[str, Any] | None = None
    # Content that the wire names and that only the decision knows.
    contents: tuple[Content, ...] = ()
    # Stands before what was asked for, and is not its cause.
    leads: bool = False

    @property
    def type(self) -> str:
        return self.payload.TYPE


def derived_id(cause: str, event: str, subject: str) -> str:
    """The id of a wire that follows from a cause: whoever derives it gives it the same one.

    `cause` ends in a ULID; its time is kept, so that ids stay in the order of time.
    """
    digest = sha256(f"{cause}\n{event}\n{subject}".encode()).digest()
    return f"wire_{cause[-26:-16]}{crockford(digest[:10])}"


def seal(world: World, draft: Draft, timestamp: int, ids: Ids) -> AnyWire:
    """The wire of a draft at this place in the order."""
    payload = draft.payload
    return Wire(
        payload=payload,
        sender=draft.sender,
        state=STATES[payload.TYPE],
        stream=WireStream(
            causation_id=draft.causation_id or None,
            context_id=draft.context_id,
            parent_task_id=draft.parent_task_id or None,
            reference_task_ids=draft.reference_task_ids or None,
            stream_id=draft.stream_id,
            stream_seq=world.next_seq(draft.stream_id),
        ),
        ts=write_time(timestamp),
        type=payload.TYPE,
        wire=VERSION,
        wire_id=draft.wire_id or "wire_" + ids.ulid(),
    )
