"""Makers of the stores under test, and failures of the conformance suite that say what differed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from redkey.ledger.clock import LedgerClock
from redkey.ledger.ports import Clock, SequencedStore
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.memory.network import Network, NetworkStore, Weather
from redkey.stores.postgres import PostgresStore
from redkey.stores.sqlite import SqliteStore


class ClosingMaker:
    """Opens stores, and closes them all when the test is over."""

    def __init__(self, make: Callable[[Clock], SequencedStore]) -> None:
        self._make = make
        self._opened: list[SequencedStore] = []

    def open(self, clock: Clock | None = None) -> SequencedStore:
        store = self._make(clock or SystemClock())
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture
def sqlite_maker(tmp_path: Path) -> Iterator[ClosingMaker]:
    maker = ClosingMaker(lambda clock: SqliteStore(tmp_path / "data", clock))
    yield maker
    maker.close()


@pytest.fixture
def network_maker() -> Iterator[ClosingMaker]:
    network = Network(SystemClock(), Random(5), weather=Weather(delay_seconds=0.0005, notice_seconds=0.005))

    def make(clock: Clock) -> SequencedStore:
        # The database provides the time, so a manual clock is set there.
        network.clock = LedgerClock(clock)
        return NetworkStore(network)

    maker = ClosingMaker(make)
    yield maker
    maker.close()


@pytest.fixture
def memory_maker() -> Iterator[ClosingMaker]:
    disk = MemoryDisk()
    maker = ClosingMaker(lambda clock: MemoryStore(clock, disk))
    yield maker
    maker.close()


@pytest.fixture
def postgres_maker(postgres_url: str) -> Iterator[ClosingMaker]:
    set_by_hand: list[Clock] = []

    def make(clock: Clock) -> SequencedStore:
        # Time is the database's, unless a test sets it: then for all stores that are opened from there on.
        if not isinstance(clock, SystemClock):
            set_by_hand.append(clock)
        return PostgresStore(postgres_url, set_by_hand[-1] if set_by_hand else None)

    maker = ClosingMaker(make)
    yield maker
    maker.close()
