"""The log that a store is: its id, its epoch, the origins of its topics, and the facts that its ledger records of it.

A store is one log with one random id; every topic that holds a workspace is one origin of it. Facts of the log
(`signer.added`, `signer.retired`, `ledger.restored`) are wires like any other, with ids derived from what they say, so
that a second copy is void. Who signs and when is `signing`.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Iterable
from typing import NoReturn

import msgspec

from redkey.commands.draft import Draft, derived_id
from redkey.errors import LedgerError, StoreRefused
from redkey.ledger.checkpoint import origin_of
from redkey.ledger.network import is_projected
from redkey.ledger.note import ED25519, VerifierKey, decode_base64, encode_base64
from redkey.ledger.ports import Reader, SequencedStore, StoreUnit, Unit
from redkey.readmodel.rows import entity
from redkey.reducers.world import World
from redkey.services.acts import directly
from redkey.services.outcome import Settled
from redkey.services.unit_of_work import TopicWork
from redkey.shapes.receipts import SignerTerm
from redkey.wire.envelope import wire_of
from redkey.wire.events import AnyPayload, SignerAdded, SignerRetired
from redkey.wire.subjects import SIGNERS

LOG_ID = "log_id"
EPOCH = "epoch"
# By topic, the last record that was loaded from a dump without content.
LOADED = "loaded/"
# The log and epoch of a copy that is not complete yet; empty if it is.
COPYING = "copying"
# Which of several servers hosts the bus (`bus_host`).
BUS_HOST = "bus_host"
# Settings of a store and its servers, not of the ledger: a copy does not get them.
NOT_COPIED = frozenset({COPYING, BUS_HOST})
_LOG_ID_BYTES = 15
_PAGE = 500


class Log(msgspec.Struct, frozen=True):
    """The log that a store is, and its epoch."""

    log_id: str
    epoch: int

    def origin(self, workspace_id: str) -> str:
        return origin_of(self.log_id, workspace_id, self.epoch)


def open_log(store: SequencedStore, randomness: bytes) -> Log:
    """Return the log that a store is; a new store becomes one, with an id made of these random bytes."""
    if store.setting(COPYING):
        text = "this is an unfinished copy of another store; run redkey ledger copy again to finish it"
        raise StoreRefused(text, code="copy_unfinished")
    log = read_log(store)
    if log is None:
        log = directly(store).on_store(lambda unit: _begin_log(unit, randomness))
    if log is None:
        raise LedgerError("the store did not keep its log id", code="log_unknown")
    return log


def _begin_log(unit: StoreUnit, randomness: bytes) -> Log | None:
    # Another process may have been first.
    if read_log(unit) is None:
        unit.put_setting(LOG_ID, b32encode(randomness[:_LOG_ID_BYTES]).decode().lower())
        unit.put_setting(EPOCH, "1")
    return read_log(unit)


def read_log(reader: Reader) -> Log | None:
    """Return the log that a store is; None if nothing was signed in it yet."""
    log_id, epoch = reader.setting(LOG_ID), reader.setting(EPOCH)
    return None if log_id is None or epoch is None else Log(log_id, int(epoch))


def workspace_of(reader: Reader, topic: str) -> str | None:
    """Return the workspace that a topic holds; None if it holds none."""
    row = reader.row(topic, "workspace", "")
    return None if row is None else entity(row).workspace_id


def note_facts(unit: Unit, topic: str, drafts: Iterable[Draft]) -> list[Settled]:
    """Record facts of the log on one topic.

    They change only the workspace's own stream, so a world of the workspace alone is enough to fold them.
    """
    if is_projected(topic):
        text = f"topic {topic} holds what a network orders; nothing is written to it by this server alone"
        raise LedgerError(text, code="order_unavailable")
    world, head = World(), unit.head(topic)
    world.sequence, world.timestamp = head.sequence, head.timestamp
    row = unit.row(topic, "workspace", "")
    if row is None:
        raise LedgerError(f"topic {topic} holds no workspace", code="workspace_missing")
    world.workspace = entity(row)
    work = TopicWork(unit, topic, world, _NoIds())
    settled = work.note(list(drafts))
    work.finish()
    return settled


def signer_added(workspace_id: str, key: VerifierKey) -> Draft:
    """Return the fact that a key signs the checkpoints of a workspace."""
    payload = SignerAdded(signer_id=key.key_id.hex(), public_key=encode_base64(key.public_key))
    return _fact(workspace_id, payload, payload.public_key)


def signer_retired(workspace_id: str, key: VerifierKey, tree_size: int) -> Draft:
    """Return the fact that a key signs no checkpoint of this size or larger."""
    public_key = encode_base64(key.public_key)
    payload = SignerRetired(signer_id=key.key_id.hex(), public_key=public_key, tree_size=tree_size)
    return _fact(workspace_id, payload, public_key)


def _fact(workspace_id: str, payload: SignerAdded | SignerRetired, public_key: str) -> Draft:
    where = f"workspace:{workspace_id}"
    return Draft(payload, where, where, wire_id=derived_id(workspace_id, payload.TYPE, public_key))


def signer_terms(reader: Reader, topic: str, log_name: str) -> list[SignerTerm]:
    """Return every signer of a topic as its ledger names it, oldest first."""
    terms: dict[str, SignerTerm] = {}
    after = 0
    while True:
        records = reader.events(topic, SIGNERS, after, _PAGE)
        for record in records:
            payload = wire_of(record.wire).payload
            if not is_of_another_log(payload, topic, log_name):
                tell_term(terms, payload, record.sequence, log_name)
        if len(records) < _PAGE:
            return list(terms.values())
        after = records[-1].sequence


def is_of_another_log(payload: AnyPayload, topic: str, log_name: str) -> bool:
    """Whether a signer is that of another organisation: where a network gives the order, several logs sign."""
    if not is_projected(topic) or not isinstance(payload, SignerAdded | SignerRetired) or payload.public_key is None:
        return False
    return payload.signer_id != VerifierKey(log_name, ED25519, decode_base64(payload.public_key)).key_id.hex()


def tell_term(terms: dict[str, SignerTerm], payload: AnyPayload, sequence: int, log_name: str) -> None:
    """Add what a wire says of a signer to the terms; only the first wire of its kind counts."""
    if not isinstance(payload, SignerAdded | SignerRetired) or payload.public_key is None:
        return
    key = str(VerifierKey(log_name, ED25519, decode_base64(payload.public_key)))
    term = terms.get(key)
    if isinstance(payload, SignerAdded) and term is None:
        terms[key] = SignerTerm(key=key, added=sequence)
    elif isinstance(payload, SignerRetired) and term is not None and term.retired is None:
        terms[key] = SignerTerm(key=key, added=term.added, retired=sequence)


class _NoIds:
    """Refuses to draw ids: ids of facts of the log are derived from what they say."""

    def ulid(self) -> NoReturn:
        raise LedgerError("a fact of the log must not draw an id", code="internal_error")
