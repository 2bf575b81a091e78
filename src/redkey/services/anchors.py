"""The anchors of a topic as the store knows them: the pending one, and the newest that the network shows.

Both are facts of the topic and change in its units, so all servers see the same. A transaction id is stored before
anything is sent, and dropped only when it can no longer be recorded. So a checkpoint is recorded once, whichever server
continues with it, and after any crash.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from redkey.commands.draft import Draft, derived_id
from redkey.errors import ProofRefused
from redkey.ledger.anchor import anchor_message, anchored_checkpoint, anchored_level
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint
from redkey.ledger.fees import Price
from redkey.ledger.mirror import parse_row
from redkey.ledger.ports import Reader, Unit
from redkey.services.log_facts import note_facts, workspace_of
from redkey.services.network_fees import FEES, FeeBook, FeeLimits, put_book, read_book
from redkey.wire.events import CheckpointAnchored

ANCHOR = "anchor/"
ANCHORED = "anchored/"


class PendingAnchor(msgspec.Struct, frozen=True):
    """A checkpoint that is being anchored: its signed note, the message, and the transaction id drawn for it."""

    note: str
    message: bytes
    transaction_id: str
    price: Price


class Anchored(msgspec.Struct, frozen=True):
    """The newest anchored checkpoint: its signed note, and the mirror's rows of the message and the one before it."""

    network: str
    note: str
    rows: tuple[dict[str, Any], ...]
    # The record that says so; 0 in what earlier versions stored: the one after the checkpoint, if nothing came between.
    sequence: int = 0

    def unanchored(self, size: int) -> int:
        """Count the records up to a size that no anchor covers, without the one that records this anchor."""
        first = self.checkpoint.size + 1
        return max(0, size - first + 1 - (first <= (self.sequence or first) <= size))

    @property
    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint of the note."""
        return open_checkpoint(self.note.encode())[0]


def pending_anchor(reader: Reader, topic: str) -> PendingAnchor | None:
    """Return the pending anchor."""
    text = reader.setting(ANCHOR + topic)
    return msgspec.json.decode(text, type=PendingAnchor) if text else None


def newest_anchor(reader: Reader, topic: str) -> Anchored | None:
    """Return the newest anchor that the network shows."""
    text = reader.setting(ANCHORED + topic)
    return msgspec.json.decode(text, type=Anchored) if text else None


def is_new(checkpoint: Checkpoint, anchored: Anchored | None) -> bool:
    """True if a checkpoint needs an anchor: it covers more than the record of the last anchor itself."""
    return anchored is None or anchored.unanchored(checkpoint.size) > 0


def begin_anchor(
    unit: Unit, topic: str, note: bytes, transaction_id: str, price: Price, limits: FeeLimits
) -> PendingAnchor | None:
    """Store the next message and reserve its fee; None if nothing is to be sent, or another server was first.

    Refused (402) if the fee would exceed the budget; nothing is stored then.
    """
    checkpoint, _ = open_checkpoint(note)
    anchored = newest_anchor(unit, topic)
    if pending_anchor(unit, topic) is not None or not is_new(checkpoint, anchored):
        return None
    before = anchored.checkpoint if anchored is not None else None
    pending = PendingAnchor(note.decode(), anchor_message(checkpoint, before), transaction_id, price)
    put_book(unit, topic, read_book(unit, topic).reserve(price, limits, unit.next_timestamp(topic)))
    unit.put_fact(topic, ANCHOR + topic, msgspec.json.encode(pending).decode())
    return pending


def give_up_anchor(unit: Unit, topic: str, transaction_id: str, fee: Price | None) -> None:
    """End a pending anchor: it failed and cost a fee, or was never recorded and cost none."""
    pending = pending_anchor(unit, topic)
    if pending is None or pending.transaction_id != transaction_id:
        return
    book, now = read_book(unit, topic), unit.next_timestamp(topic)
    put_book(unit, topic, book.release(pending.price) if fee is None else book.paid(fee, pending.price, now))
    unit.put_fact(topic, ANCHOR + topic, "")


def finish_anchor(unit: Unit, topic: str, transaction_id: str, fee: Price, anchored: Anchored) -> bool:
    """Record that the network shows an anchor, and book its fee; False if another server has done so."""
    pending = pending_anchor(unit, topic)
    if pending is None or pending.transaction_id != transaction_id:
        return False
    now = unit.next_timestamp(topic)
    put_book(unit, topic, read_book(unit, topic).paid(fee, pending.price, now))
    unit.put_fact(topic, ANCHOR + topic, "")
    workspace_id = workspace_of(unit, topic)
    if workspace_id is None:
        raise ProofRefused(f"topic {topic} holds no workspace", code="workspace_missing")
    checkpoint, row = anchored.checkpoint, anchored.rows[-1]
    payload = CheckpointAnchored(
        network=anchored.network,
        topic_id=row["topic_id"],
        sequence_number=row["sequence_number"],
        tree_size=checkpoint.size,
        root=b64encode(checkpoint.root).decode(),
    )
    where = f"workspace:{workspace_id}"
    subject = f"{payload.topic_id}/{payload.sequence_number}"
    draft = Draft(payload, where, where, wire_id=derived_id(workspace_id, payload.TYPE, subject))
    [recorded] = note_facts(unit, topic, [draft])
    stored = msgspec.structs.replace(anchored, sequence=recorded.sequence)
    unit.put_fact(topic, ANCHORED + topic, msgspec.json.encode(stored).decode())
    return True


def forget_anchors(unit: Unit, topic: str) -> None:
    """Remove all anchors: the new epoch of a restored log has none. The book still has what was paid."""
    pending = pending_anchor(unit, topic)
    if pending is not None:
        put_book(unit, topic, read_book(unit, topic).release(pending.price))
        unit.put_fact(topic, ANCHOR + topic, "")
    if newest_anchor(unit, topic) is not None:
        unit.put_fact(topic, ANCHORED + topic, "")


def wrong_anchor(kind: str, value: str) -> str:
    """Return what is wrong with a stored fact of anchors or fees; empty if nothing is."""
    if not value and kind != FEES:
        return ""
    try:
        if kind == FEES:
            msgspec.json.decode(value, type=FeeBook)
        elif kind == ANCHOR:
            pending = msgspec.json.decode(value, type=PendingAnchor)
            if anchored_checkpoint(pending.message).root != open_checkpoint(pending.note.encode())[0].root:
                return "sends another checkpoint than it names"
        else:
            anchored = msgspec.json.decode(value, type=Anchored)
            rows = tuple(parse_row(row) for row in anchored.rows)
            if not anchored_level(anchored.checkpoint, (), rows).level.holds:
                return "has rows that do not show its checkpoint on a topic"
    except (msgspec.DecodeError, ProofRefused) as cause:
        return f"cannot be read: {cause}"
    return ""
