"""The receipt of one record: seed 004's shape, and an offline part that convinces without the server.

Most of a receipt can be worked out again from the proven wire, and is, by `verify`. What cannot (whether the
wire had an effect, where the receipt can be fetched, which signers were retired) is attested: the log signs a
digest of the whole document, beside signing the checkpoint. So no field of a receipt can change unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec

from redkey.errors import JsonRefused, ProofRefused
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint
from redkey.ledger.cosignature import is_cosignature
from redkey.ledger.event import Event, Party, event_of
from redkey.ledger.note import SIGNATURES_LIMIT, Signature, decode_base64, encode_base64
from redkey.ledger.proof import LogProof
from redkey.ledger.record import Record, hedera_time
from redkey.ledger.signer import Signer
from redkey.ledger.tiles import TileTree
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode

PROVIDER = "redkey"
RECEIPT_LIMIT = 64 * 1024 * 1024
_ATTESTATION = "redkey/receipt@v1"


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A part of a receipt: its fields and no others."""


class Verification(_Part, frozen=True):
    """What the server says of the proof: `pending` until a checkpoint covers the record."""

    status: Literal["verified", "pending"]
    provider: str
    receipt_url: str


class Effect(_Part, frozen=True):
    """What the record did: inclusion proves that it is there, not that it changed anything."""

    status: Literal["applied", "void"]
    reason: str | None = None


class Levels(_Part, frozen=True):
    """The levels of proof that the offline part has the material for."""

    integrity: bool
    signed: bool
    witnessed: bool
    anchored: bool


class Internal(_Part, frozen=True):
    """What the ledger knows and normal users never need."""

    topic_id: str
    payer: str
    consensus_timestamp: str
    previous_running_hash: str
    running_hash: str


class SignerTerm(_Part, frozen=True):
    """A signer of this log as the ledger tells it: added at a sequence, perhaps retired at another."""

    key: str
    added: int
    retired: int | None = None


class Offline(_Part, frozen=True):
    """Everything that a verifier needs beside keys.

    `proof` is a C2SP tlog-proof, `content` bodies in base64, `anchor` mirror rows; `attestation` has the key id
    and signature of each signer of the document, which sign under the checkpoint's origin.
    """

    wire: str
    internal: Internal
    proof: str
    signers: list[SignerTerm] = []
    content: list[str] = []
    anchor: list[dict[str, Any]] = []
    attestation: list[str] = []


class Receipt(_Part, frozen=True):
    """The document."""

    event_id: str
    type: str
    sequence: int
    timestamp: str
    actor: Party
    subject: Party
    verification: Verification
    effect: Effect
    levels: Levels
    offline: Offline | None = None


APPLIED = Effect("applied")


def prove(tree: TileTree, sequence: int, note: bytes) -> LogProof:
    """The proof that the record with this sequence is under a signed checkpoint."""
    checkpoint, signed = open_checkpoint(note)
    return LogProof(sequence - 1, tuple(tree.inclusion_proof(sequence - 1, checkpoint.size)), checkpoint, signed)


