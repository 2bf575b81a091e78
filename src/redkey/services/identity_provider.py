"""An external identity provider (OpenID Connect): found by discovery, trusted by the keys it publishes.

The operator names the issuer, so its addresses are trusted; responses are bounded in size and time, and redirects are
not followed. An ID token counts if one of the provider's keys signed it by a known asymmetric algorithm, for this
client, with the nonce of this login, and with an e-mail address that the provider has verified.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt
import msgspec

from redkey.commands.decision import Refused
from redkey.config import Oidc

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
_REQUIRED = ["iss", "sub", "aud", "exp", "iat", "nonce"]
_SECONDS = 10.0
_BYTES = 256 * 1024
# How long discovery and keys are cached. An unknown key id triggers another read, at most once a minute.
_FRESH_SECONDS, _RETRY_SECONDS = 3600.0, 60.0
_LEEWAY_SECONDS = 60
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Identity(msgspec.Struct, frozen=True):
    """The person who logged in at the provider."""

    issuer: str
    subject: str
    email: str


class IdentityProvider:
    """The provider of a server, or none."""

    def __init__(self, config: Oidc, redirect_uri: str, now: Callable[[], float] = time.monotonic) -> None:
        self.name, self._config, self._redirect_uri, self._now = config.name, config, redirect_uri, now
        self._found: tuple[float, _Discovery] | None = None
        self._keys: tuple[float, jwt.PyJWKSet] | None = None

    @property
    def is_on(self) -> bool:
        """True if the operator has named a provider."""
        return bool(self._config.issuer)

    async def login_url(self, state: str, nonce: str, challenge: str) -> str:
        """Return the provider's login URL for the browser."""
        found = await self._discover()
        query = {
            "response_type": "code",
            "client_id": self._config.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": "openid email",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        mark = "&" if urlsplit(found.authorization_endpoint).query else "?"
        return f"{found.authorization_endpoint}{mark}{urlencode(query)}"

    async def identity(self, code: str, verifier: str, nonce: str) -> Identity:
        """Exchange the provider's code; return who logged in, or raise Refused."""
        found = await self._discover()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "client_id": self._config.client_id,
            "code_verifier": verifier,
        }
        if self._config.client_secret_file is not None:
            form["client_secret"] = (await asyncio.to_thread(self._config.client_secret_file.read_text)).strip()
        reply = await self._fetch(found.token_endpoint, form)
        token = reply.get("id_token")
        if not isinstance(token, str):
            raise _refused("its answer has no ID token")
        return await self._read(token, nonce)

    async def _read(self, token: str, nonce: str) -> Identity:
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            said = jwt.decode(
                token,
                key,
                _ALGORITHMS,
                audience=self._config.client_id,
                issuer=self._config.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": _REQUIRED},
            )
        except jwt.PyJWTError as cause:
            raise _refused(f"its ID token is not valid ({type(cause).__name__})") from cause
        if said["nonce"] != nonce or said.get("azp", self._config.client_id) != self._config.client_id:
            raise _refused("its ID token is for another login")
        email = said.get("email")
        if not isinstance(email, str) or said.get("email_verified") is not True:
            raise _refused("it has not verified an e-mail address of yours")
        return Identity(said["iss"], str(said["sub"]), email)

    async def _discover(self) -> _Discovery:
        if self._found is None or self._now() - self._found[0] > _FRESH_SECONDS:
            issuer = self._config.issuer
            reply = await self._fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            try:
                found = msgspec.convert(reply, _Discovery)
            except msgspec.ValidationError as cause:
                raise _refused(f"its configuration is wrong: {cause}") from cause
            if found.issuer != issuer:
                raise _refused(f"it names another issuer, {found.issuer[:100]}")
            self._found = self._now(), found
        return self._found[1]

    async def _key(self, key_id: str) -> jwt.PyJWK:
        """Return the provider's key with an id; keys are read again if it is not known, as after a rotation."""
        found = await self._discover()
        age = self._now() - self._keys[0] if self._keys is not None else _FRESH_SECONDS + 1
        known = {one.key_id: one for one in self._keys[1].keys} if self._keys is not None else {}
        if age > _FRESH_SECONDS or (key_id not in known and age > _RETRY_SECONDS):
            self._keys = self._now(), jwt.PyJWKSet.from_dict(await self._fetch(found.jwks_uri))
            known = {one.key_id: one for one in self._keys[1].keys}
        if key_id not in known:
            raise _refused("its ID token is signed by an unknown key")
        return known[key_id]

    async def _fetch(self, url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at one of the provider's addresses; a form is sent as a POST."""
        # Few servers have a provider, and importing an HTTP client is slow.
        import httpx2

        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise _refused("one of its addresses is not https")
        method = "GET" if form is None else "POST"
        read = bytearray()
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(follow_redirects=False, trust_env=False, timeout=_SECONDS) as http,
                http.stream(method, url, data=form, headers={"accept": "application/json"}) as reply,
            ):
                async for chunk in reply.aiter_bytes():
                    read += chunk
                    if len(read) > _BYTES:
                        raise _refused("its answer is too large")
                status = reply.status_code
            found = msgspec.json.decode(read, type=dict[str, Any])
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError) as cause:
            raise _refused("it does not answer") from cause
        except msgspec.DecodeError as cause:
            raise _refused("its answer is not JSON") from cause
        if status != 200:
            raise _refused(f"it answers with status {status}")
        return found


def _refused(why: str) -> Refused:
    return Refused(502, "identity_provider_failed", f"The identity provider cannot log you in: {why}.")
