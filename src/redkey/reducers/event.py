"""An event as the world's reducers see it: a wire at its place in the order. Its payload is handed on beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.reducers.changes import Changes
from redkey.wire.envelope import AnyWire
from redkey.wire.events import WireStream
from redkey.wire.ids import parse_stream


class Event(msgspec.Struct, gc=False):
    """One wire at its place; `structure` is the pinned document it names, when it names one.

    `changes` takes what the fold of the wire brings with it beside the world; `payer` is the account that paid for it.
    """

    wire_id: str
    sender: str
    stream: WireStream
    subject: str
    attempt: int
    sequence: int
    timestamp: int
    changes: Changes
    payer: str
    structure: dict[str, Any] | None = None


def event(
    wire: AnyWire,
    sequence: int,
    timestamp: int,
    changes: Changes,
    payer: str,
    structure: dict[str, Any] | None = None,
) -> Event:
    """The event that a wire is at a place in the order."""
    place = parse_stream(wire.stream.stream_id)
    return Event(
        wire.wire_id,
        wire.sender,
        wire.stream,
        place.subject,
        place.attempt,
        sequence,
        timestamp,
        changes,
        payer,
        structure,
    )
