"""Who calls: from the Authorization header to the holder of a key. Keys never come in a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, Protocol

from redkey.api.limits import Limiter
from redkey.api.problem import Declined
from redkey.services.keys import KeyRing, Principal

_LONGEST = 4096


class Tokens(Protocol):
    """Reads access tokens."""

    def holder(self, token: str) -> Principal | None: ...


class Authenticator:
    """Admits callers: a live key or token, within its rate."""

    def __init__(self, keys: KeyRing, tokens: Tokens, limiter: Limiter) -> None:
        self._keys, self._tokens, self._limiter = keys, tokens, limiter

    def admit(self, headers: Mapping[bytes, bytes]) -> tuple[Principal, list[tuple[bytes, bytes]]]:
        """The caller, and the headers that tell it how much of its rate is left; Declined otherwise."""
        scheme, _, credential = headers.get(b"authorization", b"").partition(b" ")
        if not credential:
            _refuse("unauthenticated", "This needs an API key or an access token.", "")
        if scheme.lower() != b"bearer" or len(credential) > _LONGEST or not credential.isascii():
            _refuse("unauthenticated", "The Authorization header must be Bearer and a key or token.", "invalid_request")
        text = credential.decode().strip()
        principal = self._keys.authenticate(text) if text.startswith("rk_") else self._tokens.holder(text)
        if principal is None:
            _refuse("invalid_token", "The key or token is not valid, has expired, or was revoked.", "invalid_token")
        return principal, self._limiter.take(principal.public_id)


def _refuse(code: str, detail: str, error: str) -> NoReturn:
    challenge = 'Bearer realm="redkey"' + (f', error="{error}"' if error else "")
    raise Declined(401, code, detail, headers={"www-authenticate": challenge})
