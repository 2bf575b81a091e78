"""Login codes: a link that opens the Studio without a key in it. A code is valid once, for ten minutes.

Codes are kept in memory, as hashes: a code works at the server that created it, until that server stops.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import sha256

import msgspec

from redkey.services.keys import Principal

CODE_SECONDS = 600
# More than are opened in ten minutes; beyond it the oldest code ends.
_MOST_CODES = 1000


class _Code(msgspec.Struct, frozen=True):
    public_id: str
    key_id: str
    ends_at: float


class LoginCodes:
    """The unused codes of one server."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is monotonic seconds."""
        self._now = now
        self._codes: dict[bytes, _Code] = {}

    def make(self, principal: Principal) -> str:
        """Create a code for the holder of a key."""
        if len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        ends_at = self._now() + CODE_SECONDS
        self._codes[_digest(code)] = _Code(principal.public_id, principal.actor.key_id, ends_at)
        return code

    def take(self, code: str) -> tuple[str, str] | None:
        """Use a code: return the public id and the key id of its holder; None if it is unknown, used or too old."""
        found = self._codes.pop(_digest(code), None)
        if found is None or found.ends_at <= self._now():
            return None
        return found.public_id, found.key_id


def _digest(code: str) -> bytes:
    return sha256(code.encode()).digest()
