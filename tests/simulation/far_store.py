"""A real store in made-up time: one server's way to it is as across a network, and everything of it is real.

What goes wrong is drawn by the same `Network` as for the memory store, and time passes outside of real units only:
while a server waits in made-up time, no lock of the real store is held. So one seed gives one run, whichever store is
behind it, and two stores must come to the same records and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from redkey.errors import CommitInDoubt, StoreFailed, StoreFull, StoreMisused
from redkey.ledger import tail
from redkey.ledger.clock import LedgerClock
from redkey.ledger.ports import Clock, Doubt, SequencedStore
from redkey.readmodel.digest import stored_rows
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.postgres import PostgresStore
from redkey.stores.sqlite import SqliteStore
from tests.simulation.faults import Faults
from tests.simulation.server import Crash, SimNetwork

# Opens the store once more: each server has its own, on the same data.
Open = Callable[[Clock], SequencedStore]
_STORE = ""


def memory_stores() -> Open:
    """Stores in the memory of this process."""
    disk = MemoryDisk()
    return lambda clock: MemoryStore(clock, disk)


def sqlite_stores(directory: Path) -> Open:
    """Stores on one data directory."""
    return lambda clock: SqliteStore(directory, clock)


def postgres_stores(url: str) -> Open:
    """Stores on one database."""
    return lambda clock: PostgresStore(url, clock)


class _ExactClock(LedgerClock):
    """A ledger clock that gives the very moment in which it begins.

    A ledger clock gives no time twice, and counts the moment of its own beginning. When a store reads the end of a
    topic anew (after which failures, is its own affair), the next record is a nanosecond later than otherwise.
    """

    __slots__ = ()

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._time -= 1


@contextmanager
def exact_clocks() -> Iterator[None]:
    """Let records have the times that follow from the run alone, whatever a store keeps in memory."""
    tail.LedgerClock = _ExactClock  # type: ignore[misc]
    try:
        yield
    finally:
        tail.LedgerClock = LedgerClock  # type: ignore[misc]


class FarStore:
    """One server's way to a real store across a made-up network: the port `SequencedStore`, as far as it is used."""

    inline = False

    def __init__(self, store: SequencedStore, network: SimNetwork, faults: Faults) -> None:
        self._store, self._network, self._faults = store, network, faults
        self.engine = f"{store.engine} behind a made-up network"
        self._closed = False
        self._known: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._subscribers: list[Callable[[str, int], None]] = []
        network.stores.append(self)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        """Reads are those of the store."""
        self._check_open()
        return getattr(self._store, name)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._network.stores.remove(self)  # type: ignore[arg-type]
            self._network.unlock_all(self)
            self._store.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreMisused("the store is closed", code="store_closed")

    # Units.

    @contextmanager
    def write(self, topic: str, *, wait: bool = True) -> Iterator[Any]:
        network, weather, faults = self._network, self._network.weather, self._faults
        chance = network.random.random
        self._check_open()
        network.lock(topic, self, wait=wait)
        try:
            network.travel()
            self._check_open()
            if network.happens(weather.lost_begin):
                raise StoreFailed("the connection was lost before the unit began")
            name = network.new_unit()
            with self._store.write(topic) as unit:
                yield unit
                head = unit.head(topic)
                doubt = Doubt(topic, head.sequence, head.running_hash, name)
                if chance() < faults.commit_failed:
                    raise StoreFull
                if chance() < faults.crash_before_commit:
                    raise Crash(self)
                if network.happens(weather.lost_commit):
                    raise CommitInDoubt("the connection was lost before the commit arrived", doubt=doubt)
            network.committed.add(name)
            network.announce(topic, head.sequence, self)  # type: ignore[arg-type]
            if network.happens(weather.done_commit):
                raise CommitInDoubt("the connection was lost after the commit", doubt=doubt)
        finally:
            network.unlock(topic, self)
        network.travel()
        if chance() < faults.crash_after_commit:
            raise Crash(self)

    @contextmanager
    def write_store(self, *, wait: bool = True) -> Iterator[Any]:
        self._check_open()
        self._network.lock(_STORE, self, wait=wait)
        try:
            with self._store.write_store() as unit:
                yield unit
        finally:
            self._network.unlock(_STORE, self)

    def create_topic(self, topic: str | None = None, *, fact: str = "", wait: bool = True) -> str:
        self._check_open()
        return self._store.create_topic(topic, fact=fact)

    def resolve(self, doubt: Doubt) -> Literal["committed", "failed"]:
        """The made-up network knows how it ended; the ledger of the store must say the same."""
        self._check_open()
        network = self._network
        network.lock(doubt.topic, self, wait=True)
        try:
            network.travel()
            if network.happens(network.weather.lost_resolve):
                raise StoreFailed("the connection was lost")
            self._check_open()
            committed = doubt.unit in network.committed
            found = [one.running_hash for one in self._store.read(doubt.topic, doubt.sequence - 1, 1)]
            assert not committed or found[:1] == [doubt.running_hash] or not doubt.sequence
            return "committed" if committed else "failed"
        finally:
            network.unlock(doubt.topic, self)

    # What others commit.

    def known_head(self, topic: str) -> int:
        self._check_open()
        if topic not in self._known:
            self._known[topic] = self._store.head(topic).sequence
        return self._known[topic]

    def look(self) -> None:
        self._check_open()

    def subscribe(self, heard: Callable[[str, int], None]) -> Callable[[], None]:
        self._subscribers.append(heard)
        return lambda: self._subscribers.remove(heard)

    def learn(self, topic: str, head: int, *, own: bool = False) -> None:
        """A commit was announced."""
        if topic not in self._known:
            return
        self._known[topic] = max(self._known[topic], head)
        if not own and head > self._told.get(topic, 0):
            self._told[topic] = head
            for heard in tuple(self._subscribers):
                heard(topic, head)


def contents(store: SequencedStore) -> dict[str, Any]:
    """Everything of a store that must not depend on its kind, by topic."""
    return {topic: _contents(store, topic) for topic in store.topics()}


def _contents(store: SequencedStore, topic: str) -> dict[str, Any]:
    records: list[Any] = []
    while page := store.read(topic, len(records)):
        records += page
    rows = [(row.kind, row.key, bytes(row.body), row.listed, row.position) for row in stored_rows(store, topic)]
    return {
        "records": [
            (one.sequence, one.timestamp, one.payer, bytes(one.running_hash), bytes(one.wire)) for one in records
        ],
        "rows": rows,
        "checkpoints": [(size, bytes(note)) for size, note in store.checkpoints(topic, 1_000_000)],
        "counters": list(store.counters(topic)),
        "subjects": {
            subject: [one.sequence for one in store.events(topic, subject)]
            for subject in sorted({row[1] for row in rows if row[0] in ("task", "agent")})
        },
    }
