"""The lease as its holder knows it, by a clock that continues while the process is stopped or the machine sleeps.

A failed heartbeat proves nothing. What counts is when the last confirmed heartbeat was *sent*: the server cannot have
let the hold expire earlier than one lease after that. Later than that, another agent may have the task.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

from redkey.errors import WorkInterrupted

# The time since boot includes the time that the machine sleeps, where the system has such a clock.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)

End = Literal["lease_lost", "cancelled", "stopped"]
_SENTENCES = {
    "lease_lost": "The claim no longer holds the task: another agent may have it. What is done now changes nothing.",
    "cancelled": "The task was cancelled.",
    "stopped": "The worker is stopping and has released the task.",
}


def now() -> float:
    """Return the seconds of a monotonic clock that includes stops and sleeps."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


class Lease:
    """One hold: until when it certainly lasts, and whether and how it ended. Threads share it."""

    def __init__(self, seconds: float, asked_at: float, expires_at: str, clock: Callable[[], float] = now) -> None:
        self.seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._changed = threading.Event()
        # The lease end that the server sent, and the latest time when it can have been set: the lease lasts no longer.
        self._expires_at, self._latest = expires_at, clock() + seconds
        self._deadline = asked_at + seconds
        self._end: End | None = None
        self._watchers: list[Callable[[], None]] = []

    def confirmed(self, asked_at: float, expires_at: str) -> None:
        """A heartbeat that was sent at this time was confirmed.

        The server extends the lease if less than half of it is left, otherwise it repeats the old end. So at least half
        of the lease was left when the heartbeat was sent.
        """
        with self._lock:
            if expires_at != self._expires_at:
                self._expires_at, self._latest = expires_at, self._clock() + self.seconds
                self._deadline = max(self._deadline, asked_at + self.seconds)
            else:
                self._deadline = max(self._deadline, min(asked_at + self.seconds / 2, self._latest))

    def finish(self, end: End) -> None:
        """Record how the hold ended; only the first call counts."""
        with self._lock:
            if self._end is not None:
                return
            self._end = end
            watchers, self._watchers = self._watchers, []
        self._changed.set()
        for watcher in watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this once when the hold ends, or now if it has ended."""
        with self._lock:
            if self._end is None:
                self._watchers.append(watcher)
                return
        watcher()

    @property
    def end(self) -> End | None:
        """How the hold ended, as reported by the server; None while it may last."""
        return self._end

    @property
    def left_seconds(self) -> float:
        """Return the seconds for which the hold certainly lasts."""
        return self._deadline - self._clock()

    @property
    def is_lost(self) -> bool:
        """Whether another agent may have the task: the hold has ended, or no heartbeat was confirmed for too long."""
        return self._end is not None or self.left_seconds <= 0

    def check(self) -> None:
        """Raise WorkInterrupted if working on is useless."""
        if self.is_lost:
            end = self._end or "lease_lost"
            raise WorkInterrupted(_SENTENCES[end], code=end)

    def wait_until_lost(self, timeout: float | None) -> bool:
        """Wait for the loss; return whether it came."""
        limit = None if timeout is None else self._clock() + timeout
        while not self.is_lost:
            left = self.left_seconds if limit is None else min(self.left_seconds, limit - self._clock())
            if left <= 0 and not self.is_lost:
                return False
            self._changed.wait(max(left, 0))
        return self.is_lost


class LossSignal:
    """`ctx.lease_lost`: like a `threading.Event`, but each check also reads the clock.

    So it is true immediately after the process was stopped for longer than its lease, before any of its threads could
    have an answer from the server.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def is_set(self) -> bool:
        return self._lease.is_lost

    def wait(self, timeout: float | None = None) -> bool:
        return self._lease.wait_until_lost(timeout)

    def __bool__(self) -> bool:
        return self._lease.is_lost
