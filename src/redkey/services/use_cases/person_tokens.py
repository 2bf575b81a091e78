"""Tokens of people: an authorization code or a refresh token becomes an access token and the next refresh token."""

from __future__ import annotations

from typing import Literal

import msgspec
import structlog

from redkey.commands.decision import Refused
from redkey.ledger.ports import Unit
from redkey.services.caller import Caller
from redkey.services.keys import SCOPES, passable
from redkey.services.people import put_login, read_login
from redkey.services.sessions import (
    SECOND,
    VERIFIER,
    GrantToken,
    Session,
    challenge_of,
    client_digest,
    exchanged,
    find,
    is_live,
    is_lost_answer,
    read_token,
    token_text,
    without,
)
from redkey.services.use_cases.authorize import check_resource
from redkey.shapes.oauth import AccessToken, TokenRequest

_log = structlog.get_logger("redkey.logins")

# What a unit returns: the session after the exchange, or why there is none.
Found = Session | Literal["refused", "reused"]


async def person_token(caller: Caller, asked: TokenRequest) -> AccessToken:
    """Exchange a code or a refresh token; Refused with `invalid_grant` if it is not valid for this client any more."""
    means, is_code = caller.means, asked.grant_type == "authorization_code"
    check_resource(caller, asked.resource or "")
    token = read_token(means.keys, (asked.code if is_code else asked.refresh_token) or "")
    holder = means.keys.holder(token.public_id) if token is not None else None
    if token is None or holder is None or is_code == bool(token.number):
        raise _refused()
    topic, key_id, grant = holder.topic, holder.actor.key_id, token

    def work(unit: Unit) -> Found:
        login, now = read_login(unit, topic, key_id), unit.next_timestamp(topic)
        session = find(login.sessions, grant.session_id) if login is not None else None
        if login is None or session is None or not is_live(session, now):
            return "refused"
        if not _is_for(session, grant, asked):
            return "refused"
        # Checked before anything is used up.
        _narrowed(session, asked.scope)
        if is_lost_answer(session, grant.number, now):
            return session
        reused = session.number != grant.number
        after = exchanged(session, now, means.config.login.session_days * 86400 * SECOND)
        rest = without(login.sessions, session.session_id)
        put_login(unit, topic, msgspec.structs.replace(login, sessions=rest if reused else (*rest, after)))
        return "reused" if reused else after

    found = await means.coordinator.act(topic, work)
    if found == "reused":
        _log.warning("a login token was used twice: its session ended", key_id=key_id, session_id=grant.session_id)
        means.live_sessions.forget(grant.session_id)
        means.authority.end_session(topic, grant.session_id)
    if not isinstance(found, Session):
        raise _refused()
    scopes = _narrowed(found, asked.scope)
    seconds = means.config.token_seconds
    return AccessToken(
        access_token=means.tokens.issue(holder, scopes, seconds, found.session_id),
        token_type="Bearer",  # noqa: S106 - not a secret, but the kind of it
        expires_in=seconds,
        scope=" ".join(scopes),
        refresh_token=token_text(means.keys, holder.public_id, found.session_id, found.number),
    )


def _is_for(session: Session, token: GrantToken, asked: TokenRequest) -> bool:
    """True if the client that asks is the one that the session belongs to; for a code, with its verifier."""
    if client_digest(asked.client_id or "") != session.client:
        return False
    # A code that was exchanged has no challenge any more: its number is checked instead.
    if token.number or session.number:
        return True
    verifier = asked.code_verifier or ""
    right = VERIFIER.fullmatch(verifier) is not None and challenge_of(verifier) == session.challenge
    return right and asked.redirect_uri == session.redirect_uri


def _narrowed(session: Session, asked: str | None) -> list[str]:
    """Return the scopes of a token: those of the session, or fewer if the client asks for fewer."""
    wanted = set((asked or "").split())
    if not wanted <= passable(session.scopes):
        raise Refused(400, "invalid_scope", f"This login has the scopes {' '.join(session.scopes)}.")
    return [scope for scope in SCOPES if scope in (wanted or session.scopes)]


def _refused() -> Refused:
    detail = "The code or refresh token is not valid for this client, was used before, or has ended. Log in again."
    return Refused(400, "invalid_grant", detail)
