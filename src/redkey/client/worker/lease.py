"""The lease as its holder can know it: by a clock of its own that goes on while the process or the machine stands.

A heartbeat that fails proves nothing. What counts is when the last confirmed one was *sent*: the server cannot have
let the hold expire sooner than a lease after that. From then on the task may be somebody else's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

from redkey.errors import WorkInterrupted

# Time since boot goes on while the machine sleeps, where the system has such a clock.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)

End = Literal["lease_lost", "cancelled", "stopped"]
_SENTENCES = {
    "lease_lost": "The claim no longer holds the task: another agent may have it. What is done now changes nothing.",
    "cancelled": "The task was cancelled.",
    "stopped": "The worker stops; the task was given back.",
}


def now() -> float:
    """Seconds of a clock that only goes forward, through stops and sleeps."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


class Lease:
    """One hold: until when it surely lasts, and whether and how it ended. Threads share it."""

    def __init__(self, seconds: float, asked_at: float, expires_at: str, clock: Callable[[], float] = now) -> None:
        self.seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._changed = threading.Event()
        # The server's word for the end of the lease, and when it can last have been given: it lasts no longer.
        self._expires_at, self._latest = expires_at, clock() + seconds
        self._deadline = asked_at + seconds
        self._end: End | None = None
        self._watchers: list[Callable[[], None]] = []

    def confirmed(self, asked_at: float, expires_at: str) -> None:
        """A heartbeat that was sent at this time was answered: held.

        The server extends when less than half of the lease is left, and else says the old end again: so that at least
        half of it was left when the heartbeat was sent.
        """
        with self._lock:
            if expires_at != self._expires_at:
                self._expires_at, self._latest = expires_at, self._clock() + self.seconds
                self._deadline = max(self._deadline, asked_at + self.seconds)
            else:
                self._deadline = max(self._deadline, min(asked_at + self.seconds / 2, self._latest))

    def finish(self, end: End) -> None:
        """The hold has ended; the first word stands."""
        with self._lock:
            if self._end is not None:
                return
            self._end = end
            watchers, self._watchers = self._watchers, []
        self._changed.set()
        for watcher in watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this once when the hold has ended; at once when it has."""
        with self._lock:
            if self._end is None:
                self._watchers.append(watcher)
                return
        watcher()

    @property
    def end(self) -> End | None:
        """How the hold ended, as far as the server said; None while it may last."""
        return self._end

    @property
    def left_seconds(self) -> float:
        """How long the hold surely lasts from now on."""
        return self._deadline - self._clock()

    @property
    def is_lost(self) -> bool:
        """Whether the task may be out of these hands: the hold has ended, or too long nothing was heard of it."""
        return self._end is not None or self.left_seconds <= 0

    def check(self) -> None:
        """WorkInterrupted when there is no use in working on."""
        if self.is_lost:
            end = self._end or "lease_lost"
            raise WorkInterrupted(_SENTENCES[end], code=end)

    def wait_until_lost(self, timeout: float | None) -> bool:
        """Wait for the loss; whether it came."""
        limit = None if timeout is None else self._clock() + timeout
        while not self.is_lost:
            left = self.left_seconds if limit is None else min(self.left_seconds, limit - self._clock())
            if left <= 0 and not self.is_lost:
                return False
            self._changed.wait(max(left, 0))
        return self.is_lost


class LossSignal:
    """`ctx.lease_lost`: reads like a `threading.Event`, and looks at the clock each time it is asked.

    So it is true in the first moment after the process was stopped for longer than its lease, before any thread of it
    could have heard from the server.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def is_set(self) -> bool:
        return self._lease.is_lost

    def wait(self, timeout: float | None = None) -> bool:
        return self._lease.wait_until_lost(timeout)

    def __bool__(self) -> bool:
        return self._lease.is_lost
