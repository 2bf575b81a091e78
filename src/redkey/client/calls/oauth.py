"""OAuth 2.0: short-lived tokens for keys (client credentials) and for people (authorization code with PKCE, refresh).

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get, without_key
from redkey.shapes.oauth import JsonWebKeySet, OAuthMetadata, ProtectedResource


class Oauth(Resource[Mode]):
    """OAuth 2.0: short-lived tokens for keys (client credentials) and for people (authorization code with PKCE,
    refresh).
    """

    @Operation
    def metadata(self) -> Request[OAuthMetadata]:
        """What the authorization server can do (RFC 8414)."""
        return without_key(get("/.well-known/oauth-authorization-server", OAuthMetadata))

    @Operation
    def key_set(self) -> Request[JsonWebKeySet]:
        """The public keys of access tokens."""
        return without_key(get("/.well-known/jwks.json", JsonWebKeySet))

    @Operation
    def resource(self) -> Request[ProtectedResource]:
        """Where clients get tokens for this server (RFC 9728)."""
        return without_key(get("/.well-known/oauth-protected-resource", ProtectedResource))

    @Operation
    def mcp_resource(self) -> Request[ProtectedResource]:
        """Where MCP clients get tokens for /mcp (RFC 9728)."""
        return without_key(get("/.well-known/oauth-protected-resource/mcp", ProtectedResource))
