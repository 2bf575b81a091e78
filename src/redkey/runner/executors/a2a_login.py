"""Authentication at a remote agent: the operator's headers, or tokens by OAuth client credentials.

Secrets are sent only to the agent's own origin, whatever addresses its card names.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from redkey.errors import ConfigRefused, StepFailed

# A token is renewed this many seconds before it expires.
_EARLY_SECONDS = 30.0
_LIFE_SECONDS = 300.0


class _Token(msgspec.Struct, frozen=True):
    """The answer of a token endpoint."""

    access_token: Annotated[str, msgspec.Meta(pattern=r"^[!-~]+\Z")]
    expires_in: float = _LIFE_SECONDS


class Login:
    """The credentials for one agent."""

    def __init__(
        self, origin: str, headers: Mapping[str, str], token_url: str = "", client: tuple[str, str] = ("", "")
    ) -> None:
        self._origin, self._headers, self._token_url, self._client = origin, dict(headers), token_url, client
        self._token, self._until = "", 0.0

    @classmethod
    def read(cls, url: str, headers: Sequence[str], token_url: str | None, environment: Mapping[str, str]) -> Login:
        """Read the credentials from the options; ConfigRefused if one cannot be used."""
        found: dict[str, str] = {}
        for header in headers:
            name, colon, value = header.partition(":")
            text = value.strip()
            if not colon or not name.strip().replace("-", "").isalnum() or not (text.isascii() and text.isprintable()):
                raise ConfigRefused("--a2a-header takes NAME: VALUE")
            found[name.strip().lower()] = text
        client = environment.get("A2A_CLIENT_ID", ""), environment.get("A2A_CLIENT_SECRET", "")
        if token_url and not all(client):
            raise ConfigRefused("--a2a-oauth needs the variables A2A_CLIENT_ID and A2A_CLIENT_SECRET")
        if token_url and not token_url.startswith(("http://", "https://")):
            raise ConfigRefused("--a2a-oauth takes the http or https URL of a token endpoint")
        return cls(_origin(url), found, token_url or "", client)

    async def headers(self, http: Any) -> dict[str, str]:
        """Return the headers for the next call, with a valid token."""
        if not self._token_url:
            return self._headers
        if time.monotonic() >= self._until:
            answer = await http.post(self._token_url, data={"grant_type": "client_credentials"}, auth=self._client)
            if answer.status_code != 200:
                text = f"the token endpoint answers {answer.status_code}"
                raise StepFailed(f"the remote agent cannot be reached: {text}", code="spawn_failed")
            try:
                found = msgspec.json.decode(answer.content, type=_Token, strict=False)
            except msgspec.DecodeError as cause:
                text = "the token endpoint answers without a token"
                raise StepFailed(f"the remote agent cannot be reached: {text}", code="spawn_failed") from cause
            self._token, self._until = found.access_token, time.monotonic() + found.expires_in - _EARLY_SECONDS
        return {**self._headers, "authorization": f"Bearer {self._token}"}

    def auth(self, http: Any) -> Any:
        """Return an httpx auth that adds the headers to requests to the agent's origin only and renews the token."""
        import httpx

        login = self

        class SameOrigin(httpx.Auth):
            async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
                if _origin(str(request.url)) == login._origin:
                    request.headers.update(await login.headers(http))
                yield request

        return SameOrigin()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"
