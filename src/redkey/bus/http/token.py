"""The token of `redkey bus serve`: callers that can read its file may use the bus."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from pathlib import Path

from redkey.bus.http.call import BusCaller
from redkey.errors import BusRefused, KeyRefused
from redkey.http.exchange import Exchange

FILE = "token"
_TOKEN = re.compile(r"[0-9a-f]{64}")


def open_token(home: Path) -> str:
    """Read the token of a home, or create one; refuse a file that other users can read."""
    path = home / FILE
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as cause:
        raise KeyRefused(f"{path} cannot be opened: {cause.strerror}") from cause
    with os.fdopen(descriptor, "r+") as file:
        stats = os.fstat(descriptor)
        if stats.st_mode & 0o077 or stats.st_uid != os.geteuid():
            raise KeyRefused(f"{path} must be readable by its owner only; run chmod 600 on it, or delete it")
        token = file.read().strip()
        if not token:
            token = secrets.token_hex(32)
            file.seek(0)
            file.write(token + "\n")
            file.flush()
            os.fsync(descriptor)
    if not _TOKEN.fullmatch(token):
        raise KeyRefused(f"{path} does not contain a token; delete it to get a new one")
    return token


class TokenGate:
    """Accepts requests with the token of the bus."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def __call__(self, exchange: Exchange) -> BusCaller:
        scheme, _, token = exchange.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            raise BusRefused("this needs the token of the bus as a bearer token", code="unauthenticated")
        return BusCaller(key_id="token")
