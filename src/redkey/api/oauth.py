"""OAuth over HTTP: forms, client credentials by HTTP Basic or in the form, and errors in the format of RFC 6749."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from urllib.parse import unquote_plus

import msgspec

from redkey.api.bound import bound
from redkey.api.call import Call, Raw
from redkey.api.forms import FormRefused, read_form
from redkey.commands.decision import Refused
from redkey.services.keys import Principal
from redkey.services.use_cases import oauth
from redkey.shapes.oauth import ClientMetadata, OAuthError, RegisteredClient, RevocationRequest, TokenRequest

_GRANTS = ("client_credentials", "authorization_code", "refresh_token")


class _Failed(Exception):
    """The request gets no token."""

    def __init__(self, error: str, description: str, *, status: int = 400, basic: bool = False) -> None:
        super().__init__(description)
        self.error, self.description, self.status, self.basic = error, description, status, basic


async def _token(call: Call) -> Raw:
    try:
        form = await read_form(call.exchange)
        _check_grant(form)
        if form["grant_type"] != "client_credentials":
            return await _person_token(call, form)
        principal = _client(call, form)
    except FormRefused as refused:
        return _failure(_Failed("invalid_request", refused.message))
    except _Failed as failed:
        return _failure(failed)
    call.authenticated(principal)
    rate_headers = call.services.limiter.take(principal.public_id)
    try:
        reply = await call.reply(oauth.token.run(call, TokenRequest("client_credentials", form.get("scope"))))
    except Refused as refused:
        return _failure(_Failed(refused.code, refused.message))
    return Raw(msgspec.json.encode(reply), headers=((b"pragma", b"no-cache"), *rate_headers))


async def _person_token(call: Call, form: Mapping[str, str]) -> Raw:
    known = {name: form[name] for name in TokenRequest.__struct_fields__ if name in form}
    try:
        reply = await call.reply(oauth.token.run(call, TokenRequest(**known)))  # type: ignore[arg-type]
    except Refused as refused:
        if refused.code == "invalid_grant":
            call.services.logins.failed(call.exchange.connection.address, "")
        return _failure(_Failed(refused.code, refused.message))
    return Raw(msgspec.json.encode(reply), headers=((b"pragma", b"no-cache"),))


async def _revoke(call: Call) -> Raw:
    try:
        form = await read_form(call.exchange)
    except FormRefused as refused:
        return _failure(_Failed("invalid_request", refused.message))
    if not form.get("token"):
        return _failure(_Failed("invalid_request", "token is missing."))
    return Raw(msgspec.json.encode(await oauth.revoke_token.run(call, RevocationRequest(form["token"]))))


def _register(call: Call, metadata: ClientMetadata) -> Raw | RegisteredClient:
    try:
        return oauth.register_client.run(call, metadata)
    except Refused as refused:
        return _failure(_Failed(refused.code, refused.message))


def _check_grant(form: Mapping[str, str]) -> None:
    if "grant_type" not in form:
        raise _Failed("invalid_request", "grant_type is missing.")
    if form["grant_type"] not in _GRANTS:
        raise _Failed("unsupported_grant_type", f"grant_type must be one of {', '.join(_GRANTS)}.")


def _client(call: Call, form: Mapping[str, str]) -> Principal:
    """The key of the client; a wrong id and a wrong secret get the same answer."""
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


def _failure(failed: _Failed) -> Raw:
    headers = ((b"www-authenticate", b'Basic realm="redkey"'),) if failed.basic else ()
    body = msgspec.json.encode(OAuthError(failed.error, failed.description))
    return Raw(body, status=failed.status, headers=headers)


ROUTES = [
    bound(oauth.token, _token),
    bound(oauth.revoke_token, _revoke),
    bound(oauth.register_client, _register),
    bound(oauth.server_metadata),
    bound(oauth.protected_resource),
    bound(oauth.protected_mcp),
    bound(oauth.key_set),
]
