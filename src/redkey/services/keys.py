"""API keys: created, shown once, recognised by their hash.

A key is `rk_<public id>_<secret>`. The ledger has its public part and its scopes. The store keeps the SHA-256 of the
whole key under the public id, as a setting, because the id alone must lead to the workspace. The secret is derived from
the issuing secret of this server and the key's id: so the reply that shows it is, like every reply, a function of what
was recorded, and a repeated request gets the same bytes, but nothing stored reveals it.

Keys are looked up in memory. Revocations by other processes are noticed when they commit, and every key is read again
after a while. Writes are checked exactly, by the unit that records them.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from hashlib import sha256

import msgspec

from redkey import fibers
from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.errors import StoreError
from redkey.ledger.ports import SequencedStore
from redkey.readmodel.rows import entity
from redkey.reducers.entities import Key
from redkey.services.outcome import Settled
from redkey.wire.events import KeyRevoked
from redkey.wire.ids import crockford

PUBLIC_ID = re.compile(r"[0-9A-Za-z]{4,16}", re.ASCII)
KEY_TEXT = re.compile(rf"rk_(?P<public>{PUBLIC_ID.pattern})_(?P<secret>[0-9A-Za-z]{{20,128}})")
KEY_SHAPE = "rk_<public id>_<secret>: 4 to 16 letters and digits, then 20 to 128 letters and digits"
SCOPES = ("operator", "admin", "produce", "agent", "runner", "read")
# What each scope includes. None includes `agent`: a caller that acts as one agent has a key that names it.
_INCLUDED = {
    "admin": frozenset({"produce", "runner", "read"}),
    "produce": frozenset({"read"}),
    "agent": frozenset({"read"}),
    "runner": frozenset({"read"}),
}
_CACHED = 100_000
# Revocations are noticed when they are committed; this covers a lost notification.
_TRUST_SECONDS = 10.0
_PAGE = 500
_REVOKED = b'"type":"key.revoked"'
_NOBODY = bytes(32)


class Principal(msgspec.Struct):
    """The holder of a key: where it works and what it may do."""

    public_id: str
    topic: str
    digest: bytes
    actor: Actor
    checked: float
    # When the authority ends by itself, in seconds of wall time: the expiry of a token; 0 for a key.
    expires_at: float = 0
    # The session of a person that a token belongs to; empty for keys and their tokens.
    session_id: str = ""


class Kept(msgspec.Struct, frozen=True):
    """What the store keeps of a key beside the ledger."""

    topic: str
    key_id: str
    sha256: str


def passable(scopes: Collection[str]) -> frozenset[str]:
    """Return the scopes that a token of a key may have: the key's own, and those that they include."""
    return frozenset(scopes).union(*(_INCLUDED.get(scope, ()) for scope in scopes))


# Cached: every write checks it, and few keys differ in their scopes.
_passable = lru_cache(maxsize=64)(passable)


def check_key(key: Key | None, caller: Actor) -> None:
    """Refuse a caller whose key has changed since authentication: another process may have revoked it."""
    if key is None or key.revoked_at:
        raise Refused(401, "invalid_token", "The key was revoked.")
    if not caller.scopes <= _passable(key.scopes):
        raise Refused(403, "insufficient_scope", "The key does not have these scopes any more.")


def setting_name(public_id: str) -> str:
    """Return the setting under which a key's hash is kept."""
    return f"key/{public_id}"


def digest_of(key: str) -> str:
    """Return the hash by which the store knows a key."""
    return sha256(key.encode()).hexdigest()


