"""Progress reports of one hold: at most one a second is sent, and the newest is never lost.

The caller sends the first report at once. Reports within the next second wait here, the newest replacing the previous
one, until the pulse of the hold sends it. A waiting report is dropped when the hold ends: the verdict says more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from redkey.client.worker.lease import now

# The server records one report of a claim per this interval.
INTERVAL_SECONDS = 1.0
# The server's limit; longer texts are cut.
_CHARACTERS = 2000


class Report(msgspec.Struct, frozen=True):
    """One report: a sentence, a percentage as an integer, or both."""

    text: str
    percent: int | None

    @classmethod
    def of(cls, text: str, percent: float | None) -> Report:
        """Return a report as the server accepts it."""
        cut = text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
        return cls(cut, None if percent is None else round(percent))


class LatestReport:
    """Decides which thread sends a report and keeps the newest waiting one; then calls `wake`. Threads share it."""

    def __init__(self, wake: Callable[[], None], clock: Callable[[], float] = now) -> None:
        self._wake, self._clock = wake, clock
        self._lock = threading.Lock()
        self._next_at = 0.0
        self._waiting: Report | None = None

    def offer(self, report: Report) -> float:
        """Return 0 if the caller has to send the report now, or else the most seconds that it waits."""
        with self._lock:
            wait = self._next_at - self._clock()
            if wait <= 0:
                self._waiting, self._next_at = None, self._clock() + INTERVAL_SECONDS
                return 0.0
            self._waiting = report
        self._wake()
        return wait

    def put_back(self, report: Report, seconds: float) -> None:
        """The server refused the report as too early: keep it, unless a newer one waits."""
        with self._lock:
            self._waiting = self._waiting or report
            self._next_at = self._clock() + seconds
        self._wake()

    @property
    def due_seconds(self) -> float | None:
        """Return when the waiting report is due; None if there is none."""
        with self._lock:
            return None if self._waiting is None else max(0.0, self._next_at - self._clock())

    def take(self) -> Report | None:
        """Take out the waiting report if it is due; the caller sends it."""
        with self._lock:
            if self._waiting is None or self._next_at > self._clock():
                return None
            report, self._waiting = self._waiting, None
            self._next_at = self._clock() + INTERVAL_SECONDS
            return report
