"""The memory store behind a simulated network: servers on one database, with delays, lost connections and uncertain
commits.

It behaves like a database across a network: a unit locks its topic and runs on a writer thread, units of different
topics run in parallel, servers learn of each other's commits after a delay, and a commit may end without an answer.
The `Network` draws all failures from one seed and waits by calling the given function; a simulation passes one that
advances simulated time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Literal

import msgspec

from redkey.errors import CommitInDoubt, StoreFailed, StoreMisused, WriterBusy
from redkey.ledger.clock import LedgerClock
from redkey.ledger.ports import Clock, Doubt
from redkey.ledger.tail import Tails
from redkey.stores.memory.disk import MemoryDisk
from redkey.stores.memory.layer import Layer
from redkey.stores.memory.reader import MemoryReader
from redkey.stores.memory.store import MemoryStore
from redkey.stores.memory.unit import MemoryUnit

# How long a writer waits for the lock of a topic, and how often it checks.
_WAIT_SECONDS = 3.0
_LOOK_SECONDS = 0.002
# The lock key for units on the whole store.
_STORE = ""


class Weather(msgspec.Struct):
    """The failures of a network.

    Chances are per unit; seconds are upper limits of random durations.
    """

    delay_seconds: float = 0.0
    # A notice that takes long, for example after a lost connection.
    notice_seconds: float = 0.0
    lost_begin: float = 0.0
    # The connection is lost during the commit: the database has not received it, has done it, or does it later.
    lost_commit: float = 0.0
    done_commit: float = 0.0
    late_commit: float = 0.0
    late_seconds: float = 0.0
    lost_resolve: float = 0.0


class Network:
    """A database, its clock and locks, and the connections to it."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        disk: MemoryDisk | None = None,
        weather: Weather | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        later: Callable[[float, Callable[[], None]], object] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sleep` waits in a thread; `later` calls a function after a number of seconds."""
        self.disk, self.clock = disk or MemoryDisk(), LedgerClock(clock)
        self.weather, self.random = weather or Weather(), random
        self._sleep, self._later, self._now = sleep, later or _call_later, now
        self.stores: list[NetworkStore] = []
        # topic -> the store and the thread that hold its lock.
        self._owners: dict[str, tuple[object, int]] = {}
        self._guard = threading.Lock()
        # The committed units by name, to identify even a unit without records.
        self.committed: set[str] = set()
        self.last_units: dict[str, str] = {}
        self._units = 0

    def new_unit(self) -> str:
        """The name of the next unit."""
        with self._guard:
            self._units += 1
            return str(self._units)

    def happens(self, chance: float) -> bool:
        """Draw whether a failure happens."""
        return chance > 0 and self.random.random() < chance

    def travel(self) -> None:
        """Wait while a message travels."""
        if self.weather.delay_seconds:
            self._sleep(self.random.uniform(0, self.weather.delay_seconds))

    def lock(self, topic: str, store: object, *, wait: bool) -> None:
        """Take the lock of a topic; WriterBusy after the time limit."""
        deadline, holder = self._now() + _WAIT_SECONDS, (store, threading.get_ident())
        while True:
            with self._guard:
                owner = self._owners.get(topic)
                if owner is None:
                    self._owners[topic] = holder
                    return
            if owner == holder:
                raise StoreMisused("this thread already has an open unit; end it first", code="unit_open")
            if not wait or self._now() >= deadline:
                raise WriterBusy
            self._sleep(_LOOK_SECONDS)

    def unlock(self, topic: str, store: object) -> None:
        """Release the lock of a topic, if this store still has it."""
        with self._guard:
            if topic in self._owners and self._owners[topic][0] is store:
                del self._owners[topic]

    def end_late(self, topic: str, commit: Callable[[], None]) -> None:
        """End a transaction of a lost client later, by commit or rollback; until then the database keeps its lock."""
        with self._guard:
            self._owners[topic] = self, 0

        def end() -> None:
            if self.happens(0.5):
                commit()
            self.unlock(topic, self)

        self.after(self.weather.late_seconds, end)

    def unlock_all(self, store: object) -> None:
        """End all transactions of a server that is gone."""
        with self._guard:
            for topic in [topic for topic, (owner, _) in self._owners.items() if owner is store]:
                del self._owners[topic]

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Call a function within this many seconds."""
        self._later(self.random.uniform(0, seconds), action)

    def announce(self, topic: str, head: int, writer: NetworkStore) -> None:
        """Announce a commit to every server: after a delay, or at once to the server that made it."""
        for store in list(self.stores):
            if store is writer:
                store.learn(topic, head, own=True)
            elif self.weather.delay_seconds or self.weather.notice_seconds:
                self.after(self.weather.delay_seconds + self.weather.notice_seconds, partial(store.learn, topic, head))
            else:
                store.learn(topic, head)


class NetworkStore(MemoryStore):
    """One server's connection to the simulated database."""

    engine = "memory network"
    inline = False

    def __init__(self, network: Network) -> None:
        super().__init__(network.clock, network.disk)
        self._network = network
        self._open_units: dict[str, MemoryUnit] = {}
        self._topic_tails: dict[str, Tails] = {}
        # Topic -> the unit that this store committed last; how many foreign commits followed; the known head.
        self._last_unit: dict[str, str] = {}
        self._foreign: dict[str, int] = {}
        self._known: dict[str, int] = {}
        network.stores.append(self)

    def close(self) -> None:
        if self in self._network.stores:
            self._network.stores.remove(self)
            self._network.unlock_all(self)
        super().close()

    # Units.

    @contextmanager
    def write(self, topic: str, *, wait: bool = True) -> Iterator[MemoryUnit]:
        with self._unit_on(topic, wait) as unit:
            unit.topic = topic
            yield unit

    @contextmanager
    def write_store(self, *, wait: bool = True) -> Iterator[MemoryUnit]:
        with self._unit_on(_STORE, wait) as unit:
            unit.is_store = True
            yield unit

    def create_topic(self, topic: str | None = None, *, fact: str = "", wait: bool = True) -> str:
        """Create a topic by one insert. If its answer is lost it is sent again: the same fact finds the same topic."""
        self._check_open()
        self._network.travel()
        with self._guard:
            unit = MemoryUnit(self._disk, Tails(self, self._network.clock), 0)
            created = unit.create_topic(topic, fact)
            unit.commit()
        for listener in list(self._disk.listeners):
            listener.announce()
        return created

    @contextmanager
    def together(self, *, wait: bool = True) -> Iterator[None]:
        if not self.inline:
            raise StoreMisused("each unit of this store is committed separately", code="not_inline")
        yield

    def hold(self) -> None:
        self._check_open()
        raise StoreMisused("units of this store wait for their own locks", code="not_inline")

    def release(self) -> None:
        self._check_open()

    def check_writable(self) -> None:
        self._check_open()

    @contextmanager
    def _unit_on(self, topic: str, wait: bool) -> Iterator[MemoryUnit]:
        self._check_open()
        network, weather = self._network, self._network.weather
        network.lock(topic, self, wait=wait)
        late = False
        try:
            network.travel()
            self._check_open()
            if network.happens(weather.lost_begin):
                raise StoreFailed("the connection was lost before the unit began")
            unit = self._begin(topic)
            try:
                yield unit
                network.travel()
                # A server that is gone cannot commit.
                self._check_open()
                late, lost = network.happens(weather.late_commit), network.happens(weather.lost_commit)
                # Only a commit that arrived can keep the lock.
                late = late and not lost
                self._end(topic, unit, lost=lost, late=late)
            finally:
                unit.end()
                self._open_units.pop(topic, None)
        except BaseException:
            self._topic_tails.pop(topic, None)
            raise
        finally:
            if not late:
                network.unlock(topic, self)
        # The lock is free before the answer arrives, so another server may commit in the meantime.
        network.travel()

    def _begin(self, topic: str) -> MemoryUnit:
        tails = self._topic_tails.get(topic)
        if tails is None:
            tails = self._topic_tails[topic] = Tails(_Inside(self, topic), self._network.clock)
        others_wrote = self._last_unit.get(topic, "") != self._network.last_units.get(topic, "")
        if others_wrote:
            self._foreign[topic] = self._foreign.get(topic, 0) + 1
        tails.begin(others_wrote=others_wrote)
        self._open_units[topic] = unit = MemoryUnit(self._disk, tails, self._foreign.get(topic, 0))
        return unit

    def _end(self, topic: str, unit: MemoryUnit, *, lost: bool, late: bool) -> None:
        """Commit, unless the network fails."""
        network, weather = self._network, self._network.weather
        name, head = network.new_unit(), unit.head(topic)
        doubt = Doubt(topic, head.sequence, head.running_hash, name)

        def commit() -> None:
            unit.commit()
            network.committed.add(name)
            network.last_units[topic] = name
            network.announce(topic, head.sequence, self)
            for listener in list(self._disk.listeners):
                listener.announce()

        if lost:
            raise CommitInDoubt("the connection was lost before the commit arrived", doubt=doubt)
        if late:
            network.end_late(topic, commit)
            raise CommitInDoubt("the connection was lost during the commit", doubt=doubt)
        commit()
        if network.happens(weather.done_commit):
            raise CommitInDoubt("the connection was lost after the commit", doubt=doubt)
        self._last_unit[topic] = name

    def resolve(self, doubt: Doubt) -> Literal["committed", "failed"]:
        self._check_open()
        network = self._network
        # Once the lock is taken, the uncertain unit has ended.
        network.lock(doubt.topic, self, wait=True)
        try:
            network.travel()
            if network.happens(network.weather.lost_resolve):
                raise StoreFailed("the connection was lost")
            return "committed" if doubt.unit in network.committed else "failed"
        finally:
            network.unlock(doubt.topic, self)

    # Commits of others.

    def known_head(self, topic: str) -> int:
        self._check_open()
        if topic not in self._known:
            self._known[topic] = self.head(topic).sequence
        return self._known[topic]

    def look(self) -> None:
        self._check_open()

    def learn(self, topic: str, head: int, *, own: bool = False) -> None:
        """Handle the announcement of a commit."""
        if topic not in self._known:
            # The topic is not watched.
            return
        self._known[topic] = max(self._known[topic], head)
        # An own commit must not hide a foreign one: foreign commits are announced only by their own notices.
        if not own and head > self._notified.get(topic, 0):
            self._notified[topic] = head
            for notify in tuple(self._subscribers):
                notify(topic, head)

    def unit_or_store(self, topic: str) -> MemoryReader:
        """What the tail of a topic reads: the open unit, or the store."""
        return self._open_units.get(topic) or self


class _Inside(MemoryReader):
    """Reads as the unit of one topic does."""

    def __init__(self, store: NetworkStore, topic: str) -> None:
        self._store, self._topic, self._guard = store, topic, store._guard

    def _layer(self, topic: str) -> Layer:
        return self._store.unit_or_store(self._topic)._layer(topic)

    def topics(self) -> Sequence[str]:
        return self._store.unit_or_store(self._topic).topics()

    def setting(self, name: str) -> str | None:
        return self._store.unit_or_store(self._topic).setting(name)


def _call_later(seconds: float, action: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
