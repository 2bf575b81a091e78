"""The memory store: units on a disk, readers of it, followers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from redkey.errors import StoreMisused
from redkey.ledger.ports import Clock
from redkey.ledger.record import Record
from redkey.ledger.tail import Tails
from redkey.stores.follow import Commits, follow
from redkey.stores.memory.disk import MemoryDisk, MemorySnapshot
from redkey.stores.memory.layer import Layer
from redkey.stores.memory.reader import MemoryReader
from redkey.stores.memory.unit import MemoryUnit
from redkey.stores.memory.upload import MemoryUpload
from redkey.stores.transactions import Transactions, refuse_second


class MemoryStore(Transactions[MemoryUnit], MemoryReader):
    """A sequenced store on a disk that it may share with others."""

    def __init__(self, clock: Clock, disk: MemoryDisk | None = None) -> None:
        super().__init__()
        self._disk = disk or MemoryDisk()
        self._guard = self._disk.guard
        self._tails = Tails(_Inside(self), clock)
        self.unit: MemoryUnit | None = None
        self._commits = Commits()
        self._disk.listeners.append(self._commits)
        # Commits of this store, and the foreign commits that tails and worlds have seen.
        self._own = 0
        self._seen = self._asked = self._disk.commits
        # The thread with an open unit, and the error that prevents its commit.
        self._unit_thread: int | None = None
        self._failed: BaseException | None = None

    engine = "memory"

    def close(self) -> None:
        if not self._commits.closed:
            self._disk.release_held(self)
            self._disk.listeners.remove(self._commits)
            self._commits.close()

    @contextmanager
    def _transaction(self, wait: bool) -> Iterator[MemoryUnit]:
        """Open a transaction, or return the one that this thread has open for several units."""
        if self.unit is not None and self._unit_thread == threading.get_ident():
            refuse_second(self.unit)
            try:
                yield self.unit
            except BaseException as cause:
                self._failed = cause
                raise
            return
        self._check_open()
        self._disk.acquire(self, wait=wait)
        try:
            seen, self._seen = self._seen, self._others()
            self._tails.begin(others_wrote=seen != self._seen)
            self.unit = unit = MemoryUnit(self._disk, self._tails, self._seen)
            self._unit_thread, self._failed = threading.get_ident(), None
            try:
                yield unit
                if self._failed is not None:
                    raise self._failed
                self._commit(unit)
            except BaseException:
                unit.end()
                self._tails.forget()
                raise
            finally:
                self.unit = self._unit_thread = None
        finally:
            self._disk.release(self)
        for listener in list(self._disk.listeners):
            listener.announce()

    def hold(self) -> None:
        self._check_open()
        self._disk.hold(self)

    def release(self) -> None:
        self._check_open()
        self._disk.release_held(self)

    def check_writable(self) -> None:
        self.hold()
        self.release()

    def upload(self) -> MemoryUpload:
        self._check_open()
        return MemoryUpload()

    def snapshot(self) -> AbstractContextManager[MemorySnapshot]:
        self._check_open()
        return self._disk.snapshot()

    def known_head(self, topic: str) -> int:
        head = self.head(topic).sequence
        self._notified.setdefault(topic, head)
        return head

    def look(self) -> None:
        self._check_open()
        before, self._asked = self._asked, self._others()
        if before != self._asked:
            self._notify(lambda topic: self.head(topic).sequence)

    def due(self, now: int, limit: int) -> Sequence[str]:
        self._check_open()
        with self._guard:
            times = sorted((layer.due_at(), topic) for topic, layer in self._disk.topics.items())
            return [topic for at, topic in times if 0 < at <= now][:limit]

    def follow(self, topic: str, after: int = 0) -> Iterator[Sequence[Record]]:
        self._check_open()
        return follow(self, self._commits, topic, after)

    def topics(self) -> Sequence[str]:
        with self._guard:
            return list(self._disk.topics)

    def setting(self, name: str) -> str | None:
        return self._disk.settings.get(name)

    def _commit(self, unit: MemoryUnit) -> None:
        unit.commit()
        self._own += 1

    def _others(self) -> int:
        return self._disk.commits - self._own

    def _layer(self, topic: str) -> Layer:
        self._check_open()
        return self._disk.topics.get(topic) or Layer()

    def _check_open(self) -> None:
        if self._commits.closed:
            raise StoreMisused("the store is closed", code="store_closed")


class _Inside(MemoryReader):
    """Reads as the open unit does; tails and their trees read through it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._guard = store._guard

    def _layer(self, topic: str) -> Layer:
        return (self._store.unit or self._store)._layer(topic)

    def topics(self) -> Sequence[str]:
        return (self._store.unit or self._store).topics()

    def setting(self, name: str) -> str | None:
        return (self._store.unit or self._store).setting(name)
