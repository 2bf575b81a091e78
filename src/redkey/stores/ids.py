"""Fresh ids: ULIDs of the machine's time and randomness."""

from __future__ import annotations

import os
import time

from redkey.ledger.content import NONCE_BYTES
from redkey.wire.ids import ulid

_RANDOM_BYTES = 10
# So many random bytes are fetched at once: a call to the system for each id would be felt.
_AHEAD = 4096


class SystemIds:
    """Unguessable ids: 80 bits of each come from the operating system."""

    def __init__(self) -> None:
        self._random = b""
        self._used = 0

    def ulid(self) -> str:
        return ulid(time.time_ns() // 1_000_000, self._draw(_RANDOM_BYTES))

    def nonce(self) -> bytes:
        """The random part of a document that the server makes."""
        return self._draw(NONCE_BYTES)

    def _draw(self, count: int) -> bytes:
        """Random bytes that nobody gets twice."""
        if self._used + count > len(self._random):
            self._random, self._used = os.urandom(_AHEAD), 0
        first, self._used = self._used, self._used + count
        return self._random[first : self._used]
