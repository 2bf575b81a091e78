"""Progress reports of one hold: at most one a second is sent, and the newest is never lost.

The first report is sent at once, by the one who makes it. What follows within a second waits here, the newest in place
of the one before it, until the pulse of the hold sends it. What waits when the hold ends is dropped: its end says more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from redkey.client.worker.lease import now

# As often as the server records reports of one claim.
INTERVAL_SECONDS = 1.0
# As long as the server takes it; longer texts are cut.
_CHARACTERS = 2000


class Report(msgspec.Struct, frozen=True):
    """One report: a sentence, a whole percentage, or both."""

    text: str
    percent: int | None

    @classmethod
    def of(cls, text: str, percent: float | None) -> Report:
        """A report as the server takes it."""
        cut = text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
        return cls(cut, None if percent is None else round(percent))


class LatestReport:
    """Decides who sends a report, and keeps the newest that waits: then `wake` is called. Threads share it."""

    def __init__(self, wake: Callable[[], None], clock: Callable[[], float] = now) -> None:
        self._wake, self._clock = wake, clock
        self._lock = threading.Lock()
        self._next_at = 0.0
        self._waiting: Report | None = None

    def offer(self, report: Report) -> float:
        """0 when the caller is to send it now; else it waits, for so many seconds at most."""
        with self._lock:
            wait = self._next_at - self._clock()
            if wait <= 0:
                self._waiting, self._next_at = None, self._clock() + INTERVAL_SECONDS
                return 0.0
            self._waiting = report
        self._wake()
        return wait

    def put_back(self, report: Report, seconds: float) -> None:
        """The server was told too often: keep the report, unless a newer one waits."""
        with self._lock:
            self._waiting = self._waiting or report
            self._next_at = self._clock() + seconds
        self._wake()

    @property
    def due_seconds(self) -> float | None:
        """When what waits is to be sent; None when nothing does."""
        with self._lock:
            return None if self._waiting is None else max(0.0, self._next_at - self._clock())

    def take(self) -> Report | None:
        """Take out what waits, if it is due: the caller sends it."""
        with self._lock:
            if self._waiting is None or self._next_at > self._clock():
                return None
            report, self._waiting = self._waiting, None
            self._next_at = self._clock() + INTERVAL_SECONDS
            return report
