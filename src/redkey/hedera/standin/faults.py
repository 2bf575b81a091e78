"""The faults that a stand-in network can have: at random with a rate, or the next time on request."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Final

FAULTS: Final[Mapping[str, str]] = {
    "lose_request": "the node loses a transaction before recording it, and the connection breaks",
    "lose_answer": "the node records a transaction, and the connection breaks before the answer",
    "busy": "the node answers BUSY",
    "duplicate": "the node records a transaction and answers DUPLICATE_TRANSACTION",
    "no_balance": "the node answers INSUFFICIENT_PAYER_BALANCE",
    "delay": "a receipt stays UNKNOWN for `delay_seconds`",
    "lose_receipt": "the connection breaks when a receipt is asked for",
    "cut_stream": "the mirror ends a stream with UNAVAILABLE",
    "repeat": "the mirror shows a message twice",
    "skip": "the mirror leaves a message out",
    "change_byte": "the mirror shows a message with one bit changed",
    "lag": "the mirror shows a message `lag_seconds` late",
    "mirror_down": "the mirror answers 503",
}


class Faults:
    """Decides which faults happen; one seed gives the same sequence of decisions."""

    def __init__(
        self,
        rates: Mapping[str, float] | None = None,
        *,
        seed: int = 0,
        delay_seconds: float = 1.0,
        lag_seconds: float = 1.0,
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 - faults, not secrets
        self._lock = Lock()
        self._rates: dict[str, float] = {}
        self._queued: Counter[str] = Counter()
        self.happened: Counter[str] = Counter()
        self.delay_seconds, self.lag_seconds = delay_seconds, lag_seconds
        for name, rate in (rates or {}).items():
            self.rate(name, rate)

    def rate(self, name: str, rate: float) -> None:
        """Let a fault happen at random, with this probability each time."""
        if name not in FAULTS:
            raise ValueError(f"{name!r} is not a fault; known are {', '.join(FAULTS)}")
        self._rates[name] = rate

    def queue(self, name: str, times: int = 1) -> None:
        """Let a fault happen the next time it can, `times` times."""
        if name not in FAULTS:
            raise ValueError(f"{name!r} is not a fault; known are {', '.join(FAULTS)}")
        with self._lock:
            self._queued[name] += times

    def clear(self) -> None:
        """End all faults."""
        with self._lock:
            self._rates.clear()
            self._queued.clear()

    def happens(self, name: str) -> bool:
        """Return whether a fault happens now; count it if it does."""
        with self._lock:
            if self._queued[name]:
                self._queued[name] -= 1
            elif not (rate := self._rates.get(name, 0)) or self._random.random() >= rate:
                return False
            self.happened[name] += 1
            return True
