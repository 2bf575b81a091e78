"""Login codes: a link that logs a browser in without a key. A code is exchanged once for a token."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from redkey.shapes.fields import Body, SecretReply
from redkey.shapes.operation import READ, Operation


class LoginCode(SecretReply, frozen=True, kw_only=True):
    """A code that can be used once; `url` is the page that takes it."""

    secret: str
    url: str
    expires_at: str


class LoginCodeExchange(Body, frozen=True, kw_only=True):
    """A code, and the scopes of the token, separated by spaces; without any, all scopes of the key."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]
    scope: Annotated[str, Meta(max_length=200)] = ""


class LoginToken(SecretReply, frozen=True, kw_only=True):
    """An access token for a browser."""

    access_token: str
    scopes: tuple[str, ...]
    expires_at: str


CREATE_LOGIN_CODE = Operation(
    "create_login_code",
    "POST",
    "/login-codes",
    READ,
    reply=LoginCode,
    status=201,
    summary="Create a link that opens the Studio.",
    description="Create a code that can be used once, within ten minutes. A browser exchanges it for a token of your "
    "key.",
    idempotent=False,
    method_name="logins.create",
)
EXCHANGE_LOGIN_CODE = Operation(
    "exchange_login_code",
    "POST",
    "/login-codes/exchange",
    body=LoginCodeExchange,
    reply=LoginToken,
    summary="Exchange a login code for a token.",
    description="Exchange a login code for a token of the key that created it, with its scopes or fewer.",
    replies={401: "The code is unknown, was used, or is older than ten minutes.", 429: "Too many logins failed."},
    idempotent=False,
    example={"code": "the-code-of-the-link", "scope": "read"},
    method_name="logins.exchange",
)
