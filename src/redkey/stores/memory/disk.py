"""What several memory stores share: committed state, and the right to write to it."""

from __future__ import annotations

import threading

from redkey.errors import StoreMisused, WriterBusy
from redkey.stores.follow import Commits
from redkey.stores.memory.layer import Layer


class MemoryDisk:
    """Committed topics and settings. The writer lock is taken for a unit, or held for a store's next one."""

    def __init__(self) -> None:
        self.topics: dict[str, Layer] = {}
        self.settings: dict[str, str] = {}
        self.commits = 0
        self.listeners: list[Commits] = []
        # Nobody reads committed state while a unit is absorbed into it.
        self.guard = threading.RLock()
        self._changed = threading.Condition()
        self._owner: object = None
        self._thread: int | None = None

    def acquire(self, store: object, *, wait: bool) -> None:
        """Take the lock for a unit of this thread, or the one that is held for the store."""
        self._take(store, threading.get_ident(), wait=wait)

    def hold(self, store: object) -> None:
        """Wait for the lock and keep it for the store's next unit, in whichever thread."""
        self._take(store, None, wait=True)

    def release(self, store: object) -> None:
        """Let the lock go after a unit."""
        self._let_go(store, held=False)

    def release_held(self, store: object) -> None:
        """Let go a lock that was held for a unit that did not come."""
        self._let_go(store, held=True)

    def _take(self, store: object, thread: int | None, *, wait: bool) -> None:
        with self._changed:
            while self._owner is not None and not (self._owner is store and self._thread is None):
                if not wait and self._owner is not store:
                    raise WriterBusy
                if self._thread == threading.get_ident():
                    raise StoreMisused("this thread has a unit open already; end it first", code="unit_open")
                if not wait:
                    raise WriterBusy
                self._changed.wait()
            self._owner, self._thread = store, thread

    def _let_go(self, store: object, *, held: bool) -> None:
        with self._changed:
            if self._owner is store and (self._thread is None) == held:
                self._owner = self._thread = None
                self._changed.notify_all()
