"""The ledger clock: consensus time, made from a wall clock that may be wrong.

It starts at the later of wall time and the last record, and from then on advances by the monotonic clock.
Towards wall time it only leans: its seconds are at most one twentieth longer or shorter than real ones. So a step
of the wall clock neither freezes the ledger (a step back) nor expires every lease (a step forward), and a lease of
a minute is a minute, give or take three seconds, whatever the wall clock does.

A ledger clock is itself a clock. A store has one over the machine's, and each topic one over the store's: a topic
whose records are ahead of the store's time goes on from them, and leans back without holding up the others.
"""

from __future__ import annotations

from redkey.ledger.ports import Clock

# The ledger clock gains or loses at most 1 / SLEW of the time that passes until it agrees with wall time.
SLEW = 20


class LedgerClock:
    """Strictly increasing nanoseconds, each later than the timestamp it is asked to follow."""

    __slots__ = ("_clock", "_monotonic", "_time")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic()
        self._time = clock.wall()

    def after(self, timestamp: int) -> int:
        """The time now, as the moment of a record that follows one with this timestamp."""
        monotonic = self._clock.monotonic()
        # A monotonic clock that falls back is broken: no time has passed.
        passed = max(0, monotonic - self._monotonic)
        self._monotonic = monotonic
        now = self._time + passed
        lean = passed // SLEW
        now += max(-lean, min(lean, self._clock.wall() - now))
        # Another writer of the topic may be ahead: its time is this topic's time from here on.
        self._time = max(now, self._time + 1, timestamp + 1)
        return self._time

    def wall(self) -> int:
        return self.after(0)

    def monotonic(self) -> int:
        return self._clock.monotonic()
