"""OAuth 2.0 client credentials (RFC 6749, section 4.4): a key's public id and secret for a short-lived token.

Errors here have the shape of RFC 6749, section 5.2, because that is what OAuth clients read.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from redkey.api.call import Call, Raw
from redkey.http.request import chunks, declared_size
from redkey.http.route import Route
from redkey.services.keys import SCOPES, Principal, passable

FORM = "application/x-www-form-urlencoded"
_FORM_BYTES = 8192


class TokenRequest(msgspec.Struct, frozen=True):
    """The form. Client id and secret come here or by HTTP Basic, not by both; `scope` asks for fewer than all.

    A token may have every scope that its key includes: admin includes produce, runner and read, and each of produce,
    runner and agent includes read.
    """

    grant_type: Literal["client_credentials"]
    scope: str | None = None
    client_id: str | None = None
    client_secret: str | None = None


class TokenReply(msgspec.Struct, frozen=True):
    """An access token."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    scope: str


class OAuthError(msgspec.Struct, frozen=True):
    """Why there is no token (RFC 6749, section 5.2)."""

    error: str
    error_description: str


class ServerMetadata(msgspec.Struct, frozen=True):
    """What this authorization server can do (RFC 8414)."""

    issuer: str
    token_endpoint: str
    jwks_uri: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    service_documentation: str


class JsonWebKey(msgspec.Struct, frozen=True):
    """A public key (RFC 7517, RFC 8037)."""

    kty: str
    crv: str
    x: str
    kid: str
    use: str
    alg: str


class JsonWebKeySet(msgspec.Struct, frozen=True):
    """The keys that sign access tokens."""

    keys: list[JsonWebKey]


class _Failed(Exception):
    """No token is given."""

    def __init__(self, error: str, description: str, *, status: int = 400, basic: bool = False) -> None:
        super().__init__(description)
        self.error, self.description, self.status, self.basic = error, description, status, basic


async def token(call: Call) -> Any:
    """Exchange a key for a short-lived token with its scopes, or fewer."""
    try:
        form = _form(call.exchange.headers, await _body(call))
        principal = _client(call, form)
        scopes = _scopes(form.get("scope"), principal)
    except _Failed as failed:
        return _failure(failed)
    told = call.services.limiter.take(principal.public_id)
    seconds = call.services.config.token_seconds
    reply = TokenReply(call.services.tokens.issue(principal, scopes, seconds), "Bearer", seconds, " ".join(scopes))
    return Raw(msgspec.json.encode(reply), headers=((b"pragma", b"no-cache"), *told))


async def server_metadata(call: Call) -> ServerMetadata:
    """Where tokens are given and checked."""
    base = call.services.config.public_url
    return ServerMetadata(
        issuer=base,
        token_endpoint=f"{base}/oauth/token",
        jwks_uri=f"{base}/.well-known/jwks.json",
        scopes_supported=list(SCOPES),
        response_types_supported=[],
        grant_types_supported=["client_credentials"],
        token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post"],
        service_documentation=f"{base}/docs",
    )


async def key_set(call: Call) -> JsonWebKeySet:
    """The public keys of access tokens."""
    return msgspec.convert(call.services.tokens.key_set, JsonWebKeySet)


async def _body(call: Call) -> bytes:
    declared_size(call.exchange.headers, _FORM_BYTES)
    return b"".join([chunk async for chunk in chunks(call.exchange.receive, _FORM_BYTES)])


def _form(headers: Mapping[bytes, bytes], body: bytes) -> dict[str, str]:
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if media != FORM:
        raise _Failed("invalid_request", f"The body must be {FORM}.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=16, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise _Failed("invalid_request", "The form cannot be read.") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise _Failed("invalid_request", "A parameter stands twice.")
    if "grant_type" not in form:
        raise _Failed("invalid_request", "grant_type is missing.")
    if form["grant_type"] != "client_credentials":
        raise _Failed("unsupported_grant_type", "Only client_credentials is supported.")
    return form


def _client(call: Call, form: Mapping[str, str]) -> Principal:
    """The key that asks; a wrong id and a wrong secret are answered alike."""
    scheme, _, packed = call.exchange.headers.get(b"authorization", b"").partition(b" ")
    basic = bool(scheme)
    if basic and ("client_secret" in form or "client_id" in form):
        raise _Failed("invalid_request", "Send client credentials by HTTP Basic or in the body, not both.")
    if basic:
        client, secret = _basic(scheme, packed)
    else:
        client, secret = form.get("client_id", ""), form.get("client_secret", "")
    public = client.removeprefix("rk_")
    principal = call.services.keys.authenticate(f"rk_{public}_{secret}") if public and secret else None
    if principal is None or "_" in public:
        call.services.logins.failed(call.exchange.connection.address, public)
        raise _Failed(
            "invalid_client", "The client id and secret are not those of a live key.", status=401, basic=basic
        )
    return principal


def _basic(scheme: bytes, packed: bytes) -> tuple[str, str]:
    try:
        if scheme.lower() != b"basic":
            raise ValueError(scheme)
        client, colon, secret = b64decode(packed.strip(), validate=True).decode().partition(":")
        if not colon:
            raise ValueError(client)
    except (ValueError, UnicodeDecodeError, binascii.Error):
        detail = "The Authorization header is not HTTP Basic."
        raise _Failed("invalid_client", detail, status=401, basic=True) from None
    return unquote_plus(client), unquote_plus(secret)


def _scopes(asked: str | None, principal: Principal) -> list[str]:
    held = [scope for scope in SCOPES if scope in principal.actor.scopes]
    if asked is None:
        return held
    wanted, allowed = set(asked.split(" ")), passable(held)
    if not wanted <= allowed:
        names = " ".join(scope for scope in SCOPES if scope in allowed)
        raise _Failed("invalid_scope", f"A token of this key may have the scopes {names}, with one space between them.")
    return [scope for scope in SCOPES if scope in wanted]


def _failure(failed: _Failed) -> Raw:
    headers = ((b"www-authenticate", b'Basic realm="redkey"'),) if failed.basic else ()
    body = msgspec.json.encode(OAuthError(failed.error, failed.description))
    return Raw(body, status=failed.status, headers=headers)


ROUTES = [
    Route(
        "POST",
        "/oauth/token",
        token,
        body=TokenRequest,
        reply=TokenReply,
        summary="Exchange a key for a short-lived access token (client credentials).",
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
    ),
    Route(
        "GET",
        "/.well-known/oauth-authorization-server",
        server_metadata,
        reply=ServerMetadata,
        summary="What the authorization server can do (RFC 8414).",
    ),
    Route("GET", "/.well-known/jwks.json", key_set, reply=JsonWebKeySet, summary="The keys that sign access tokens."),
]
