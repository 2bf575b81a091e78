"""The wire layer on one core: validate, canonicalise, reduce; the share is of bare orjson.loads in the same run."""

from __future__ import annotations

import orjson

from bench import rate, row
from bench.task_lives import LIFE, task_lives
from redkey.reducers.replay import Replayed
from redkey.wire.canonical import canonical
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.validate import read_wire, validate


def main(quick: bool) -> None:
    """Measure and print everything; `quick` runs a shorter measurement."""
    seconds = 0.2 if quick else 2.0
    wires = list(task_lives(20 if quick else 400))
    messages = [canonical(wire) for wire in wires]
    size = sum(map(len, messages)) / len(messages)
    print(f"  {len(wires)} wires of {len(LIFE)} types, {size:.0f} bytes on average")
    bare = rate(orjson.loads, messages, seconds)
    row("orjson.loads alone, the yardstick", bare, beside=bare)
    row("validate, decoded", rate(validate, wires, seconds), beside=bare, aim=200_000)
    row("validate, from bytes", rate(read_wire, messages, seconds), beside=bare, aim=200_000)
    row("canonicalise", rate(canonical, wires, seconds), beside=bare, aim=100_000)
    row("decode what is stored", rate(wire_of, messages, seconds), beside=bare)
    typed = list(map(wire_of, messages))
    row("reduce (task reducer)", rate(_fold, [typed], seconds) * len(wires), beside=bare, aim=150_000)


def _fold(wires: list[AnyWire]) -> None:
    state = Replayed()
    for wire in wires:
        state.apply(wire)
    if state.void:
        # Void wires would make the round measure something else.
        raise RuntimeError(f"{len(state.void)} wires are void, the first because of {state.void[0].reason}")
