"""The receipt of one record, with an offline part that can be verified without the server.

`verify` computes most of a receipt again from the proven wire. The rest (whether the wire had an effect, where the
receipt can be fetched, which signers were retired) is attested: the log signs a digest of the whole document, besides
the checkpoint. So no field of a receipt can change unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, get_args

import msgspec

from redkey.errors import JsonRefused, ProofRefused
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint
from redkey.ledger.cosignature import is_cosignature
from redkey.ledger.event import event_of
from redkey.ledger.note import SIGNATURES_LIMIT, Signature, decode_base64, encode_base64
from redkey.ledger.proof import LogProof
from redkey.ledger.record import Record, hedera_time
from redkey.ledger.signer import Signer
from redkey.ledger.tiles import TileTree
from redkey.shapes.receipts import (
    Receipt,
    ReceiptEffect,
    ReceiptInternal,
    ReceiptLevels,
    ReceiptOrder,
    ReceiptProof,
    ReceiptVerification,
    SignerTerm,
)
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode

PROVIDER = "redkey"
RECEIPT_LIMIT = 64 * 1024 * 1024
_ATTESTATION = "redkey/receipt@v1"


APPLIED = ReceiptEffect(status="applied")


def prove(tree: TileTree, sequence: int, note: bytes) -> LogProof:
    """Build the proof that the record with this sequence is in the tree of a signed checkpoint."""
    checkpoint, signed = open_checkpoint(note)
    return LogProof(sequence - 1, tuple(tree.inclusion_proof(sequence - 1, checkpoint.size)), checkpoint, signed)


def build_receipt(
    record: Record,
    previous: bytes,
    proof: LogProof | None,
    *,
    base_url: str,
    effect: ReceiptEffect = APPLIED,
    signers: Sequence[Signer] = (),
    history: Sequence[SignerTerm] = (),
    content: Sequence[bytes] = (),
    anchor: Sequence[dict[str, Any]] = (),
    order: ReceiptOrder | None = None,
) -> dict[str, Any]:
    """Build the receipt of a record that follows the running hash `previous`; without a proof it is `pending`.

    `signers` attest the document; `history` are the terms of all signers of this log; `content` are bodies that
    the wire names; `anchor` are mirror rows that show the checkpoint on a public topic; `order` says which messages of
    a network the record follows from.
    """
    event = event_of(record)
    offline = None
    if proof is not None:
        offline = ReceiptProof(
            wire=record.wire.decode(),
            internal=_internal(record, previous),
            proof=proof.encode().decode(),
            signers=tuple(history),
            content=tuple(encode_base64(body) for body in content),
            anchor=tuple(anchor),
            order=order,
        )
    receipt = Receipt(
        **msgspec.structs.asdict(event),
        verification=ReceiptVerification(
            status="pending" if proof is None else "verified",
            provider=PROVIDER,
            receipt_url=f"{base_url.rstrip('/')}/receipts/{event.event_id}",
        ),
        effect=effect,
        levels=levels_of(proof, anchored=bool(anchor) or order is not None),
        offline=offline,
    )
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(receipt))
    if proof is not None and signers:
        text = attested_text(document, proof.checkpoint)
        signed = (signer.named(proof.checkpoint.origin).sign(text) for signer in signers)
        document["offline"]["attestation"] = [encode_base64(one.key_id + one.data) for one in signed]
    return document


def levels_of(proof: LogProof | None, *, anchored: bool) -> ReceiptLevels:
    """Return the levels that a proof has the material for."""
    if proof is None:
        return ReceiptLevels(integrity=False, signed=False, witnessed=False, anchored=False)
    signatures = proof.note.signatures
    return ReceiptLevels(
        integrity=True,
        signed=any(one.name == proof.checkpoint.origin and not is_cosignature(one) for one in signatures),
        witnessed=any(is_cosignature(one) for one in signatures),
        anchored=anchored,
    )


def attested_text(document: dict[str, Any], checkpoint: Checkpoint) -> bytes:
    """Return what the log signs for a receipt: a digest of all of it but these signatures, with its origin and size.

    It cannot be taken for a checkpoint, because the second line of a checkpoint is a number.
    """
    offline = {name: value for name, value in document["offline"].items() if name != "attestation"}
    digest = sha256(canonical({**document, "offline": offline})).digest()
    lines = (_ATTESTATION, checkpoint.origin, str(checkpoint.size), encode_base64(digest))
    return "".join(f"{line}\n" for line in lines).encode()


def attestations(offline: ReceiptProof, checkpoint: Checkpoint) -> list[Signature]:
    """Return the signatures of the document, which are not verified yet."""
    lines = [decode_base64(line) for line in offline.attestation]
    if len({line[:4] for line in lines}) != len(lines) or len(lines) > SIGNATURES_LIMIT:
        text = f"a receipt is attested once by each signer, and by at most {SIGNATURES_LIMIT}"
        raise ProofRefused(text, code="receipt_malformed", pointer="/offline/attestation")
    return [Signature(checkpoint.origin, line[:4], line[4:]) for line in lines]


def read_receipt(data: bytes) -> tuple[dict[str, Any], Receipt]:
    """Read a receipt, as JSON and as its parts; raise JsonRefused or ProofRefused if it is not one."""
    document = decode(data, size_limit=RECEIPT_LIMIT)
    try:
        receipt = msgspec.convert(document, Receipt)
    except msgspec.ValidationError as cause:
        text, _, path = str(cause).partition(" - at `$")
        pointer = path.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
        raise _malformed(text, pointer) from cause
    _check_known(document, receipt, "")
    return document, receipt


def _check_known(document: Any, part: Any, pointer: str) -> None:
    """Refuse fields and values that this version does not know.

    A client ignores them, because a newer server may send more. A verifier must not: it cannot verify them.
    """
    if isinstance(part, tuple):
        for index, (item, inner) in enumerate(zip(document, part, strict=True)):
            _check_known(item, inner, f"{pointer}/{index}")
    if not isinstance(part, msgspec.Struct):
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(part)}
    for name, item in document.items():
        field = fields.get(name)
        if field is None:
            raise _malformed(f"Object contains unknown field `{name}`", pointer)
        value = getattr(part, field.name)
        for meta in get_args(field.type):
            if isinstance(meta, msgspec.Meta) and value not in (meta.extra_json_schema or {}).get("enum", (value,)):
                raise _malformed(f"Invalid enum value {value!r}", f"{pointer}/{name}")
        _check_known(item, value, f"{pointer}/{name}")


def _malformed(text: str, pointer: str) -> ProofRefused:
    return ProofRefused(f"not a receipt: {text}", code="receipt_malformed", pointer=pointer)


def self_contained(record: Record, previous: bytes, proof: LogProof) -> LogProof:
    """Return the proof with the record in its extra data, so that the text alone shows what it proves."""
    extra = {"wire": record.wire.decode(), "internal": msgspec.to_builtins(_internal(record, previous))}
    return msgspec.structs.replace(proof, extra=canonical(extra))


def read_extra(data: bytes) -> tuple[str, ReceiptInternal]:
    """Read the record in a proof's extra data: its wire, and what the ledger knows about it."""
    try:
        extra = decode(data)
        internal = msgspec.convert(extra["internal"], ReceiptInternal)
        _check_known(extra["internal"], internal, "/internal")
        return extra["wire"], internal
    except (KeyError, TypeError, JsonRefused, ProofRefused, msgspec.ValidationError) as cause:
        raise ProofRefused("the extra data of the proof has no record", code="record_malformed") from cause


def _internal(record: Record, previous: bytes) -> ReceiptInternal:
    return ReceiptInternal(
        topic_id=record.topic,
        payer=record.payer,
        consensus_timestamp=hedera_time(record.timestamp),
        previous_running_hash=encode_base64(previous),
        running_hash=encode_base64(record.running_hash),
    )
