"""Documents that others hold: receipts, proofs and checkpoints that the ledger must contain, or its end was cut off.

A valid hash chain does not show that records after its end are missing; a receipt of such a record does. A receipt that
contradicts itself proves nothing.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from redkey.errors import ProofRefused
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint
from redkey.ledger.note import decode_base64
from redkey.ledger.proof import HEADER, parse_proof
from redkey.ledger.receipt import read_extra, read_receipt
from redkey.ledger.verify import Policy, Verdict, verify_receipt, verify_record_proof
from redkey.shapes.receipts import ReceiptInternal
from redkey.wire.ids import wire_id_of

_NOBODY = Policy()


class Claim(msgspec.Struct, frozen=True):
    """A record and a tree that a document claims to be on the ledger; either may be absent."""

    source: str
    sequence: int = 0
    wire_id: str = ""
    topic: str = ""
    running_hash: bytes = b""
    wire_sha256: bytes = b""
    checkpoint: Checkpoint | None = None


def read_claim(source: str, data: bytes) -> Claim:
    """Read the claim of one file; ProofRefused or JsonRefused if the file proves nothing."""
    if data.startswith(HEADER.encode() + b"\n"):
        proof = parse_proof(data)
        if not proof.extra:
            return Claim(source, checkpoint=proof.checkpoint)
        wire, internal = read_extra(proof.extra)
        verdict = verify_record_proof(proof, wire, internal, _NOBODY)
        return _claim(source, verdict, wire, internal)
    if not data.lstrip().startswith(b"{"):
        return Claim(source, checkpoint=open_checkpoint(data)[0])
    _, receipt = read_receipt(data)
    if receipt.offline is None:
        return Claim(source, receipt.sequence, wire_id_of(receipt.event_id))
    verdict = verify_receipt(data, _NOBODY)
    return _claim(source, verdict, receipt.offline.wire, receipt.offline.internal)


def _claim(source: str, verdict: Verdict, wire: str, internal: ReceiptInternal) -> Claim:
    if verdict.event is None or not verdict.holds("integrity"):
        raise ProofRefused(f"it proves nothing: {verdict.levels['integrity'].why}", code="receipt_unsound")
    return Claim(
        source,
        verdict.event.sequence,
        wire_id_of(verdict.event.event_id),
        internal.topic_id,
        decode_base64(internal.running_hash),
        sha256(wire.encode()).digest(),
        verdict.checkpoint,
    )
