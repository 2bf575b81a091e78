"""The clock of the database: every unit reads it with its lock, and this machine's monotonic clock goes on from there.

With each machine's own clock, a server that is 30 seconds ahead would drag the ledger's time, and end the leases of all
others 30 seconds early.
"""

from __future__ import annotations

import threading

from redkey.ledger.clock import LedgerClock
from redkey.ledger.ports import Clock
from redkey.stores.clock import SystemClock


class DatabaseClock:
    """Wall time of the database, elapsed time of this machine."""

    def __init__(self, now: int, machine: Clock | None = None) -> None:
        """`now` is the clock of the database in nanoseconds."""
        self._machine = machine or SystemClock()
        self._read = now, self._machine.monotonic()

    def read(self, now: int) -> None:
        """The clock of the database was read just now."""
        self._read = now, self._machine.monotonic()

    def wall(self) -> int:
        now, at = self._read
        return now + max(0, self._machine.monotonic() - at)

    def monotonic(self) -> int:
        return self._machine.monotonic()


class SharedClock:
    """A ledger clock that the writer threads of one store share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = LedgerClock(clock)
        self._guard = threading.Lock()

    def wall(self) -> int:
        with self._guard:
            return self._clock.wall()

    def monotonic(self) -> int:
        return self._clock.monotonic()
