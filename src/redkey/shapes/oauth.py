"""OAuth 2.0: short-lived tokens for keys (client credentials) and for people (authorization code with PKCE, refresh).

The page where people log in (`/oauth/authorize`) is for browsers, not for programs, so it is not an operation. Errors
here have the format of RFC 6749, section 5.2, because OAuth clients expect it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from redkey.shapes.fields import Reply, SecretReply, one_of
from redkey.shapes.operation import Operation

FORM = "application/x-www-form-urlencoded"


class TokenRequest(msgspec.Struct, frozen=True):
    """The form. Client id and secret are in the form or in HTTP Basic, not in both; `scope` asks for fewer scopes.

    A token may have every scope that its key includes: admin includes produce, runner and read; produce, runner and
    agent each include read.
    """

    grant_type: Literal["client_credentials", "authorization_code", "refresh_token"]
    scope: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    # For an authorization code: its redirect URI, and the verifier of its challenge (RFC 7636).
    code: str | None = None
    redirect_uri: str | None = None
    code_verifier: str | None = None
    refresh_token: str | None = None
    # The server that the token is for (RFC 8707): this one, or its /mcp.
    resource: str | None = None


class AccessToken(SecretReply, rename=None, frozen=True, kw_only=True):
    """An access token."""

    access_token: str
    token_type: Annotated[str, one_of("Bearer")]
    expires_in: int
    scope: str
    # For people: exchange it once for the next pair of tokens.
    refresh_token: str | None = None


class RevocationRequest(msgspec.Struct, frozen=True):
    """The form: a refresh or access token of a person; its session ends."""

    token: str
    token_type_hint: str | None = None
    client_id: str | None = None


class TokenRevoked(Reply, rename=None, frozen=True, kw_only=True):
    """The token is no longer valid, if it ever was."""

    status: Annotated[str, one_of("revoked")]


class ClientMetadata(msgspec.Struct, frozen=True):
    """A client that registers itself (RFC 7591); other fields are ignored."""

    redirect_uris: Annotated[tuple[str, ...], msgspec.Meta(max_length=5)]
    client_name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    token_endpoint_auth_method: str = "none"  # noqa: S105 - not a secret, but how clients authenticate
    grant_types: tuple[str, ...] = ("authorization_code",)
    response_types: tuple[str, ...] = ("code",)


class RegisteredClient(Reply, rename=None, frozen=True, kw_only=True):
    """A client that may ask people to log in. Its id contains all of this; the server stores nothing."""

    client_id: str
    client_name: str
    redirect_uris: tuple[str, ...]
    token_endpoint_auth_method: str
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]


class ProtectedResource(Reply, rename=None, frozen=True, kw_only=True):
    """Where a client gets tokens for this server (RFC 9728)."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...]
    bearer_methods_supported: tuple[str, ...]
    resource_documentation: str


class OAuthError(msgspec.Struct, frozen=True):
    """Why there is no token (RFC 6749, section 5.2)."""

    error: str
    error_description: str


class OAuthMetadata(Reply, rename=None, frozen=True, kw_only=True):
    """What this authorization server can do (RFC 8414)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    jwks_uri: str
    scopes_supported: tuple[str, ...]
    response_types_supported: tuple[str, ...]
    grant_types_supported: tuple[str, ...]
    token_endpoint_auth_methods_supported: tuple[str, ...]
    code_challenge_methods_supported: tuple[str, ...]
    authorization_response_iss_parameter_supported: bool
    service_documentation: str


class JsonWebKey(Reply, rename=None, frozen=True, kw_only=True):
    """A public key (RFC 7517, RFC 8037)."""

    kty: str
    crv: str
    x: str
    kid: str
    use: str
    alg: str


class JsonWebKeySet(Reply, rename=None, frozen=True, kw_only=True):
    """The keys that sign access tokens."""

    keys: tuple[JsonWebKey, ...]


# The SDK's method is written by hand: it sends a form.
TOKEN = Operation(
    "token",
    "POST",
    "/oauth/token",
    body=TokenRequest,
    reply=AccessToken,
    summary="Exchange a key, an authorization code or a refresh token for a short-lived access token.",
    description="Exchange a key for a short-lived token with its scopes or fewer; or a person's code or refresh token "
    "for the next pair of tokens.",
    streamed=True,
    idempotent=False,
    consumes=FORM,
    replies={
        400: "The request is invalid; the format of the error is that of RFC 6749.",
        401: "The client is unknown.",
        429: "The client sends too many requests, or too many logins failed.",
    },
    failure=OAuthError,
    example={"grant_type": "client_credentials", "scope": "produce"},
    reply_example={
        "access_token": "eyJhbGciOiJFZERTQSIs…",
        "token_type": "Bearer",
        "expires_in": 900,
        "scope": "produce",
    },
)
SERVER_METADATA = Operation(
    "server_metadata",
    "GET",
    "/.well-known/oauth-authorization-server",
    reply=OAuthMetadata,
    summary="What the authorization server can do (RFC 8414).",
    description="Where clients get and check tokens.",
    method_name="oauth.metadata",
)
KEY_SET = Operation(
    "key_set",
    "GET",
    "/.well-known/jwks.json",
    reply=JsonWebKeySet,
    summary="The keys that sign access tokens.",
    description="The public keys of access tokens.",
    method_name="oauth.key_set",
)

REVOKE_TOKEN = Operation(
    "revoke_token",
    "POST",
    "/oauth/revoke",
    body=RevocationRequest,
    reply=TokenRevoked,
    summary="End the session that a token of a person belongs to (RFC 7009).",
    description="End the session of a token. A token that is unknown or has ended gets the same reply.",
    streamed=True,
    idempotent=False,
    consumes=FORM,
    replies={400: "The request is invalid; the format of the error is that of RFC 6749."},
    failure=OAuthError,
    example={"token": "rkt_…"},
    reply_example={"status": "revoked"},
)
REGISTER_CLIENT = Operation(
    "register_client",
    "POST",
    "/oauth/register",
    body=ClientMetadata,
    reply=RegisteredClient,
    status=201,
    summary="Register a client that asks people to log in (RFC 7591).",
    idempotent=False,
    replies={400: "A redirect URI or other metadata is refused; the format of the error is that of RFC 6749."},
    failure=OAuthError,
    example={"client_name": "An editor", "redirect_uris": ["http://127.0.0.1/callback"]},
    reply_example={
        "client_id": "rkd_…",
        "client_name": "An editor",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    },
    method_name="oauth.register",
)
PROTECTED_RESOURCE = Operation(
    "protected_resource",
    "GET",
    "/.well-known/oauth-protected-resource",
    reply=ProtectedResource,
    summary="Where clients get tokens for this server (RFC 9728).",
    method_name="oauth.resource",
)
PROTECTED_MCP = Operation(
    "protected_mcp",
    "GET",
    "/.well-known/oauth-protected-resource/mcp",
    reply=ProtectedResource,
    summary="Where MCP clients get tokens for /mcp (RFC 9728).",
    method_name="oauth.mcp_resource",
)

OPERATIONS = (TOKEN, REVOKE_TOKEN, REGISTER_CLIENT, SERVER_METADATA, PROTECTED_RESOURCE, PROTECTED_MCP, KEY_SET)