def build_receipt(
    record: Record,
    previous: bytes,
    proof: LogProof | None,
    *,
    base_url: str,
    effect: Effect = APPLIED,
    signers: Sequence[Signer] = (),
    history: Sequence[SignerTerm] = (),
    content: Sequence[bytes] = (),
    anchor: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The receipt of a record that follows the running hash `previous`; without a proof it says `pending`.

    `signers` attest the document; `history` are the terms of all signers of this log; `content` are bodies that
    the wire names; `anchor` are mirror rows that show the checkpoint on a public topic.
    """
    event = event_of(record)
    offline = None
    if proof is not None:
        offline = Offline(
            wire=record.wire.decode(),
            internal=_internal(record, previous),
            proof=proof.encode().decode(),
            signers=list(history),
            content=[encode_base64(body) for body in content],
            anchor=list(anchor),
        )
    receipt = Receipt(
        **_fields(event),
        verification=Verification(
            "pending" if proof is None else "verified", PROVIDER, f"{base_url.rstrip('/')}/receipts/{event.event_id}"
        ),
        effect=effect,
        levels=levels_of(proof, anchored=bool(anchor)),
        offline=offline,
    )
    document: dict[str, Any] = msgspec.to_builtins(receipt)
    if proof is not None and signers:
        text = attested_text(document, proof.checkpoint)
        signed = (signer.named(proof.checkpoint.origin).sign(text) for signer in signers)
        document["offline"]["attestation"] = [encode_base64(one.key_id + one.data) for one in signed]
    return document


def levels_of(proof: LogProof | None, *, anchored: bool) -> Levels:
    """The levels that a proof has the material for."""
    if proof is None:
        return Levels(False, False, False, False)
    signatures = proof.note.signatures
    return Levels(
        integrity=True,
        signed=any(one.name == proof.checkpoint.origin and not is_cosignature(one) for one in signatures),
        witnessed=any(is_cosignature(one) for one in signatures),
        anchored=anchored,
    )


def attested_text(document: dict[str, Any], checkpoint: Checkpoint) -> bytes:
    """What the log signs for a receipt: a digest of all of it but these signatures, under its origin and size.

    It can be taken for no checkpoint, whose second line is a number.
    """
    offline = {name: value for name, value in document["offline"].items() if name != "attestation"}
    digest = sha256(canonical({**document, "offline": offline})).digest()
    lines = (_ATTESTATION, checkpoint.origin, str(checkpoint.size), encode_base64(digest))
    return "".join(f"{line}\n" for line in lines).encode()


def attestations(offline: Offline, checkpoint: Checkpoint) -> list[Signature]:
    """The signatures of the document, none of which is checked yet."""
    lines = [decode_base64(line) for line in offline.attestation]
    if len({line[:4] for line in lines}) != len(lines) or len(lines) > SIGNATURES_LIMIT:
        text = f"a receipt is attested once by each signer, and by at most {SIGNATURES_LIMIT}"
        raise ProofRefused(text, code="receipt_malformed", pointer="/offline/attestation")
    return [Signature(checkpoint.origin, line[:4], line[4:]) for line in lines]


def read_receipt(data: bytes) -> tuple[dict[str, Any], Receipt]:
    """A receipt from its bytes, as JSON and as its parts; JsonRefused or ProofRefused when it is not one."""
    document = decode(data, size_limit=RECEIPT_LIMIT)
    try:
        return document, msgspec.convert(document, Receipt)
    except msgspec.ValidationError as cause:
        text, _, path = str(cause).partition(" - at `$")
        pointer = path.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
        raise ProofRefused(f"not a receipt: {text}", code="receipt_malformed", pointer=pointer) from cause


def self_contained(record: Record, previous: bytes, proof: LogProof) -> LogProof:
    """The proof with the record in its extra data, so that the text alone tells what it proves."""
    extra = {"wire": record.wire.decode(), "internal": msgspec.to_builtins(_internal(record, previous))}
    return msgspec.structs.replace(proof, extra=canonical(extra))


def read_extra(data: bytes) -> tuple[str, Internal]:
    """The record that travels in a proof's extra data: its wire, and what the ledger knows of it."""
    try:
        extra = decode(data)
        return extra["wire"], msgspec.convert(extra["internal"], Internal)
    except (KeyError, TypeError, JsonRefused, msgspec.ValidationError) as cause:
        raise ProofRefused("the extra data of the proof holds no record", code="record_malformed") from cause


def _fields(event: Event) -> dict[str, Any]:
    return msgspec.structs.asdict(event)


def _internal(record: Record, previous: bytes) -> Internal:
    return Internal(
        topic_id=record.topic,
        payer=record.payer,
        consensus_timestamp=hedera_time(record.timestamp),
        previous_running_hash=encode_base64(previous),
        running_hash=encode_base64(record.running_hash),
    )
