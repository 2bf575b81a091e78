"""The system clock, as an adapter of the ledger's clock port."""

from __future__ import annotations

import time

# CLOCK_BOOTTIME includes the time in which the machine was suspended, so leases also expire then.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Wall time, and monotonic time since the machine started."""

    def wall(self) -> int:
        return time.time_ns()

    def monotonic(self) -> int:
        return time.clock_gettime_ns(_ELAPSED)
