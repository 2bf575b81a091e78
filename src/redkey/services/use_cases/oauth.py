"""OAuth 2.0 client credentials: short-lived tokens for keys, and where clients find out about them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from redkey.commands.decision import Refused
from redkey.services.caller import Caller
from redkey.services.keys import SCOPES, passable
from redkey.services.use_case import use_case
from redkey.shapes import oauth
from redkey.shapes.oauth import AccessToken, JsonWebKeySet, OAuthMetadata, TokenRequest


@use_case(oauth.TOKEN)
def token(caller: Caller, asked: TokenRequest) -> AccessToken:
    """Exchange the caller's key for a short-lived token with its scopes, or fewer. The door has checked the key."""
    scopes = granted_scopes(caller.actor.scopes, asked.scope)
    seconds = caller.means.config.token_seconds
    return AccessToken(
        access_token=caller.means.tokens.issue(caller.principal, scopes, seconds),
        token_type="Bearer",  # noqa: S106 - not a secret, but the kind of it
        expires_in=seconds,
        scope=" ".join(scopes),
    )


def granted_scopes(scopes: Collection[str], asked: str | None) -> list[str]:
    """The scopes of a token: those asked for, where the key may pass them on, else all of the key's."""
    held = [scope for scope in SCOPES if scope in scopes]
    if asked is None:
        return held
    wanted, allowed = set(asked.split(" ")), passable(held)
    if not wanted <= allowed:
        names = " ".join(scope for scope in SCOPES if scope in allowed)
        detail = f"A token of this key may have the scopes {names}, with one space between them."
        raise Refused(400, "invalid_scope", detail)
    return [scope for scope in SCOPES if scope in wanted]


@use_case(oauth.SERVER_METADATA)
def server_metadata(caller: Caller) -> OAuthMetadata:
    """Where tokens are given and checked."""
    base = caller.means.config.public_url
    return OAuthMetadata(
        issuer=base,
        token_endpoint=f"{base}/oauth/token",
        jwks_uri=f"{base}/.well-known/jwks.json",
        scopes_supported=SCOPES,
        response_types_supported=(),
        grant_types_supported=("client_credentials",),
        token_endpoint_auth_methods_supported=("client_secret_basic", "client_secret_post"),
        service_documentation=f"{base}/docs",
    )


@use_case(oauth.KEY_SET)
def key_set(caller: Caller) -> JsonWebKeySet:
    """The public keys of access tokens."""
    return msgspec.convert(caller.means.tokens.key_set, JsonWebKeySet)
