"""The objects that wires of many types hold.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.wire.payload import WirePart


class Ref(WirePart, frozen=True, kw_only=True):
    """Content outside the ledger, by hash."""

    bytes: int
    sha256: str


class WireStream(WirePart, frozen=True, kw_only=True):
    """Where a wire stands: its stream and place, its context and its cause."""

    causation_id: str | None = None
    context_id: str
    correlation_id: str | None = None
    parent_task_id: str | None = None
    reference_task_ids: tuple[str, ...] | None = None
    stream_id: str
    stream_seq: int


class WireState(WirePart, frozen=True, kw_only=True):
    """The normalised lifecycle category of a task event."""

    category: str
    terminal: bool
