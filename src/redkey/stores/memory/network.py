"""The memory store behind a network: servers on one database, with delays, lost connections and commits in doubt.

It behaves as a database across a network does: a unit locks its topic and runs on a writer thread, units of different
topics run side by side, servers hear of each other's commits a while later, and a commit may end without an answer.
The `Network` draws what goes wrong from one seed, and waits by a function that it was given: a simulation gives one
that lets made-up time pass.
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

# How long a writer waits for the lock of a topic, and how often it looks.
_WAIT_SECONDS = 3.0
_LOOK_SECONDS = 0.002
# The key of the lock for units on the whole store.
_STORE = ""


class Weather(msgspec.Struct):
    """What goes wrong on a network.

    Chances are in one unit, seconds are drawn up to what is said.
    """

    delay_seconds: float = 0.0
    # A notice that takes long, as after a lost connection.
    notice_seconds: float = 0.0
    lost_begin: float = 0.0
    # The connection is lost during the commit, which the database has not seen, has done, or does later.
    lost_commit: float = 0.0
    done_commit: float = 0.0
    late_commit: float = 0.0
    late_seconds: float = 0.0
    lost_resolve: float = 0.0


class Network:
    """A database, its clock and locks, and the ways to it."""

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
        """`sleep` waits in a thread, `later` calls a function after so many seconds."""
        self.disk, self.clock = disk or MemoryDisk(), LedgerClock(clock)
        self.weather, self.random = weather or Weather(), random
        self._sleep, self._later, self._now = sleep, later or _call_later, now
        self.stores: list[NetworkStore] = []
        # topic -> the store and the thread that have its lock.
        self._owners: dict[str, tuple[object, int]] = {}
        self._guard = threading.Lock()
        # The units that were committed: what a unit without records is known by.
        self.committed: set[str] = set()
        self.last_units: dict[str, str] = {}
        self._units = 0

    def new_unit(self) -> str:
        """The name of the next unit."""
        with self._guard:
            self._units += 1
            return str(self._units)

    def happens(self, chance: float) -> bool:
        """Draw whether something goes wrong."""
        return chance > 0 and self.random.random() < chance

    def travel(self) -> None:
        """A message is on its way."""
        if self.weather.delay_seconds:
            self._sleep(self.random.uniform(0, self.weather.delay_seconds))

    def lock(self, topic: str, store: object, *, wait: bool) -> None:
        """Take the lock of a topic; WriterBusy when it cannot be had in time."""
        deadline, asked = self._now() + _WAIT_SECONDS, (store, threading.get_ident())
        while True:
            with self._guard:
                owner = self._owners.get(topic)
                if owner is None:
                    self._owners[topic] = asked
                    return
            if owner == asked:
                raise StoreMisused("this thread has a unit open already; end it first", code="unit_open")
            if not wait or self._now() >= deadline:
                raise WriterBusy
            self._sleep(_LOOK_SECONDS)

    def unlock(self, topic: str, store: object) -> None:
        """Release the lock of a topic, if this store still has it."""
        with self._guard:
            if topic in self._owners and self._owners[topic][0] is store:
                del self._owners[topic]

    def end_late(self, topic: str, commit: Callable[[], None]) -> None:
        """The database ends a transaction whose client is gone, one way or the other; until then it keeps the lock."""
        with self._guard:
            self._owners[topic] = self, 0

        def end() -> None:
            if self.happens(0.5):
                commit()
            self.unlock(topic, self)

        self.after(self.weather.late_seconds, end)

    def unlock_all(self, store: object) -> None:
        """A server is gone: the database ends what it had open."""
        with self._guard:
            for topic in [topic for topic, (owner, _) in self._owners.items() if owner is store]:
                del self._owners[topic]

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something up to so many seconds later."""
        self._later(self.random.uniform(0, seconds), action)

    def announce(self, topic: str, head: int, writer: NetworkStore) -> None:
        """Tell every server of a commit: each hears of it a while later, and its own server at once."""
        for store in list(self.stores):
            if store is writer:
                store.learn(topic, head, own=True)
            elif self.weather.delay_seconds or self.weather.notice_seconds:
                self.after(self.weather.delay_seconds + self.weather.notice_seconds, partial(store.learn, topic, head))
            else:
                store.learn(topic, head)


class NetworkStore(MemoryStore):
    """One server's connection to a database across a network."""

    engine = "memory network"
    inline = False

    def __init__(self, network: Network) -> None:
        super().__init__(network.clock, network.disk)
        self._network = network
        self._open_units: dict[str, MemoryUnit] = {}
        self._topic_tails: dict[str, Tails] = {}
        # topic -> the unit that this store committed last, how often others came in between, the head that is known.
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
        """One insert; where its answer is lost, it is sent again: with the same fact it finds the same topic."""
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
            raise StoreMisused("each unit of this store is committed by itself", code="not_inline")
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
                # A server that is gone commits nothing.
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
        # The lock is free before the answer arrives: another server may commit meanwhile.
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
        """Commit, as far as the network lets it."""
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
        # Whoever gets the lock knows that the unit in doubt is over.
        network.lock(doubt.topic, self, wait=True)
        try:
            network.travel()
            if network.happens(network.weather.lost_resolve):
                raise StoreFailed("the connection was lost")
            return "committed" if doubt.unit in network.committed else "failed"
        finally:
            network.unlock(doubt.topic, self)

    # What others commit.

    def known_head(self, topic: str) -> int:
        self._check_open()
        if topic not in self._known:
            self._known[topic] = self.head(topic).sequence
        return self._known[topic]

    def look(self) -> None:
        self._check_open()

    def learn(self, topic: str, head: int, *, own: bool = False) -> None:
        """A commit was announced."""
        if topic not in self._known:
            # Nobody watches it.
            return
        self._known[topic] = max(self._known[topic], head)
        # An own commit hides none of another server: what others brought is told by their notices alone.
        if not own and head > self._told.get(topic, 0):
            self._told[topic] = head
            for heard in tuple(self._subscribers):
                heard(topic, head)

    def unit_or_store(self, topic: str) -> MemoryReader:
        """What the tail of a topic reads: the unit that is open."""
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
