"""Receipts of recorded events, made from a store: record, proof, checkpoint, effect, signers, content.

`redkey.ledger` defines what a receipt is and how it is verified; this module collects the parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redkey.errors import StoreError, WriterBusy
from redkey.ledger.checkpoint import log_name
from redkey.ledger.network import is_projected
from redkey.ledger.ports import Reader
from redkey.ledger.receipt import APPLIED, build_receipt, prove, self_contained
from redkey.ledger.record import Record
from redkey.ledger.running_hash import GENESIS
from redkey.readmodel.rows import entity, void_key
from redkey.services.anchors import newest_anchor
from redkey.services.log_facts import signer_terms
from redkey.services.ordered.messages import message_after, message_of, read_cursor
from redkey.services.signing import Signing
from redkey.shapes.receipts import ReceiptEffect, ReceiptOrder
from redkey.wire.decode import decode
from redkey.wire.ids import wire_id_of

# The limit for all bodies in one receipt; larger ones are fetched by their hash.
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
    """Return the receipt of an event, by its event id or wire id; None if the topic has no such event.

    A record that no checkpoint covers is signed for at once; if another writer blocks that for too long, the receipt
    says `pending`. Without `offline` it says what is proven and omits the proof. With `content` it includes the bodies
    that the wire names, if they still exist and fit.
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
        anchor=_anchor_rows(reader, topic, note),
        order=order_of(reader, topic, record.sequence),
    )
    if not offline:
        document.pop("offline", None)
    return document


def order_of(reader: Reader, topic: str, sequence: int) -> ReceiptOrder | None:
    """Return a record's place among the messages of the network that orders its workspace; None if none does."""
    workspace = reader.row(topic, "workspace", "")
    if workspace is None or not is_projected(topic):
        return None
    found = next((one for one in entity(workspace).topics.values() if one.use == "order"), None)
    if found is None:
        # The first records, before the workspace names its topic.
        return None
    message = message_of(reader, topic, sequence)
    if message is not None:
        return ReceiptOrder(network=found.network, topic=found.topic, sequence=message.sequence, until=message.sequence)
    # It was recorded at the latest when the next message was read.
    later = message_after(reader, topic, sequence)
    until = later.sequence if later is not None else read_cursor(reader, topic).sequence
    return ReceiptOrder(network=found.network, topic=found.topic, until=until)


def _anchor_rows(reader: Reader, topic: str, note: bytes | None) -> tuple[dict[str, Any], ...]:
    """Return the mirror's rows that show a checkpoint on a public topic; none if it is not anchored."""
    anchored = newest_anchor(reader, topic)
    return anchored.rows if anchored is not None and note == anchored.note.encode() else ()


def proof_for(reader: Reader, topic: str, event: str, signing: Signing) -> bytes | None:
    """Return the proof of an event alone, as C2SP tlog-proof with the record in it; None if there is no such event."""
    record = reader.find(topic, wire_id_of(event) if event.startswith("evt_") else event)
    note = signing.cover(topic, record.sequence) if record is not None else None
    if record is None or note is None:
        return None
    proof = prove(reader.tree(topic), record.sequence, note)
    return self_contained(record, _before(reader, record), proof).encode()


def _before(reader: Reader, record: Record) -> bytes:
    """Return the running hash before a record."""
    return reader.read(record.topic, record.sequence - 2, 1)[0].running_hash if record.sequence > 1 else GENESIS


def effect_of(reader: Reader, topic: str, sequence: int) -> ReceiptEffect:
    """Return what a record did: the fold that wrote the rows has stored which records are void."""
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
            # A damaged body proves nothing: the receipt is complete without it, and fsck reports it.
            continue
        if found is not None:
            yield found.data


def named_content(payload: object) -> Iterator[str]:
    """Yield the SHA-256 of every body that a payload names by a ref."""
    if isinstance(payload, dict):
        if isinstance(payload.get("sha256"), str):
            yield payload["sha256"]
        for item in payload.values():
            yield from named_content(item)
    elif isinstance(payload, list):
        for item in payload:
            yield from named_content(item)
