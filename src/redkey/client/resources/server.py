"""The server itself: health, metrics and features; and tokens in exchange for keys."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from redkey.client.calls import oauth, server
from redkey.client.operation import Mode, Operation
from redkey.client.request import Request, get, reader
from redkey.shapes.oauth import FORM as _FORM
from redkey.shapes.oauth import AccessToken, RegisteredClient, TokenRevoked


class Server(server.Server[Mode]):
    """The endpoints for operators."""

    @Operation
    def metrics(self) -> Request[str]:
        """Return the metrics, in the format of Prometheus."""
        return get("/metrics", str, accept="text/plain")


class OAuth(oauth.Oauth[Mode]):
    """Short-lived access tokens (RFC 6749) for keys and for people; the tokens of people can be revoked."""

    @Operation
    def token(self, client_id: str, client_secret: str, *, scope: str | None = None) -> Request[AccessToken]:
        """Exchange a key, as its public id and secret, for a token; `scope` asks for some of the key's scopes."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        body = urlencode(form | ({"scope": scope} if scope is not None else {})).encode()
        return Request("POST", "/oauth/token", reader(AccessToken), body=body, media=_FORM, public=True)

    @Operation
    def register(
        self,
        *,
        redirect_uris: Sequence[str],
        client_name: str | None = None,
        token_endpoint_auth_method: str | None = None,
        grant_types: Sequence[str] | None = None,
        response_types: Sequence[str] | None = None,
    ) -> Request[RegisteredClient]:
        """Register a client that asks people to log in (RFC 7591, whose field names are not in camel case)."""
        metadata = {"redirect_uris": redirect_uris, "client_name": client_name, "grant_types": grant_types}
        metadata |= {"response_types": response_types, "token_endpoint_auth_method": token_endpoint_auth_method}
        body = msgspec.json.encode({name: value for name, value in metadata.items() if value is not None})
        return Request("POST", "/oauth/register", reader(RegisteredClient), body=body, public=True)

    @Operation
    def revoke(
        self, token: str, *, token_type_hint: str | None = None, client_id: str | None = None
    ) -> Request[TokenRevoked]:
        """End a person's session, given its refresh token or access token."""
        hints = {"token_type_hint": token_type_hint, "client_id": client_id}
        body = urlencode(
            {"token": token} | {name: value for name, value in hints.items() if value is not None}
        ).encode()
        return Request("POST", "/oauth/revoke", reader(TokenRevoked), body=body, media=_FORM, public=True)
