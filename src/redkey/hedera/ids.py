"""Transaction ids that we draw ourselves, before anything is sent.

The SDK's own draw repeats ids (about 500 in 200,000): it uses the time of day in microseconds less a random number of
seconds.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from threading import Lock

from redkey.ledger.record import entity
from redkey.wire.times import NANOSECONDS

# How far the start of validity lies in the past: the clock of this machine may be ahead of the network's by as much.
SKEW_SECONDS = 3


class TransactionIds:
    """Draws transaction ids of one payer: strictly increasing in this process, and random below the microsecond."""

    def __init__(self, account: str, clock: Callable[[], int] = time.time_ns) -> None:
        entity(account)
        self._account, self._clock = account, clock
        self._last = 0
        self._lock = Lock()

    def draw(self) -> str:
        """Return a new id as mirrors write it: `0.0.1001-1700000000-000000001`."""
        with self._lock:
            start = (self._clock() - SKEW_SECONDS * NANOSECONDS) // 1_000_000 * 1_000_000 + secrets.randbelow(1_000_000)
            self._last = max(start, self._last + 1)
            return f"{self._account}-{self._last // NANOSECONDS}-{self._last % NANOSECONDS:09d}"


def valid_start(transaction_id: str) -> int:
    """Return the start of validity of a transaction id, in nanoseconds."""
    _, seconds, nanos = transaction_id.rsplit("-", 2)
    return int(seconds) * NANOSECONDS + int(nanos)
