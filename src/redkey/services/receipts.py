"""Receipts of recorded events, made from a store: record, proof, checkpoint, effect, signers, content.

What a receipt is and how it is verified stands in `redkey.ledger`; here is only where its parts come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redkey.errors import StoreError, WriterBusy
from redkey.ledger.checkpoint import log_name
from redkey.ledger.ports import Reader
from redkey.ledger.receipt import APPLIED, build_receipt, prove, self_contained
from redkey.ledger.record import Record
from redkey.ledger.running_hash import GENESIS
from redkey.readmodel.rows import entity, void_key
from redkey.services.log_facts import signer_terms
from redkey.services.signing import Signing
from redkey.shapes.receipts import ReceiptEffect
from redkey.wire.decode import decode
from redkey.wire.ids import wire_id_of

# Bodies in one receipt, together; what is larger is fetched by its hash.
_CONTENT_BYTES = 16 * 1024 * 1024


def receipt_for(
    reader: Reader,
    topic: str,
    event: str,
    signing: Signing,
    *,
    base_url: str,
    offline: bool = True,
    content: bool = False,
) -> dict[str, Any] | None:
    """The receipt of an event, by its event id or wire id; None when the topic has no such event.

    A record that no checkpoint covers is signed for at once; when another writer is in the way for too long, the
    receipt says `pending`. Without `offline` it tells what is proven and leaves the proof out; with
    `content` the bodies that the wire names go along, as far as they are still there and a receipt has room for them.
    """
    record = reader.find(topic, wire_id_of(event) if event.startswith("evt_") else event)
    if record is None:
        return None
    try:
        note = signing.cover(topic, record.sequence)
    except WriterBusy:
        note = None
    document = build_receipt(
        record,
        _before(reader, record),
        None if note is None else prove(reader.tree(topic), record.sequence, note),
        base_url=base_url,
        effect=effect_of(reader, topic, record.sequence),
        signers=signing.signers if offline else (),
        history=signer_terms(reader, topic, log_name(signing.log.log_id)) if offline else (),
        content=list(_bodies(reader, record)) if offline and content else (),
    )
    if not offline:
        document.pop("offline", None)
    return document


def proof_for(reader: Reader, topic: str, event: str, signing: Signing) -> bytes | None:
    """The proof of an event alone, as C2SP tlog-proof with the record in it; None when there is no such event."""
    record = reader.find(topic, wire_id_of(event) if event.startswith("evt_") else event)
    note = signing.cover(topic, record.sequence) if record is not None else None
    if record is None or note is None:
        return None
    proof = prove(reader.tree(topic), record.sequence, note)
    return self_contained(record, _before(reader, record), proof).encode()


def _before(reader: Reader, record: Record) -> bytes:
    """The running hash that a record follows."""
    return reader.read(record.topic, record.sequence - 2, 1)[0].running_hash if record.sequence > 1 else GENESIS


def effect_of(reader: Reader, topic: str, sequence: int) -> ReceiptEffect:
    """What a record did: the fold that wrote the rows has kept those that are void."""
    row = reader.row(topic, "void", void_key(sequence))
    return APPLIED if row is None else ReceiptEffect(status="void", reason=entity(row).reason)


def _bodies(reader: Reader, record: Record) -> Iterator[bytes]:
    room = _CONTENT_BYTES
    for sha256 in dict.fromkeys(named_content(decode(record.wire)["payload"])):
        facts = reader.content_facts(record.topic, sha256)
        if facts is None or facts.bytes > room:
            continue
        room -= facts.bytes
        try:
            found = reader.content(record.topic, sha256)
        except StoreError:
            # A body that is damaged proves nothing: the receipt is whole without it, and fsck names it.
            continue
        if found is not None:
            yield found.data


def named_content(payload: object) -> Iterator[str]:
    """The SHA-256 of every body that a payload names by a ref."""
    if isinstance(payload, dict):
        if isinstance(payload.get("sha256"), str):
            yield payload["sha256"]
        for item in payload.values():
            yield from named_content(item)
    elif isinstance(payload, list):
        for item in payload:
            yield from named_content(item)
