"""Login codes: created for the holder of a key, and exchanged once for a token."""

from __future__ import annotations

from redkey.commands.decision import Refused
from redkey.ledger.record import iso_time
from redkey.services.caller import Caller
from redkey.services.login_codes import CODE_SECONDS
from redkey.services.use_case import use_case
from redkey.services.use_cases.oauth import granted_scopes
from redkey.shapes import login_codes
from redkey.shapes.login_codes import LoginCode, LoginCodeExchange, LoginToken

# A working day. The token ends with its key, whichever comes first.
_TOKEN_SECONDS = 8 * 60 * 60
_NANOSECONDS = 1_000_000_000


@use_case(login_codes.CREATE_LOGIN_CODE)
def create_login_code(caller: Caller) -> LoginCode:
    """Create a link that opens the Studio with the rights of the caller's key."""
    if caller.principal.expires_at:
        # A link made with a token would outlive it.
        raise Refused(403, "key_required", "A login link is made with an API key, not with a token.")
    code = caller.means.login_codes.make(caller.principal)
    return LoginCode(
        secret=code,
        url=f"{caller.means.config.public_url}/studio/#code={code}",
        expires_at=_after(caller, CODE_SECONDS),
    )


@use_case(login_codes.EXCHANGE_LOGIN_CODE)
def exchange_login_code(caller: Caller, asked: LoginCodeExchange) -> LoginToken:
    """Exchange a code for a token. The interface counts failures."""
    found = caller.means.login_codes.take(asked.code)
    holder = caller.means.keys.holder(found[0]) if found is not None else None
    if found is None or holder is None or holder.actor.key_id != found[1]:
        raise Refused(401, "login_code_invalid", "The login code is unknown, was used, or is older than ten minutes.")
    scopes = granted_scopes(holder.actor.scopes, asked.scope or None)
    token = caller.means.tokens.issue(holder, scopes, _TOKEN_SECONDS)
    return LoginToken(access_token=token, scopes=tuple(scopes), expires_at=_after(caller, _TOKEN_SECONDS))


def _after(caller: Caller, seconds: int) -> str:
    return iso_time(caller.means.clock.wall() + seconds * _NANOSECONDS)
