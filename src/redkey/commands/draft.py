"""Drafts: wires that a decision asks for, before they have an id, a time and a place in their stream."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Protocol

import msgspec

from redkey.ledger.ports import Content
from redkey.reducers.world import World
from redkey.wire.catalogue import VERSION
from redkey.wire.envelope import STATES, AnyWire, Wire
from redkey.wire.events import AnyPayload, ArtifactReady, WireStream
from redkey.wire.ids import crockford
from redkey.wire.times import write_time


class Ids(Protocol):
    """A source of fresh ids: 26 characters of ULID, unique and not guessable."""

    def ulid(self) -> str: ...


class Draft(msgspec.Struct, gc=False):
    """A wire that is not recorded yet. `wire_id` is set when the id is derived from the cause, so that a second copy is
    void."""

    payload: AnyPayload
    stream_id: str
    context_id: str
    sender: str = "system"
    causation_id: str = ""
    wire_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    parent_task_id: str = ""
    structure: dict[str, Any] | None = None
    # Content that the wire names and only the decision knows.
    contents: tuple[Content, ...] = ()
    # Recorded before the wire that answers the request, and not its cause.
    leads: bool = False
    # Its number in its stream; 0 for the next one.
    stream_seq: int = 0
    # Set only where the wire begins something; later wires take that of their task or run (`_correlation`).
    correlation_id: str = ""
    # False when the wire has no room for it.
    has_correlation: bool = True
    extensions: dict[str, Any] | None = None
    # True when the correlation and extensions are copied from an earlier wire.
    inherits: bool = False

    @property
    def type(self) -> str:
        return self.payload.TYPE


def derived_id(cause: str, event: str, subject: str) -> str:
    """The id of a wire that follows from a cause: every server derives the same one.

    `cause` ends in a ULID; its time part is kept, so that ids stay in time order.
    """
    digest = sha256(f"{cause}\n{event}\n{subject}".encode()).digest()
    return f"wire_{cause[-26:-16]}{crockford(digest[:10])}"


def lighter(draft: Draft) -> Draft | None:
    """Return the draft without one optional part when its wire is too large; None when no part can be dropped.

    Nothing is lost: an artifact's URI is also in its document, and the other parts are on an earlier wire.
    """
    payload = draft.payload
    if type(payload) is ArtifactReady and payload.uri is not None:
        return msgspec.structs.replace(draft, payload=msgspec.structs.replace(payload, uri=None))
    if draft.inherits and draft.extensions is not None:
        return msgspec.structs.replace(draft, extensions=None)
    if draft.has_correlation and (draft.inherits or not draft.correlation_id):
        return msgspec.structs.replace(draft, has_correlation=False)
    return None


def _correlation(world: World, draft: Draft) -> str:
    """The correlation of the task or run that the wire concerns; empty when it is the context."""
    kind, _, subject = draft.stream_id.partition(":")
    task = world.tasks.get(getattr(draft.payload, "task_id", None) or subject.partition(":")[0])
    if task is not None:
        return task.correlation_id
    run = world.runs.get(subject) if kind == "workflow" else None
    return run.workflow.correlation_id if run is not None else ""


def seal(world: World, draft: Draft, timestamp: int, ids: Ids) -> AnyWire:
    """Turn a draft into a wire at this place in the order."""
    payload = draft.payload
    correlation = (draft.correlation_id or _correlation(world, draft)) if draft.has_correlation else ""
    return Wire(
        extensions=draft.extensions,
        payload=payload,
        sender=draft.sender,
        state=STATES[payload.TYPE],
        stream=WireStream(
            causation_id=draft.causation_id or None,
            context_id=draft.context_id,
            correlation_id=correlation if correlation and correlation != draft.context_id else None,
            parent_task_id=draft.parent_task_id or None,
            reference_task_ids=draft.reference_task_ids or None,
            stream_id=draft.stream_id,
            stream_seq=draft.stream_seq or world.next_seq(draft.stream_id),
        ),
        ts=write_time(timestamp),
        type=payload.TYPE,
        wire=VERSION,
        wire_id=draft.wire_id or "wire_" + ids.ulid(),
    )
