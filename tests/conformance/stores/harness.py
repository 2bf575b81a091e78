"""How the conformance suite gets at a store: a maker that opens it, a clock that it sets, entries to append."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from redkey.ledger.ports import Clock, Entry, SequencedStore, Unit
from redkey.ledger.record import NANOSECONDS, Record
from redkey.wire.canonical import canonical
from redkey.wire.ids import derived_ulid

NOON = 1_800_000_000 * NANOSECONDS


class ManualClock:
    """A clock that advances only when a test moves it."""

    def __init__(self, wall: int = NOON, monotonic: int = 5 * NANOSECONDS) -> None:
        self._wall, self._monotonic = wall, monotonic

    def wall(self) -> int:
        return self._wall

    def monotonic(self) -> int:
        return self._monotonic

    def pass_time(self, nanoseconds: int) -> None:
        """Time passes, and both clocks show it."""
        self._wall += nanoseconds
        self._monotonic += nanoseconds

    def step(self, nanoseconds: int) -> None:
        """Set the wall clock."""
        self._wall += nanoseconds


class Maker(Protocol):
    """What a store written later has to say: how one is opened on the data of this test, again and again.

    Every call opens another store, as another process would; all of them are closed when the test ends.
    """

    def open(self, clock: Clock | None = None) -> SequencedStore: ...


def entry(number: int, *subjects: str, size: int = 0) -> Entry:
    """The number-th wire: small, or canonical JSON of exactly `size` bytes."""
    wire_id = f"wire_{derived_ulid(1_778_000_000_000 + number, str(number))}"
    wire = canonical({"n": number, "wire_id": wire_id})
    if size:
        wire = canonical({"n": number, "pad": "x" * (size - len(wire) - 9), "wire_id": wire_id})
    return Entry(wire, wire_id, subjects)


def entries(first: int, count: int, *subjects: str) -> list[Entry]:
    return [entry(number, *subjects) for number in range(first, first + count)]


def new_topic(store: SequencedStore) -> str:
    return store.create_topic()


def append(store: SequencedStore, topic: str, count: int, *subjects: str) -> list[Record]:
    """One unit that appends `count` entries, numbered on from the head."""
    with store.write(topic) as unit:
        head = unit.head(topic).sequence
        return list(unit.append(topic, entries(head + 1, count, *subjects), head))


class Broken(Exception):
    """What a test raises inside a unit."""


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for what must come: notices of other stores may take a while."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.001)


def spoil(store: SequencedStore, topic: str, work: Callable[[Unit], object]) -> None:
    """Do the work in a unit, which then fails."""
    with store.write(topic) as unit:
        work(unit)
        raise Broken


@contextmanager
def opened(maker: Maker, clock: Clock | None = None) -> Iterator[SequencedStore]:
    """A store that is closed again inside the test."""
    store = maker.open(clock)
    try:
        yield store
    finally:
        store.close()
