"""Fresh ids: ULIDs of the machine's time and randomness."""

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
    """Unguessable ids: 80 bits of each come from the operating system."""

    def __init__(self) -> None:
        # What was drawn ahead, each in its form: nobody gets any of it twice.
        self._characters, self._characters_used = "", 0
        self._random, self._random_used = b"", 0

    def ulid(self) -> str:
        first = self._characters_used
        if first == len(self._characters):
            self._characters, first = spelled(os.urandom(_AHEAD)), 0
        self._characters_used = last = first + _RANDOM_CHARACTERS
        return moment(time.time_ns() // 1_000_000) + self._characters[first:last]

    def nonce(self) -> bytes:
        """The random part of a document that the server makes."""
        first = self._random_used
        if first == len(self._random):
            self._random, first = os.urandom(_AHEAD), 0
        self._random_used = last = first + NONCE_BYTES
        return self._random[first:last]
