"""The writer lock: one unit at a time, across the threads of a process and across processes, without starvation.

Between processes it consists of two `flock`s. A writer first takes the *turnstile*, then the lock itself, and then
releases the turnstile. A process that has written and wants to write again finds the turnstile taken by the process
that waits, so it queues behind it: fairness needs no timing and no retry. The kernel frees both when a process dies.
Optimistic append led to starvation and SQLite's own busy handler sleeps; see ARCHITECTURE.md.

A process that is stopped (SIGSTOP, a suspended container) keeps its locks. `flock` has no timeout, so a separate thread
waits for other processes, and callers wait for that thread for a limited time. After one timeout, later callers are
refused at once until the thread has the lock.

Inside the process a condition does the same, and raises an error when a thread would wait for itself.
"""

from __future__ import annotations

import enum
import fcntl
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Final

from redkey.errors import StoreMisused, WriterBusy

LOCK_NAME = "redkey.lock"
TURNSTILE_NAME = "redkey.turn"
# The API must answer callers within five seconds, whatever other processes do.
WAIT_SECONDS: Final = 3.0


class _State(enum.Enum):
    FREE = enum.auto()
    # The waiting thread is taking the file locks.
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
        guard = threading.Lock()
        self._changed = threading.Condition(guard)
        self._state = _State.FREE
        self._writer: int | None = None
        # The thread that waits for other processes, the condition that wakes it, and since when it waits.
        self._thread: threading.Thread | None = None
        self._asked = threading.Condition(guard)
        self._entering_since = 0.0
        # How many callers wait; and whether the thread has taken the lock and no caller has picked it up yet.
        self._waiting = 0
        self._granted = False
        _open_locks.add(self)

    def acquire(self, *, wait: bool) -> None:
        """Take the lock for a unit, or use the one that `hold` has taken; WriterBusy after the time limit."""
        self._enter(_State.IN_UNIT, WAIT_SECONDS if wait else 0)
        self._writer = threading.get_ident()

    def hold(self, seconds: float = WAIT_SECONDS) -> None:
        """Take the lock and keep it for the next unit of any thread; WriterBusy after the time limit."""
        self._enter(_State.HELD, seconds)

    def release(self) -> None:
        """Release the lock after a unit."""
        self._release_if(_State.IN_UNIT)

    def release_held(self) -> None:
        """Release a lock that was held for a unit that did not follow."""
        self._release_if(_State.HELD)

    def close(self) -> None:
        """Wait for an open unit, then close the files; closing twice is harmless."""
        with self._changed:
            while self._state is _State.IN_UNIT:
                self._refuse_own_unit()
                self._changed.wait()
            if self._state is not _State.CLOSED:
                # The thread may be inside a system call on these files; then it closes them when the call returns.
                entering = self._state is _State.ENTERING
                self._become(_State.CLOSED)
                self._asked.notify()
                if not entering:
                    self._close_files()

    def _enter(self, wanted: _State, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with self._changed:
            self._waiting += 1
            try:
                while not self._try_enter(wanted):
                    now = time.monotonic()
                    if not seconds:
                        raise WriterBusy("another process or thread is writing, or waits to write")
                    if self._state is _State.FREE:
                        self._begin_to_wait(now)
                    elif now >= deadline or self._is_stuck(now, seconds):
                        raise WriterBusy(f"another writer has had the lock for more than {seconds:g} seconds")
                    self._changed.wait(deadline - now)
            finally:
                self._waiting -= 1
                if self._granted and not self._waiting:
                    # This caller was interrupted just when the thread had taken the lock for it.
                    self._unlock()

    def _try_enter(self, wanted: _State) -> bool:
        """Take the lock if it is free, without waiting; return whether the caller has it."""
        if self._state is _State.CLOSED:
            raise StoreMisused("the store is closed", code="store_closed")
        if self._state is _State.FREE and self._take_files():
            self._become(wanted)
            return True
        if self._state is _State.HELD:
            self._granted = False
            self._become(wanted)
            return True
        self._refuse_own_unit()
        return False

    def _take_files(self) -> bool:
        """Take both file locks if no other process has one of them."""
        try:
            fcntl.flock(self._turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except BaseException:
            # A signal may arrive after the lock was taken and before the call returns.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            raise
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        return True

    # Waiting for other processes.

    def _begin_to_wait(self, now: float) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._wait_for_others, name="redkey-lock", daemon=True)
            thread.start()
            self._thread = thread
        self._entering_since = now
        self._become(_State.ENTERING)
        self._asked.notify()

    def _is_stuck(self, now: float, seconds: float) -> bool:
        return self._state is _State.ENTERING and now - self._entering_since > max(seconds, WAIT_SECONDS)

    def _wait_for_others(self) -> None:
        """Take the file locks whenever a caller has to wait for them. Runs in a thread until the lock closes."""
        while self._is_asked():
            fcntl.flock(self._turnstile, fcntl.LOCK_EX)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            with self._changed:
                fcntl.flock(self._turnstile, fcntl.LOCK_UN)
                if self._state is _State.CLOSED:
                    self._close_files()
                    return
                if self._waiting:
                    self._granted = True
                    self._become(_State.HELD)
                else:
                    self._unlock()

    def _is_asked(self) -> bool:
        """Wait until a caller has to wait for other processes; false when the lock was closed."""
        with self._changed:
            self._asked.wait_for(lambda: self._state in (_State.ENTERING, _State.CLOSED))
            return self._state is _State.ENTERING

    # Releasing.
    def _release_if(self, state: _State) -> None:
        with self._changed:
            if self._state is state:
                self._unlock()

    def _unlock(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        self._writer, self._granted = None, False
        self._become(_State.FREE)

    def _refuse_own_unit(self) -> None:
        if self._state is _State.IN_UNIT and self._writer == threading.get_ident():
            raise StoreMisused("this thread already has an open unit; end it first", code="unit_open")

    def _become(self, state: _State) -> None:
        self._state = state
        # Waiting callers wait for one of these states.
        if state in (_State.FREE, _State.HELD, _State.CLOSED):
            self._changed.notify_all()

    def _close_files(self) -> None:
        os.close(self._lock)
        os.close(self._turnstile)


_open_locks: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    # A forked child shares the parent's locks. If it kept the files open, it would keep the lock after the parent's
    # death. Closing them here does not release the parent's lock.
    for lock in list(_open_locks):
        if lock._state is not _State.CLOSED:
            lock._state = _State.CLOSED
            lock._close_files()


os.register_at_fork(after_in_child=_forget_in_child)
