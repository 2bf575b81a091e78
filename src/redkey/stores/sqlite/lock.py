"""The writer lock: one unit at a time, over the threads of a process and over processes, and nobody starves.

Between processes it is two `flock`s. Whoever wants to write first takes the *turnstile*, then the lock itself,
then lets the turnstile go. A process that has written and wants to write again finds the turnstile taken by the
one that waits, so it queues behind it: taking turns needs no timing and no retry. The kernel frees both when a
process dies. Optimistic append starved and SQLite's own busy handler sleeps; see the architecture.

Inside the process a condition does the same, and says clearly when a thread would wait for itself.
"""

from __future__ import annotations

import enum
import fcntl
import os
import threading
import weakref
from pathlib import Path

from redkey.errors import StoreMisused, WriterBusy

LOCK_NAME = "redkey.lock"
TURNSTILE_NAME = "redkey.turn"


class _State(enum.Enum):
    FREE = enum.auto()
    ENTERING = enum.auto()
    HELD = enum.auto()
    IN_UNIT = enum.auto()
    CLOSED = enum.auto()


class WriterLock:
    """The right to write to one data directory."""

    def __init__(self, directory: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._turnstile = os.open(directory / TURNSTILE_NAME, flags, 0o600)
        try:
            self._lock = os.open(directory / LOCK_NAME, flags, 0o600)
        except OSError:
            os.close(self._turnstile)
            raise
        self._changed = threading.Condition()
        self._state = _State.FREE
        self._writer: int | None = None
        _open_locks.add(self)

    def acquire(self, *, wait: bool) -> None:
        """Take the lock for a unit, or the one that `hold` has kept; WriterBusy when it would have to wait."""
        if self._enter(_State.IN_UNIT, wait=wait):
            self._settle(_State.IN_UNIT, wait=wait)
        self._writer = threading.get_ident()

    def hold(self) -> None:
        """Wait for the lock and keep it for the next unit of any thread."""
        if self._enter(_State.HELD, wait=True):
            self._settle(_State.HELD, wait=True)

    def release(self) -> None:
        """Let the lock go after a unit."""
        self._let_go(_State.IN_UNIT)

    def release_held(self) -> None:
        """Let go a lock that was held for a unit that did not come."""
        self._let_go(_State.HELD)

    def close(self) -> None:
        """Wait for the unit that is open, then give the files back; closing twice is fine."""
        with self._changed:
            while self._state in (_State.ENTERING, _State.IN_UNIT):
                self._refuse_own_unit()
                self._changed.wait()
            if self._state is not _State.CLOSED:
                self._become(_State.CLOSED)
                self._close_files()

    def _enter(self, wanted: _State, *, wait: bool) -> bool:
        """Pass the other threads; true when the file locks are still to be taken."""
        with self._changed:
            while True:
                if self._state is _State.CLOSED:
                    raise StoreMisused("the store is closed", code="store_closed")
                if self._state is _State.HELD:
                    self._become(wanted)
                    return False
                if self._state is _State.FREE:
                    self._become(_State.ENTERING)
                    return True
                self._refuse_own_unit()
                if not wait:
                    raise WriterBusy("another thread of this process is writing")
                self._changed.wait()

    def _settle(self, wanted: _State, *, wait: bool) -> None:
        try:
            self._take_files(wait=wait)
        except BaseException:
            # A signal may interrupt between getting the lock and saying so: let it go in any case.
            with self._changed:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
                self._become(_State.FREE)
            raise
        with self._changed:
            self._become(wanted)

    def _take_files(self, *, wait: bool) -> None:
        how = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.flock(self._turnstile, how)
            try:
                fcntl.flock(self._lock, how)
            finally:
                fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        except BlockingIOError as busy:
            raise WriterBusy("another process is writing, or waits to write") from busy

    def _let_go(self, state: _State) -> None:
        with self._changed:
            if self._state is state:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
                self._writer = None
                self._become(_State.FREE)

    def _refuse_own_unit(self) -> None:
        if self._state is _State.IN_UNIT and self._writer == threading.get_ident():
            raise StoreMisused("this thread has a unit open already; end it first", code="unit_open")

    def _become(self, state: _State) -> None:
        self._state = state
        # Who waits, waits for one of these.
        if state in (_State.FREE, _State.HELD, _State.CLOSED):
            self._changed.notify_all()

    def _close_files(self) -> None:
        os.close(self._lock)
        os.close(self._turnstile)


_open_locks: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    # A forked child shares the parent's locks: were it to keep the files open, it would keep the lock
    # when the parent dies. Closing them here takes nothing from the parent.
    for lock in list(_open_locks):
        if lock._state is not _State.CLOSED:
            lock._state = _State.CLOSED
            lock._close_files()


os.register_at_fork(after_in_child=_forget_in_child)
