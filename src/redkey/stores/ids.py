"""Fresh ids from the system's clock and randomness."""

from __future__ import annotations

import os
import time

from redkey.ledger.content import NONCE_BYTES
from redkey.wire.ids import moment, spelled

# The characters of a ULID after those of its time.
_RANDOM_CHARACTERS = 16
# So many random bytes are fetched at once: a call to the system for each id would be felt.
_AHEAD = 4096


class SystemIds:
    """Unguessable ids: 80 bits of each come from the operating system. Threads may share it."""

    def __init__(self) -> None:
        # What was drawn ahead. Taking one is a single step of the interpreter, so nobody gets any of it twice.
        self._endings: list[str] = []
        self._nonces: list[bytes] = []

    def ulid(self) -> str:
        while True:
            try:
                return moment(time.time_ns() // 1_000_000) + self._endings.pop()
            except IndexError:
                drawn = spelled(os.urandom(_AHEAD))
                size = _RANDOM_CHARACTERS
                self._endings += [drawn[first : first + size] for first in range(0, _AHEAD, size)]

    def nonce(self) -> bytes:
        """The random part of a document that the server makes."""
        while True:
            try:
                return self._nonces.pop()
            except IndexError:
                drawn = os.urandom(_AHEAD)
                self._nonces += [drawn[first : first + NONCE_BYTES] for first in range(0, _AHEAD, NONCE_BYTES)]
