"""Fresh ids: ULIDs of the machine's time and randomness."""

from __future__ import annotations

import os
import time

from redkey.ledger.content import NONCE_BYTES
from redkey.wire.ids import ulid

_RANDOM_BYTES = 10
# Random bytes are fetched for this many ids at once: a call to the system for each would be felt.
_AHEAD = 256


class SystemIds:
    """Unguessable ids: 80 bits of each come from the operating system."""

    def __init__(self) -> None:
        self._random = b""
        self._used = 0

    def ulid(self) -> str:
        if self._used == len(self._random):
            self._random, self._used = os.urandom(_RANDOM_BYTES * _AHEAD), 0
        first, self._used = self._used, self._used + _RANDOM_BYTES
        return ulid(time.time_ns() // 1_000_000, self._random[first : self._used])

    def nonce(self) -> bytes:
        """The random part of a document that the server makes."""
        return os.urandom(NONCE_BYTES)
