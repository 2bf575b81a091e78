"""Sessions: a login of one person from one client, from the authorization code to the last refresh token.

A session is part of the person's row (`services.people`). Its tokens are numbered: 0 is the authorization code, every
exchange gives the next number, and only the newest is valid. Tokens are derived from the session and the number, so
none is stored. A token that was used before is a copy in other hands (RFC 9700, section 4.14): the session ends.
The one exception is a refresh that is sent again within seconds, because its answer was lost: it gets the same answer.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from redkey.services.keys import KeyRing
from redkey.wire.ids import crockford

SECOND = 1_000_000_000
CODE_SECONDS = 60
# How long a refresh whose response was lost gets the same response again.
AGAIN_SECONDS = 10
# Above this number of sessions, a new login ends the person's least recently used one.
SESSIONS_LIMIT = 20
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_TOKEN = re.compile(
    r"rkt_(?P<public>[0-9A-Za-z]{4,16})_(?P<session>[0-9A-Z]{26})_(?P<number>[0-9]{1,9})_(?P<proof>\w{48})"
)


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """One login. Times are nanoseconds of the ledger's clock."""

    session_id: str
    # The hash of the client's id, because a registered client's id is long; and the client's own name.
    client: str
    client_name: str
    scopes: tuple[str, ...]
    created_at: int
    used_at: int
    ends_at: int
    # The number of the token that is valid now.
    number: int = 0
    # What the authorization code is bound to; empty once it was exchanged.
    redirect_uri: str = ""
    challenge: str = ""


class GrantToken(msgspec.Struct, frozen=True):
    """An authorization code or a refresh token, read but not yet compared with its session."""

    public_id: str
    session_id: str
    number: int
    proof: str


def token_text(keys: KeyRing, public_id: str, session_id: str, number: int) -> str:
    """Return the token of a session with this number."""
    return f"rkt_{public_id}_{session_id}_{number}_{_proof(keys, session_id, number)}"


def read_token(keys: KeyRing, text: str) -> GrantToken | None:
    """Read a token that this log issued; None for any other text."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    token = GrantToken(found["public"], found["session"], int(found["number"]), found["proof"])
    return token if keys.same(token.proof, _proof(keys, token.session_id, token.number)) else None


def _proof(keys: KeyRing, session_id: str, number: int) -> str:
    return crockford(keys.derived(f"session/{session_id}/{number}")[:30])


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636, section 4.2)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def client_digest(client_id: str) -> str:
    """Return the hash by which a session knows its client."""
    return sha256(client_id.encode()).hexdigest()[:32]


def find(sessions: Iterable[Session], session_id: str) -> Session | None:
    """Return the session with this id."""
    return next((one for one in sessions if one.session_id == session_id), None)


def without(sessions: Iterable[Session], session_id: str) -> tuple[Session, ...]:
    """Return the sessions but this one."""
    return tuple(one for one in sessions if one.session_id != session_id)


def added(sessions: Sequence[Session], new: Session, now: int) -> tuple[Session, ...]:
    """Return the sessions with a new one; those that have ended are dropped, and the least used of too many."""
    live = sorted((one for one in sessions if is_live(one, now)), key=lambda one: one.used_at)
    return (*live[-(SESSIONS_LIMIT - 1) :], new)


def is_live(session: Session, now: int) -> bool:
    """True until the session ends; one whose code was never exchanged ends with the code."""
    if not session.number:
        return now < session.created_at + CODE_SECONDS * SECOND
    return now < session.ends_at


def is_lost_answer(session: Session, number: int, now: int) -> bool:
    """True if a token is the one before the newest and was exchanged a moment ago. A code is exchanged once."""
    recent = now - session.used_at < AGAIN_SECONDS * SECOND
    return 0 < number == session.number - 1 and recent


def exchanged(session: Session, now: int, lifetime: int) -> Session:
    """Return the session after its token was exchanged for the next one."""
    return msgspec.structs.replace(
        session, number=session.number + 1, used_at=now, ends_at=now + lifetime, redirect_uri="", challenge=""
    )
