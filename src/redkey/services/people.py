"""People: what the store keeps of a person beside the ledger, so that the person can log in.

On the ledger a person is a key: `key.created` with `person`, whose name and e-mail address are content. The secret of
that key is never shown. Beside the ledger a row (`LOGIN`) holds the number of the one-time code, the identity at an
external provider, and the open sessions. A setting leads from the hash of an e-mail address to the people who have it,
because one address may be invited to several workspaces. All hashes are keyed, so the database alone does not reveal
which addresses it knows. A revoked key ends all of it at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from redkey.ledger.ports import Reader, Row, StoreUnit, Unit
from redkey.readmodel.rows import LOGIN, entity
from redkey.services.keys import KeyRing
from redkey.services.sessions import Session, find
from redkey.wire.ids import crockford

PEOPLE = "people/"
# One address can be invited to this many workspaces.
PLACES_LIMIT = 32
# How long a live session is trusted before it is checked again.
_TRUST_SECONDS = 5.0
_CACHED = 10_000
_CODE_LENGTH, _GROUP = 12, 4
_ADDRESS = re.compile(r"[^@\s<>()\[\],;:\\\"]{1,64}@[^@\s<>()\[\],;:\\\"]{1,189}")
# Letters that are easily confused with digits, as Crockford's base 32 reads them.
_READ_AS = str.maketrans("ILO", "110")


class StoredLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one person logs in."""

    key_id: str
    public_id: str
    # The keyed hash of the e-mail address.
    address: str
    # The one-time codes are numbered; only the newest is valid, once, and up to this time in nanoseconds.
    code: int = 0
    code_ends_at: int = 0
    # The keyed hash of issuer and subject at the identity provider, from the first login there on.
    identity: str = ""
    last_login_at: int = 0
    sessions: tuple[Session, ...] = ()


class PersonPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a person is: the topic of the workspace, and the key."""

    topic: str
    key_id: str


def normal_address(text: str) -> str:
    """Return an e-mail address in the form it is compared in; empty if the text is none."""
    address = text.strip().lower()
    return address if _ADDRESS.fullmatch(address) and address.isprintable() else ""


def address_digest(keys: KeyRing, address: str) -> str:
    """Return the keyed hash under which an e-mail address is known."""
    return keys.derived(f"address/{address}").hex()[:32]


def code_text(keys: KeyRing, key_id: str, number: int) -> str:
    """Return a one-time code as people type it: 60 bits in three groups, derived, so that it is stored nowhere."""
    digits = crockford(keys.derived(f"code/{key_id}/{number}")[:10])[:_CODE_LENGTH]
    return "-".join(digits[start : start + _GROUP] for start in range(0, _CODE_LENGTH, _GROUP))


def is_code(keys: KeyRing, login: StoredLogin, typed: str, now: int) -> bool:
    """True if what was typed is the person's code and still valid; compared in constant time."""
    plain = re.sub(r"[\s-]", "", typed.upper()).translate(_READ_AS)
    right = code_text(keys, login.key_id, login.code).replace("-", "")
    return keys.same(plain, right) and now < login.code_ends_at


def read_login(reader: Reader, topic: str, key_id: str) -> StoredLogin | None:
    """Return how a person logs in; None if there is no such person, or the key was revoked."""
    row = reader.row(topic, LOGIN, key_id)
    key = reader.row(topic, "key", key_id) if row is not None else None
    if row is None or key is None or entity(key).revoked_at:
        return None
    return msgspec.json.decode(row.body, type=StoredLogin)


def put_login(unit: Unit, topic: str, login: StoredLogin) -> None:
    """Store how a person logs in."""
    unit.put_rows(topic, [Row(LOGIN, login.key_id, msgspec.json.encode(login))])


def place_setting(digest: str) -> str:
    """Return the name of the setting that lists the people with an address."""
    return PEOPLE + digest


def places(reader: Reader, digest: str) -> Sequence[PersonPlace]:
    """Return the places of people with an address, live or not."""
    text = reader.setting(place_setting(digest))
    return msgspec.json.decode(text, type=tuple[PersonPlace, ...]) if text else ()


def logins_of(reader: Reader, digest: str) -> Iterator[tuple[str, StoredLogin]]:
    """Yield the people with an address who may log in, each with the topic of the workspace."""
    for place in places(reader, digest):
        login = read_login(reader, place.topic, place.key_id)
        if login is not None and login.address == digest:
            yield place.topic, login


def add_place(unit: StoreUnit, digest: str, place: PersonPlace) -> bool:
    """List a person under an address; False if the address is in too many workspaces. Revoked ones are dropped."""
    kept = [one for one in places(unit, digest) if one != place and _is_live(unit, one)]
    if len(kept) >= PLACES_LIMIT:
        return False
    unit.put_setting(place_setting(digest), msgspec.json.encode((*kept, place)).decode())
    return True


class LiveSessions:
    """Which sessions are live. A session that this server ends is dead at once; another server's, within seconds."""

    def __init__(self, reader: Reader, now: Callable[[], float]) -> None:
        """`now` is monotonic seconds."""
        self._reader, self._now = reader, now
        # Sessions that were live when they were last checked.
        self._seen: dict[str, float] = {}

    def is_live(self, topic: str, key_id: str, session_id: str) -> bool:
        """True while the session is live."""
        now = self._now()
        if now - self._seen.get(session_id, -_TRUST_SECONDS) < _TRUST_SECONDS:
            return True
        login = read_login(self._reader, topic, key_id)
        if login is None or find(login.sessions, session_id) is None:
            self._seen.pop(session_id, None)
            return False
        if len(self._seen) >= _CACHED:
            del self._seen[next(iter(self._seen))]
        self._seen[session_id] = now
        return True

    def forget(self, session_id: str) -> None:
        """Check a session again: this server has ended it."""
        self._seen.pop(session_id, None)


def _is_live(reader: Reader, place: PersonPlace) -> bool:
    row = reader.row(place.topic, "key", place.key_id)
    return row is not None and not entity(row).revoked_at
