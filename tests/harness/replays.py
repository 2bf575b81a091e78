"""Replay of wires that tests have as JSON: they are converted to structs first, as a reader of a ledger does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from redkey.reducers import replay as reducers
from redkey.reducers.stream import Attempt, Moment
from redkey.reducers.stream import apply as apply_wire
from redkey.wire.envelope import AnyWire, wire_from

Wire = dict[str, Any]


class Replayed(reducers.Replayed):
    """The state after some wires; `apply` folds another one."""

    def apply(self, wire: Wire | AnyWire) -> str | None:
        return super().apply(wire_from(wire) if isinstance(wire, dict) else wire)


def replay(wires: Iterable[Wire], *, places: int | None = None, outputs: Any = None) -> Replayed:
    """The state after all wires, or after the first `places` of them."""
    state = Replayed(outputs)
    for wire in islice(wires, places):
        state.apply(wire)
    return state


def replay_stream(wires: Iterable[Wire], stream_id: str, **options: Any) -> reducers.Replayed:
    """The state of one stream alone."""
    return reducers.replay_stream(map(wire_from, wires), stream_id, **options)


def apply(attempt: Attempt, wire: Wire, at: Moment | None = None) -> str | None:
    """Fold one wire of the attempt's own stream."""
    return apply_wire(attempt, wire_from(wire), at)
