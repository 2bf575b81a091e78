"""The server itself: is it alive, what does it count, what can it do; and tokens in exchange for keys."""

from __future__ import annotations

from urllib.parse import urlencode

from redkey.client.calls import oauth, server
from redkey.client.operation import Mode, Operation
from redkey.client.request import Request, get, reader
from redkey.shapes.oauth import FORM as _FORM
from redkey.shapes.oauth import AccessToken, TokenRevoked


class Server(server.Server[Mode]):
    """What operators look at."""

    @Operation
    def metrics(self) -> Request[str]:
        """Figures for Prometheus."""
        return get("/metrics", str, accept="text/plain")


class OAuth(oauth.Oauth[Mode]):
    """Short-lived access tokens (RFC 6749): of keys by client credentials; those of people can be revoked."""

    @Operation
    def token(self, client_id: str, client_secret: str, *, scope: str | None = None) -> Request[AccessToken]:
        """A token for a key: its public id and its secret; `scope` asks for fewer scopes than all of the key's."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        body = urlencode(form | ({"scope": scope} if scope is not None else {})).encode()
        return Request("POST", "/oauth/token", reader(AccessToken), body=body, media=_FORM, public=True)

    @Operation
    def revoke(
        self, token: str, *, token_type_hint: str | None = None, client_id: str | None = None
    ) -> Request[TokenRevoked]:
        """End the session that a refresh or access token of a person belongs to."""
        hints = {"token_type_hint": token_type_hint, "client_id": client_id}
        body = urlencode(
            {"token": token} | {name: value for name, value in hints.items() if value is not None}
        ).encode()
        return Request("POST", "/oauth/revoke", reader(TokenRevoked), body=body, media=_FORM, public=True)
