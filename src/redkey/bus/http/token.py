"""Who may call a bus that stands alone: whoever can read its token file, from this machine, and no page of a browser.

A page that a browser has open could send requests to this machine, by another name for it or with the user's help.
So the Host must be this machine's, and an Origin, when there is one, too.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from redkey.bus.http.call import BusCaller, Exchange
from redkey.errors import BusRefused, KeyRefused

FILE = "token"
_TOKEN = re.compile(r"[0-9a-f]{64}")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


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
        headers = exchange.headers
        if _host(headers.get(b"host", b"").decode("latin-1")) not in _LOCAL:
            raise BusRefused("the Host of a request must be this machine", code="host_refused")
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1")).hostname not in _LOCAL:
            raise BusRefused("a page of another origin may not call the bus", code="origin_refused")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            raise BusRefused("this needs the token of the bus as a bearer token", code="unauthenticated")
        return BusCaller(key_id="token")


def _host(text: str) -> str:
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""
