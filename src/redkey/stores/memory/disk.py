"""What several memory stores share: the committed state, and the right to write to it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from redkey.errors import StoreMisused, WriterBusy
from redkey.stores.follow import Commits
from redkey.stores.memory.layer import Layer
from redkey.stores.memory.reader import MemoryReader


class MemoryDisk:
    """Committed topics and settings. The writer lock is taken for a unit, or held for a store's next unit."""

    def __init__(self) -> None:
        self.topics: dict[str, Layer] = {}
        self.settings: dict[str, str] = {}
        self.commits = 0
        self.listeners: list[Commits] = []
        self._snapshots: list[MemorySnapshot] = []
        # Blocks reads of committed state while a unit is merged into it.
        self.guard = threading.RLock()
        self._changed = threading.Condition()
        self._owner: object = None
        self._thread: int | None = None

    @contextmanager
    def snapshot(self) -> Iterator[MemorySnapshot]:
        """A snapshot of the committed state; what changes later is copied for it first."""
        snapshot = MemorySnapshot(self)
        with self.guard:
            self._snapshots.append(snapshot)
        try:
            yield snapshot
        finally:
            with self.guard:
                self._snapshots.remove(snapshot)

    def keep_for_snapshots(self, topics: Iterable[str], *, settings: bool) -> None:
        """Copy these topics for all snapshots before they change."""
        for snapshot in self._snapshots:
            snapshot.keep(topics, settings=settings)

    def acquire(self, store: object, *, wait: bool) -> None:
        """Take the lock for a unit of this thread, or use the one that is held for the store."""
        self._take(store, threading.get_ident(), wait=wait)

    def hold(self, store: object) -> None:
        """Take the lock and keep it for the store's next unit, in any thread."""
        self._take(store, None, wait=True)

    def release(self, store: object) -> None:
        """Release the lock after a unit."""
        self._release(store, held=False)

    def release_held(self, store: object) -> None:
        """Release a lock that was held for a unit that did not follow."""
        self._release(store, held=True)

    def _take(self, store: object, thread: int | None, *, wait: bool) -> None:
        with self._changed:
            while self._owner is not None and not (self._owner is store and self._thread is None):
                if not wait and self._owner is not store:
                    raise WriterBusy
                if self._thread == threading.get_ident():
                    raise StoreMisused("this thread already has an open unit; end it first", code="unit_open")
                if not wait:
                    raise WriterBusy
                self._changed.wait()
            self._owner, self._thread = store, thread

    def _release(self, store: object, *, held: bool) -> None:
        with self._changed:
            if self._owner is store and (self._thread is None) == held:
                self._owner = self._thread = None
                self._changed.notify_all()


class MemorySnapshot(MemoryReader):
    """The committed state at one moment."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk, self._guard = disk, disk.guard
        self._topics = [*disk.topics]
        self._kept: dict[str, Layer] = {}
        self._settings: dict[str, str] | None = None

    def keep(self, topics: Iterable[str], *, settings: bool) -> None:
        """Copy topics that are about to change."""
        for topic in topics:
            if topic not in self._kept:
                committed = self._disk.topics.get(topic)
                self._kept[topic] = committed.copy() if committed is not None else Layer()
        if settings and self._settings is None:
            self._settings = dict(self._disk.settings)

    def topics(self) -> Sequence[str]:
        return list(self._topics)

    def setting(self, name: str) -> str | None:
        return (self._disk.settings if self._settings is None else self._settings).get(name)

    def _layer(self, topic: str) -> Layer:
        return self._kept.get(topic) or self._disk.topics.get(topic) or Layer()
