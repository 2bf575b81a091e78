"""The token of a bus that stands alone: who can read its file may call."""

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
    """The token of a home, made when there is none; refused when others could have read it."""
    path = home / FILE
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as cause:
        raise KeyRefused(f"{path} cannot be opened: {cause.strerror}") from cause
    with os.fdopen(descriptor, "r+") as file:
        found = os.fstat(descriptor)
        if found.st_mode & 0o077 or found.st_uid != os.geteuid():
            raise KeyRefused(f"{path} must be its owner's alone; run chmod 600 on it, or take it away")
        token = file.read().strip()
        if not token:
            token = secrets.token_hex(32)
            file.seek(0)
            file.write(token + "\n")
            file.flush()
            os.fsync(descriptor)
    if not _TOKEN.fullmatch(token):
        raise KeyRefused(f"{path} does not hold a token; take it away, and a new one is made")
    return token


class TokenGate:
    """Lets the holder of the token in."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def __call__(self, exchange: Exchange) -> BusCaller:
        scheme, _, token = exchange.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            raise BusRefused("this needs the token of the bus as a bearer token", code="unauthenticated")
        return BusCaller(key_id="token")
