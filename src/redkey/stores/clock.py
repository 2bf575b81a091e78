"""The clock of the machine, as the ledger asks for it."""

from __future__ import annotations

import time

# Time asleep has passed too: a lease given before the lid was closed is over when it has run out meanwhile.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Wall time, and the time since the machine was started."""

    def wall(self) -> int:
        return time.time_ns()

    def monotonic(self) -> int:
        return time.clock_gettime_ns(_ELAPSED)
