"""OAuth over HTTP: forms, client credentials by HTTP Basic or in the form, and errors as RFC 6749 writes them."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from redkey.api.bound import bound
from redkey.api.call import Call, Raw
from redkey.commands.decision import Refused
from redkey.http.request import chunks, declared_size
from redkey.services.keys import Principal
from redkey.services.use_cases import oauth
from redkey.shapes.oauth import FORM, OAuthError, TokenRequest

_FORM_BYTES = 8192


class _Failed(Exception):
    """No token is given."""

    def __init__(self, error: str, description: str, *, status: int = 400, basic: bool = False) -> None:
        super().__init__(description)
        self.error, self.description, self.status, self.basic = error, description, status, basic


async def _token(call: Call) -> Raw:
    try:
        form = _form(call.exchange.headers, await _body(call))
        principal = _client(call, form)
    except _Failed as failed:
        return _failure(failed)
    call.authenticated(principal)
    told = call.services.limiter.take(principal.public_id)
    try:
        reply = oauth.token.run(call, TokenRequest("client_credentials", form.get("scope")))
    except Refused as refused:
        return _failure(_Failed(refused.code, refused.message))
    return Raw(msgspec.json.encode(reply), headers=((b"pragma", b"no-cache"), *told))


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


def _failure(failed: _Failed) -> Raw:
    headers = ((b"www-authenticate", b'Basic realm="redkey"'),) if failed.basic else ()
    body = msgspec.json.encode(OAuthError(failed.error, failed.description))
    return Raw(body, status=failed.status, headers=headers)


ROUTES = [bound(oauth.token, _token), bound(oauth.server_metadata), bound(oauth.key_set)]
