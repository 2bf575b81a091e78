"""The level `anchored` where a network orders a workspace: the record itself follows from the messages of a topic.

With the messages, every record of the local topic can be computed again, with its running hash. The caller brings the
code for that (`redkey.services.ordered.recompute`); here the result is compared with what the receipt says.
"""

from __future__ import annotations

from collections.abc import Callable

from redkey.errors import Finding, ProofRefused
from redkey.ledger.note import encode_base64
from redkey.ledger.record import Record, hedera_time
from redkey.ledger.trust import Level, Opinion
from redkey.shapes.receipts import Receipt, ReceiptOrder, ReceiptProof

# The record at a place of the local topic, and the message that it is (0 for none); raises ProofRefused.
Compute = Callable[[ReceiptOrder, int], tuple[Record, int]]


def ordered_level(receipt: Receipt, offline: ReceiptProof, order: ReceiptOrder, compute: Compute | None) -> Opinion:
    """Compute a record from the messages of its topic, and compare it with the one that the receipt shows."""
    place = f"topic {order.topic} of {order.network}"
    if compute is None:
        text = f"{place} gives the order, and no mirror was named to compute the record from its messages"
        return Opinion(Level(False, text))
    try:
        record, message = compute(order, receipt.sequence)
    except ProofRefused as refused:
        return _refused(refused.code, refused.message)
    internal = offline.internal
    shown = (internal.topic_id, internal.payer, internal.consensus_timestamp, internal.running_hash, offline.wire)
    running_hash = encode_base64(record.running_hash)
    found = (record.topic, record.payer, hedera_time(record.timestamp), running_hash, record.wire.decode())
    if shown != found:
        return _refused("order_differs", f"the messages of {place} give another record {receipt.sequence}")
    if (order.sequence or 0) != message:
        text = f"record {receipt.sequence} is message {message or 'none'} of {place}, not {order.sequence or 'none'}"
        return _refused("order_differs", text)
    if message:
        return Opinion(Level(True, f"it is message {message} of {place}, and everything before it was computed again"))
    return Opinion(Level(True, f"it follows from the messages of {place} up to {order.until}, computed again"))


def _refused(code: str, text: str) -> Opinion:
    return Opinion(Level(False, text), (Finding(code, "/offline/order", text),))
