"""An event as the world's reducers see it: a decoded wire with its place in the order."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.reducers.changes import Changes
from redkey.wire.ids import parse_stream


class Event(msgspec.Struct, gc=False):
    """One wire at its place; `structure` is the pinned document it names, when it names one.

    `changes` takes what the fold of the wire brings with it beside the world; `payer` is the account that paid for it.
    """

    wire: dict[str, Any]
    type: str
    wire_id: str
    payload: dict[str, Any]
    subject: str
    attempt: int
    sequence: int
    timestamp: int
    changes: Changes
    payer: str
    structure: dict[str, Any] | None = None


def event(
    wire: dict[str, Any],
    sequence: int,
    timestamp: int,
    changes: Changes,
    payer: str,
    structure: dict[str, Any] | None = None,
) -> Event:
    """The event that a wire is at a place in the order."""
    stream = parse_stream(wire["stream"]["stream_id"])
    return Event(
        wire,
        wire["type"],
        wire["wire_id"],
        wire["payload"],
        stream.subject,
        stream.attempt,
        sequence,
        timestamp,
        changes,
        payer,
        structure,
    )
