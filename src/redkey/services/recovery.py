"""Recovery: a new key for operators who have the data directory but no live key.

Write access to the data directory is ownership of the server, so no key is required. The ledger records `key.recovered`
in place of `key.created`, so that all readers see how the key was created.
"""

from __future__ import annotations

import msgspec

from redkey.commands.draft import Draft, Ids
from redkey.commands.registry import KEY_HASH_DIGITS
from redkey.errors import LedgerError
from redkey.ledger.ports import SequencedStore
from redkey.services.keys import Kept, KeyRing, digest_of, setting_name
from redkey.services.log_facts import note_facts
from redkey.services.signing import Signing
from redkey.services.workspaces import topic_of, workspaces
from redkey.wire.events import KeyRecovered

FIRST_KEY_SCOPES = ("operator", "admin")
_TENANT_SCOPES = ("admin",)


class RecoveredKey(msgspec.Struct, frozen=True, rename="camel"):
    """A key that was recovered; its text is shown once."""

    workspace_id: str
    key_id: str
    api_key: str
    scopes: tuple[str, ...]


def recover_key(
    store: SequencedStore, ids: Ids, keys: KeyRing, signing: Signing, workspace_id: str = ""
) -> RecoveredKey:
    """Create and record a key of a workspace: the first workspace gets an operator's key, any other an admin's.

    Waits for the writer lock; a server that runs on the store accepts the key from the next request on.
    """
    first = next((workspace.workspace_id for _, workspace in workspaces(store)), "")
    chosen = workspace_id or first
    topic = topic_of(store, chosen)
    if topic is None:
        what = f"there is no workspace {chosen}" if chosen else "there is no workspace yet; start it: redkey serve"
        raise LedgerError(what, code="workspace_missing")
    scopes = FIRST_KEY_SCOPES if chosen == first else _TENANT_SCOPES
    key_id = "key_" + ids.ulid()
    text = keys.text(key_id)
    prefix = text.rpartition("_")[0]
    where, wire_id = f"workspace:{chosen}", "wire_" + ids.ulid()
    digest = digest_of(text)
    key_hash = digest[:KEY_HASH_DIGITS]
    payload = KeyRecovered(key_id=key_id, scopes=tuple(scopes), prefix=prefix, key_hash=key_hash)
    with store.write(topic) as unit:
        note_facts(unit, topic, [Draft(payload, where, where, wire_id=wire_id)])
        kept = msgspec.json.encode(Kept(topic, key_id, digest)).decode()
        unit.put_fact(topic, setting_name(prefix.removeprefix("rk_")), kept)
        signing.sign_in(unit, topic)
    return RecoveredKey(chosen, key_id, text, scopes)
