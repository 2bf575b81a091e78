"""OAuth 2.0 client credentials (RFC 6749, section 4.4): a key's public id and secret for a short-lived token.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get, without_key
from redkey.shapes.oauth import JsonWebKeySet, OAuthMetadata


class Oauth(Resource[Mode]):
    """OAuth 2.0 client credentials (RFC 6749, section 4.4): a key's public id and secret for a short-lived token."""

    @Operation
    def metadata(self) -> Request[OAuthMetadata]:
        """What the authorization server can do (RFC 8414)."""
        return without_key(get("/.well-known/oauth-authorization-server", OAuthMetadata))

    @Operation
    def key_set(self) -> Request[JsonWebKeySet]:
        """The public keys of access tokens."""
        return without_key(get("/.well-known/jwks.json", JsonWebKeySet))
