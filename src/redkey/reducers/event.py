"""An event as the world's reducers see it: a wire with its place in the order. The payload is passed separately."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.reducers.changes import Changes
from redkey.wire.envelope import AnyWire
from redkey.wire.events import WireStream
from redkey.wire.ids import parse_stream


class Event(msgspec.Struct, gc=False):
    """One wire with its place in the order; `structure` is the pinned document that it names, if any.

    The fold adds rows to write and offers to `changes`; `payer` is the account that paid for the wire.
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
    extensions: dict[str, Any] | None = None


def event(
    wire: AnyWire,
    sequence: int,
    timestamp: int,
    changes: Changes,
    payer: str,
    structure: dict[str, Any] | None = None,
) -> Event:
    """Build the event of a wire at a place in the order."""
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
        wire.extensions,
    )
