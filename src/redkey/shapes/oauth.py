"""OAuth 2.0 client credentials (RFC 6749, section 4.4): a key's public id and secret for a short-lived token.

Errors here have the shape of RFC 6749, section 5.2, because that is what OAuth clients read.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from redkey.shapes.fields import Reply, SecretReply, one_of
from redkey.shapes.operation import Operation

FORM = "application/x-www-form-urlencoded"


class TokenRequest(msgspec.Struct, frozen=True):
    """The form. Client id and secret come here or by HTTP Basic, not by both; `scope` asks for fewer than all.

    A token may have every scope that its key includes: admin includes produce, runner and read, and each of produce,
    runner and agent includes read.
    """

    grant_type: Literal["client_credentials"]
    scope: str | None = None
    client_id: str | None = None
    client_secret: str | None = None


class AccessToken(SecretReply, rename=None, frozen=True, kw_only=True):
    """An access token."""

    access_token: str
    token_type: Annotated[str, one_of("Bearer")]
    expires_in: int
    scope: str


class OAuthError(msgspec.Struct, frozen=True):
    """Why there is no token (RFC 6749, section 5.2)."""

    error: str
    error_description: str


class OAuthMetadata(Reply, rename=None, frozen=True, kw_only=True):
    """What this authorization server can do (RFC 8414)."""

    issuer: str
    token_endpoint: str
    jwks_uri: str
    scopes_supported: tuple[str, ...]
    response_types_supported: tuple[str, ...]
    grant_types_supported: tuple[str, ...]
    token_endpoint_auth_methods_supported: tuple[str, ...]
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
    summary="Exchange a key for a short-lived access token (client credentials).",
    description="Exchange a key for a short-lived token with its scopes, or fewer.",
    streamed=True,
    idempotent=False,
    consumes=FORM,
    replies={
        400: "The request is wrong, in the shape of RFC 6749.",
        401: "The client is not known.",
        429: "The client makes too many requests, or too many logins failed.",
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
    description="Where tokens are given and checked.",
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

OPERATIONS = (TOKEN, SERVER_METADATA, KEY_SET)
