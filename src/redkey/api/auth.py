"""The caller of a request: from the Authorization header to the holder of a key. Keys never come in a URL."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from redkey.api.logins import Logins
from redkey.http.limits import Limiter
from redkey.http.problems import Declined
from redkey.services.keys import KeyRing, Principal

_LONGEST = 4096
_RECENT = 10_000


class Tokens(Protocol):
    """Reads access tokens."""

    def holder(self, token: str) -> Principal | None: ...

    def is_ours(self, token: str) -> bool: ...


class Authenticator:
    """Admits callers with a live key or token, within their rate limit."""

    def __init__(self, keys: KeyRing, tokens: Tokens, limiter: Limiter, logins: Logins) -> None:
        self._keys, self._tokens, self._limiter, self._logins = keys, tokens, limiter, logins
        # Authorization headers with a key that was just checked: the same header needs no second check of its key.
        self._recent: dict[bytes, Principal] = {}

    def admit(
        self, headers: Mapping[bytes, bytes], address: str, *, reads: bool
    ) -> tuple[Principal, Sequence[tuple[bytes, bytes]]]:
        """Return the caller, and headers that say how much of its rate limit is left; Declined otherwise.

        `reads`: the request changes nothing. Only then may a browser send the key by HTTP Basic, because browsers also
        send it with requests that other sites trigger.
        """
        header = headers.get(b"authorization", b"")
        recent = self._recent.get(header)
        if recent is not None and self._keys.is_current(recent):
            return recent, self._limiter.take(recent.public_id) if self._limiter.is_on else ()
        scheme_text, _, credential = header.partition(b" ")
        scheme = scheme_text.lower()
        browses = reads and b"text/html" in headers.get(b"accept", b"")
        if browses and scheme == b"basic":
            scheme, credential = b"bearer", _from_basic(credential)
        if not credential:
            raise unauthenticated(browses=browses)
        if scheme != b"bearer" or len(credential) > _LONGEST or not credential.isascii():
            _refuse("unauthenticated", "The Authorization header must be Bearer and a key or token.", "invalid_request")
        text = credential.decode().strip()
        is_key = text.startswith("rk_")
        principal = self._keys.authenticate(text) if is_key else self._tokens.holder(text)
        if principal is None:
            # An expired token of ours is not a failed login: its holder only needs a new one.
            if is_key or not self._tokens.is_ours(text):
                self._logins.failed(address, text[3:].partition("_")[0] if is_key else "")
            detail = "The key or token is not valid, has expired, or was revoked."
            _refuse("invalid_token", detail, "invalid_token", browses=browses)
        if is_key and scheme_text.lower() == b"bearer":
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            self._recent[header] = principal
        return principal, self._limiter.take(principal.public_id)


def _from_basic(packed: bytes) -> bytes:
    """The key that a browser sends as user name (its public id) and password (its secret)."""
    try:
        public, _, secret = b64decode(packed.strip(), validate=True).partition(b":")
    except ValueError:
        return b"rk_"
    return b"rk_" + public.removeprefix(b"rk_") + b"_" + secret


def unauthenticated(*, browses: bool) -> Declined:
    """The refusal of a request without a key; a browser asks its user for one."""
    return _challenged("unauthenticated", "This request needs an API key or an access token.", "", browses=browses)


def _refuse(code: str, detail: str, error: str, *, browses: bool = False) -> NoReturn:
    raise _challenged(code, detail, error, browses=browses)


def _challenged(code: str, detail: str, error: str, *, browses: bool) -> Declined:
    challenge = 'Bearer realm="redkey"' + (f', error="{error}"' if error else "")
    if browses:
        challenge = 'Basic realm="RedKey: the public id of a key, and its secret"'
    return Declined(401, code, detail, headers={"www-authenticate": challenge})
