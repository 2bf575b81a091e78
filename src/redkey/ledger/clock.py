"""The ledger clock: consensus time, derived from a wall clock that may be wrong.

It starts at the later of wall time and the last record, and from then on advances by the monotonic clock.
It approaches wall time slowly: its seconds are at most one twentieth longer or shorter than real ones. So a step of
the wall clock neither freezes the ledger (a step back) nor expires every lease (a step forward), and a lease of a
minute lasts a minute, plus or minus three seconds, whatever the wall clock does.

A ledger clock is itself a clock. A store has one over the machine's, and each topic one over the store's: a topic
whose records are ahead of the store's time continues from them, and slows down without delaying the others.
"""

from __future__ import annotations

from redkey.ledger.ports import Clock

# The ledger clock gains or loses at most 1 / SLEW of the time that passes until it agrees with wall time.
SLEW = 20


class LedgerClock:
    """Strictly increasing nanoseconds, each later than the timestamp before it."""

    __slots__ = ("_clock", "_monotonic", "_time")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic()
        self._time = clock.wall()

    def after(self, timestamp: int) -> int:
        """Return the time of a record that follows one with this timestamp."""
        monotonic = self._clock.monotonic()
        # If the monotonic clock goes back, it is broken: assume that no time has passed.
        passed = max(0, monotonic - self._monotonic)
        self._monotonic = monotonic
        now = self._time + passed
        lean = passed // SLEW
        now += max(-lean, min(lean, self._clock.wall() - now))
        # Another writer of the topic may be ahead: continue from its time.
        self._time = max(now, self._time + 1, timestamp + 1)
        return self._time

    def wall(self) -> int:
        return self.after(0)

    def monotonic(self) -> int:
        return self._clock.monotonic()