class KeyRing:
    """All keys of a store."""

    def __init__(self, store: SequencedStore, issuing_secret: bytes, now: Callable[[], float]) -> None:
        self._store, self._issuing, self._now = store, issuing_secret, now
        self._known: dict[str, Principal] = {}
        # topic -> the last record that was searched for revoked keys.
        self._seen: dict[str, int] = {}

    @property
    def is_awaited(self) -> bool:
        """True while keys are trusted that another process could revoke."""
        return bool(self._known)

    def text(self, key_id: str) -> str:
        """Return the text of the key with this id, as its owner sees it."""
        public = key_id[-16:]
        secret = crockford(hmac.digest(self._issuing, key_id.encode(), "sha256")[:30])
        return f"rk_{public}_{secret}"

    def webhook_secret(self, webhook_id: str) -> str:
        """Return the secret that signs webhook deliveries: derived from the issuing secret, so it is stored nowhere."""
        secret = hmac.digest(self._issuing, b"webhook/" + webhook_id.encode(), "sha256")
        return "whsec_" + b64encode(secret).decode()

    def derived(self, purpose: str) -> bytes:
        """Derive 32 bytes that only servers of this log can compute: for codes and tokens that are stored nowhere."""
        return hmac.digest(self._issuing, b"login/" + purpose.encode(), "sha256")

    @staticmethod
    def same(one: str, other: str) -> bool:
        """True if two texts are equal; the time does not depend on where they differ."""
        return hmac.compare_digest(one.encode(), other.encode())

    def authenticate(self, key: str) -> Principal | None:
        """Return the holder of a key; None if the text is not a key, or the key was revoked."""
        public, _, _ = key[3:].partition("_")
        principal = self.holder(public)
        # Compare even if the id is unknown, so that the time reveals nothing.
        right = hmac.compare_digest(
            sha256(key.encode()).digest(), principal.digest if principal is not None else _NOBODY
        )
        return principal if right else None

    def is_current(self, principal: Principal) -> bool:
        """True while the cached data of a key may be trusted without another read."""
        return self._known.get(principal.public_id) is principal and self._now() - principal.checked < _TRUST_SECONDS

    def holder(self, public_id: str) -> Principal | None:
        """Return the live key with a public id; the secret is not checked here."""
        known = self._known.get(public_id)
        if known is not None and self._now() - known.checked < _TRUST_SECONDS:
            return known
        known = self._read(public_id)
        if known is None:
            self._known.pop(public_id, None)
            return None
        if len(self._known) >= _CACHED:
            self._known.pop(next(iter(self._known)))
        self._known[public_id] = known
        return known

    def on_commit(self, topic: str, records: Sequence[Settled]) -> None:
        """Forget keys that this process has revoked, and those that others revoked before."""
        seen = self._seen.get(topic)
        if seen is None or not records:
            return
        if records[0].sequence > seen + 1:
            # Other processes wrote in between.
            if self._store.inline:
                self.look_at(topic)
            else:
                fibers.start(self.look_at, topic)
            return
        self._seen[topic] = max(seen, records[-1].sequence)
        if any(type(settled.event.payload) is KeyRevoked for settled in records):
            self._forget(topic)

    def look_at(self, topic: str) -> None:
        """Forget keys that other processes have revoked."""
        if topic not in self._seen:
            return
        try:
            while records := self._store.read(topic, self._seen[topic], _PAGE):
                self._seen[topic] = max(self._seen[topic], records[-1].sequence)
                if any(_REVOKED in record.wire for record in records):
                    self._forget(topic)
        except StoreError:
            # The next lookup reads the store again and reports its failure.
            self._forget(topic)

    def _forget(self, topic: str) -> None:
        self._known = {name: one for name, one in self._known.items() if one.topic != topic}

    def _read(self, public_id: str) -> Principal | None:
        if not public_id or len(public_id) > 16:
            return None
        text = self._store.setting(setting_name(public_id))
        if not text:
            return None
        kept = msgspec.json.decode(text, type=Kept)
        # Taken before the rows are read: commits after it are looked at later.
        self._seen.setdefault(kept.topic, self._store.known_head(kept.topic))
        row = self._store.row(kept.topic, "key", kept.key_id)
        workspace = self._store.row(kept.topic, "workspace", "")
        if row is None or workspace is None:
            return None
        key = entity(row)
        if key.revoked_at:
            return None
        caller = Actor(entity(workspace).workspace_id, key.key_id, frozenset(key.scopes), key.agent_id)
        return Principal(public_id, kept.topic, bytes.fromhex(kept.sha256), caller, self._now())
