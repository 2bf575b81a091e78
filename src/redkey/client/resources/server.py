"""The server itself: is it alive, what does it count, what can it do; and tokens in exchange for keys."""

from __future__ import annotations

from urllib.parse import urlencode

from redkey.client.calls import oauth, server
from redkey.client.operation import Mode, Operation
from redkey.client.request import Request, get, reader
from redkey.shapes.oauth import FORM as _FORM
from redkey.shapes.oauth import AccessToken


class Server(server.Server[Mode]):
    """What operators look at."""

    @Operation
    def metrics(self) -> Request[str]:
        """Figures for Prometheus."""
        return get("/metrics", str, accept="text/plain")


class OAuth(oauth.Oauth[Mode]):
    """Short-lived access tokens (RFC 6749, client credentials)."""

    @Operation
    def token(self, client_id: str, client_secret: str, *, scope: str | None = None) -> Request[AccessToken]:
        """A token for a key: its public id and its secret; `scope` asks for fewer scopes than all of the key's."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        body = urlencode(form | ({"scope": scope} if scope is not None else {})).encode()
        return Request("POST", "/oauth/token", reader(AccessToken), body=body, media=_FORM, public=True)
