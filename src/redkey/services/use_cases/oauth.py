"""OAuth 2.0: short-lived tokens for keys and people, clients, and the metadata by which clients find all of it."""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from typing import Any

import msgspec

from redkey.commands.decision import Refused
from redkey.services import oauth_clients
from redkey.services.caller import Caller
from redkey.services.keys import SCOPES, passable
from redkey.services.sessions import read_token
from redkey.services.use_case import use_case
from redkey.services.use_cases.people import end_session
from redkey.services.use_cases.person_tokens import person_token
from redkey.shapes import oauth
from redkey.shapes.oauth import (
    AccessToken,
    ClientMetadata,
    JsonWebKeySet,
    OAuthMetadata,
    ProtectedResource,
    RegisteredClient,
    RevocationRequest,
    TokenRequest,
    TokenRevoked,
)

_PERSON_GRANTS = ("authorization_code", "refresh_token")


@use_case(oauth.TOKEN)
def token(caller: Caller, asked: TokenRequest) -> AccessToken | Coroutine[Any, Any, AccessToken]:
    """Exchange a key, an authorization code or a refresh token for a short-lived token.

    A key was checked by the interface; its token has the key's scopes or fewer.
    """
    if asked.grant_type != "client_credentials":
        return person_token(caller, asked)
    scopes = granted_scopes(caller.actor.scopes, asked.scope)
    seconds = caller.means.config.token_seconds
    return AccessToken(
        access_token=caller.means.tokens.issue(caller.principal, scopes, seconds),
        token_type="Bearer",  # noqa: S106 - not a secret, but the kind of it
        expires_in=seconds,
        scope=" ".join(scopes),
    )


def granted_scopes(scopes: Collection[str], asked: str | None) -> list[str]:
    """Return the scopes of a token: those requested, if the key may pass them on, else all of the key's."""
    held = [scope for scope in SCOPES if scope in scopes]
    if asked is None:
        return held
    wanted, allowed = set(asked.split(" ")), passable(held)
    if not wanted <= allowed:
        names = " ".join(scope for scope in SCOPES if scope in allowed)
        detail = f"A token of this key may have the scopes {names}, with one space between them."
        raise Refused(400, "invalid_scope", detail)
    return [scope for scope in SCOPES if scope in wanted]


@use_case(oauth.REVOKE_TOKEN)
async def revoke_token(caller: Caller, asked: RevocationRequest) -> TokenRevoked:
    """End the session of a person's token. A key's token ends with its key, so there is nothing to do for it."""
    means = caller.means
    grant, holder = read_token(means.keys, asked.token), means.tokens.holder(asked.token)
    if grant is not None:
        holder, session_id = means.keys.holder(grant.public_id), grant.session_id
    else:
        session_id = holder.session_id if holder is not None else ""
    if holder is not None and session_id:
        await end_session(caller, holder.topic, holder.actor.key_id, session_id)
    return TokenRevoked(status="revoked")


@use_case(oauth.REGISTER_CLIENT)
def register_client(caller: Caller, asked: ClientMetadata) -> RegisteredClient:
    """Register a public client; its id holds what it registers, so nothing is stored."""
    if asked.token_endpoint_auth_method != "none":  # noqa: S105 - not a secret, but how clients show one
        raise Refused(400, "invalid_client_metadata", "Clients are public: token_endpoint_auth_method must be none.")
    if not {*asked.grant_types} <= {*_PERSON_GRANTS} or not {*asked.response_types} <= {"code"}:
        detail = f"Clients get codes: grant_types may be {' and '.join(_PERSON_GRANTS)}, response_types code."
        raise Refused(400, "invalid_client_metadata", detail)
    client = oauth_clients.register_client(caller.means.keys, asked.client_name, asked.redirect_uris)
    return RegisteredClient(
        client_id=client.client_id,
        client_name=client.name,
        redirect_uris=client.redirect_uris,
        token_endpoint_auth_method="none",  # noqa: S106 - not a secret, but how clients show one
        grant_types=_PERSON_GRANTS,
        response_types=("code",),
    )


@use_case(oauth.PROTECTED_RESOURCE)
def protected_resource(caller: Caller) -> ProtectedResource:
    """Tell clients of this server where they get tokens."""
    return _resource(caller.means.config.public_url, "")


@use_case(oauth.PROTECTED_MCP)
def protected_mcp(caller: Caller) -> ProtectedResource:
    """Tell MCP clients where they get tokens; they compare `resource` with the URL they call."""
    return _resource(caller.means.config.public_url, "/mcp")


def _resource(base: str, path: str) -> ProtectedResource:
    return ProtectedResource(
        resource=base + path,
        authorization_servers=(base,),
        scopes_supported=SCOPES,
        bearer_methods_supported=("header",),
        resource_documentation=f"{base}/docs",
    )


@use_case(oauth.SERVER_METADATA)
def server_metadata(caller: Caller) -> OAuthMetadata:
    """Describe where tokens are issued and checked."""
    base = caller.means.config.public_url
    return OAuthMetadata(
        issuer=base,
        authorization_endpoint=f"{base}/oauth/authorize",
        token_endpoint=f"{base}/oauth/token",
        registration_endpoint=f"{base}/oauth/register",
        revocation_endpoint=f"{base}/oauth/revoke",
        jwks_uri=f"{base}/.well-known/jwks.json",
        scopes_supported=SCOPES,
        response_types_supported=("code",),
        grant_types_supported=("client_credentials", *_PERSON_GRANTS),
        token_endpoint_auth_methods_supported=("client_secret_basic", "client_secret_post", "none"),
        code_challenge_methods_supported=("S256",),
        authorization_response_iss_parameter_supported=True,
        service_documentation=f"{base}/docs",
    )


@use_case(oauth.KEY_SET)
def key_set(caller: Caller) -> JsonWebKeySet:
    """Return the public keys of access tokens."""
    return msgspec.convert(caller.means.tokens.key_set, JsonWebKeySet)
