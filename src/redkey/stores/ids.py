"""Generate ids from the system clock and random source."""

from __future__ import annotations

import os
import time

from redkey.ledger.content import NONCE_BYTES
from redkey.wire.ids import moment, spelled

# The characters of a ULID after those of its time.
_RANDOM_CHARACTERS = 16
# How many random bytes are fetched at once: a system call for each id would be slow.
_AHEAD = 4096


class SystemIds:
    """Generates unguessable ids: each has 80 random bits from the operating system. Thread-safe."""

    def __init__(self) -> None:
        # Random parts fetched in advance. `list.pop` is atomic, so no two threads get the same one.
        self._endings: list[str] = []
        self._nonces: list[bytes] = []

    def ulid(self) -> str:
        """Return a new ULID."""
        while True:
            try:
                return moment(time.time_ns() // 1_000_000) + self._endings.pop()
            except IndexError:
                drawn = spelled(os.urandom(_AHEAD))
                size = _RANDOM_CHARACTERS
                self._endings += [drawn[first : first + size] for first in range(0, _AHEAD, size)]

    def nonce(self) -> bytes:
        """Return the random salt of a document that the server creates."""
        while True:
            try:
                return self._nonces.pop()
            except IndexError:
                drawn = os.urandom(_AHEAD)
                self._nonces += [drawn[first : first + NONCE_BYTES] for first in range(0, _AHEAD, NONCE_BYTES)]
