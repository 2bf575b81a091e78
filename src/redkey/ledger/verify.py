"""Verify a receipt or a proof with nothing but its bytes and the caller's keys.

The result names the levels that are reached, and says why the others are not.

    integrity   the parts agree: the record is in the tree of the checkpoint, and the receipt matches the record
    signed      one of the caller's keys signed that checkpoint, and the rest of the receipt
    witnessed   the caller's witnesses cosigned it: the log showed them the same history
    anchored    it is on a public topic, by a mirror node's answer that the caller fetched

Without integrity no other level is reached: a valid signature of another record proves nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256, sha384
from typing import Any

import msgspec

from redkey.errors import Finding, JsonRefused, KeyRefused, ProofRefused
from redkey.ledger import merkle
from redkey.ledger.anchor import anchored_level
from redkey.ledger.checkpoint import Checkpoint
from redkey.ledger.event import event_at, sender_of
from redkey.ledger.mirror import MirrorRow
from redkey.ledger.note import Signature, VerifierKey, decode_base64, parse_key
from redkey.ledger.ordered import Compute, ordered_level
from redkey.ledger.proof import LogProof, parse_proof
from redkey.ledger.receipt import (
    PROVIDER,
    attestations,
    attested_text,
    levels_of,
    read_receipt,
)
from redkey.ledger.record import MESSAGE_LIMIT, parse_hedera_time
from redkey.ledger.running_hash import GENESIS, preimage
from redkey.ledger.trust import Level, Opinion, TrustedKey, attests, signed_level, witnessed_level
from redkey.shapes.events import EventHead
from redkey.shapes.receipts import Receipt, ReceiptEffect, ReceiptInternal, ReceiptProof
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode

LEVELS = ("integrity", "signed", "witnessed", "anchored")


class Policy(msgspec.Struct, frozen=True):
    """What the caller trusts: log keys, witness keys and how many of them must have cosigned, mirror rows."""

    keys: tuple[TrustedKey, ...] = ()
    witnesses: tuple[VerifierKey, ...] = ()
    quorum: int | None = None
    mirror: tuple[MirrorRow, ...] = ()
    # Computes records of workspaces that a network orders.
    compute: Compute | None = None

    @property
    def asked(self) -> tuple[str, ...]:
        """Return the levels that the caller can check."""
        brought = (True, bool(self.keys), bool(self.witnesses), bool(self.mirror or self.compute))
        return tuple(name for name, there in zip(LEVELS, brought, strict=True) if there)


class Verdict(msgspec.Struct, frozen=True):
    """The levels by name, everything that is wrong, and the event of the wire."""

    levels: dict[str, Level]
    findings: tuple[Finding, ...]
    event: EventHead | None = None
    checkpoint: Checkpoint | None = None
    effect: ReceiptEffect | None = None

    def holds(self, *names: str) -> bool:
        return all(self.levels[name].holds for name in names)


class _Shown(msgspec.Struct, frozen=True):
    """The record in a receipt; it matches its own running hash, and nothing else is verified yet."""

    wire: Any
    leaf: bytes
    timestamp: int


def verify_receipt(data: bytes, policy: Policy) -> Verdict:
    """Return what a receipt proves to a caller with these keys."""
    try:
        document, receipt = read_receipt(data)
        if receipt.offline is None:
            return nothing_holds(Finding("offline_missing", "/offline", _no_offline(receipt)))
        proof = parse_proof(receipt.offline.proof.encode())
        shown = _record(receipt.offline.wire, receipt.offline.internal, receipt.sequence)
        event = event_at(shown.wire, receipt.sequence, shown.timestamp)
        wrong = tuple(_integrity(receipt, receipt.offline, proof, shown, event))
        retired = _retirements(receipt.offline)
        attestation = attestations(receipt.offline, proof.checkpoint)
    except (ProofRefused, JsonRefused) as refused:
        return nothing_holds(*refused.findings())
    signed = signed_level(proof.checkpoint, proof.note, policy.keys, retired)
    if signed.level.holds:
        signed = _attested(signed, attestation, attested_text(document, proof.checkpoint))
    order, ordered = receipt.offline.order, None
    if order is not None and not wrong:
        ordered = ordered_level(receipt, receipt.offline, order, policy.compute)
    verdict = _verdict(proof, wrong, signed, policy, receipt.offline.anchor, retired, event, ordered)
    return msgspec.structs.replace(verdict, effect=receipt.effect)


def verify_proof(proof: LogProof, leaf: bytes, policy: Policy, event: EventHead | None = None) -> Verdict:
    """Return what a tlog-proof proves about the leaf with these bytes."""
    wrong = tuple(_inclusion(proof, leaf))
    signed = signed_level(proof.checkpoint, proof.note, policy.keys)
    return _verdict(proof, wrong, signed, policy, (), {}, event)


def verify_record_proof(proof: LogProof, wire: str, internal: ReceiptInternal, policy: Policy) -> Verdict:
    """Return what a tlog-proof proves about a record, given its wire and what the ledger knows about it."""
    try:
        shown = _record(wire, internal, proof.index + 1)
        event = event_at(shown.wire, proof.index + 1, shown.timestamp)
    except (ProofRefused, JsonRefused) as refused:
        return nothing_holds(*refused.findings())
    return verify_proof(proof, shown.leaf, policy, event)


def nothing_holds(*findings: Finding) -> Verdict:
    """Return the verdict on a receipt that cannot be read, or contradicts itself."""
    why = [findings[0].message, *("the receipt is not whole",) * 3]
    return Verdict({name: Level(False, text) for name, text in zip(LEVELS, why, strict=True)}, findings)


def _verdict(
    proof: LogProof,
    wrong: tuple[Finding, ...],
    signed: Opinion,
    policy: Policy,
    anchor: Sequence[Any],
    retired: dict[bytes, int],
    event: EventHead | None,
    ordered: Opinion | None = None,
) -> Verdict:
    if wrong:
        return nothing_holds(*wrong)
    checkpoint = proof.checkpoint
    own = {one.key.public_key for one in policy.keys} | set(retired)
    witnessed = witnessed_level(proof.note, policy.witnesses, policy.quorum, own)
    anchored = ordered or anchored_level(checkpoint, anchor, policy.mirror)
    inside = f"record {proof.index + 1} is in the tree of {checkpoint.size:,} records of {checkpoint.origin}"
    opinions = (Opinion(Level(True, inside)), signed, witnessed, anchored)
    levels = {name: opinion.level for name, opinion in zip(LEVELS, opinions, strict=True)}
    return Verdict(levels, tuple(found for one in opinions for found in one.findings), event, checkpoint)


def _record(wire: str, internal: ReceiptInternal, sequence: int) -> _Shown:
    """Return the record in a receipt, and its leaf; raise ProofRefused if it contradicts itself."""
    data = wire.encode()
    if not 0 < len(data) <= MESSAGE_LIMIT:
        raise ProofRefused(f"the wire has {len(data)} bytes; 1 to {MESSAGE_LIMIT} are allowed", code="wire_length")
    value = decode(data)
    if canonical(value) != data:
        raise ProofRefused("the wire is not in its canonical bytes", code="wire_not_canonical", pointer="/offline/wire")
    try:
        timestamp = parse_hedera_time(internal.consensus_timestamp)
        previous = decode_base64(internal.previous_running_hash)
        if len(previous) != len(GENESIS):
            raise ValueError("a running hash has 48 bytes")
        leaf = preimage(previous, internal.payer, internal.topic_id, timestamp, sequence, data)
    except (ValueError, struct.error, ProofRefused) as cause:
        text = f"the record cannot be hashed: {cause}"
        raise ProofRefused(text, code="record_malformed", pointer="/offline/internal") from cause
    if sha384(leaf).digest() != decode_base64(internal.running_hash):
        text = "the running hash is not the hash of the record that is shown"
        raise ProofRefused(text, code="running_hash_wrong", pointer="/offline/internal/runningHash")
    return _Shown(value, leaf, timestamp)


def _integrity(
    receipt: Receipt, offline: ReceiptProof, proof: LogProof, shown: _Shown, event: EventHead
) -> Iterator[Finding]:
    if proof.index != receipt.sequence - 1:
        text = f"the proof is of record {proof.index + 1}, the receipt of record {receipt.sequence}"
        yield Finding("sequence_mismatch", "/sequence", text)
    yield from _inclusion(proof, shown.leaf)
    stated = msgspec.to_builtins(receipt)
    for name, value in msgspec.to_builtins(event).items():
        if stated[name] != value and not (name == "actor" and receipt.actor == sender_of(shown.wire)):
            yield Finding("field_mismatch", f"/{name}", f"the receipt says {name} {stated[name]!r}, the wire {value!r}")
    verification = receipt.verification
    if verification.status != "verified" or verification.provider != PROVIDER:
        yield Finding("field_mismatch", "/verification", f"a receipt with a proof says `verified` and `{PROVIDER}`")
    if not verification.receipt_url.endswith(f"/receipts/{event.event_id}"):
        yield Finding("field_mismatch", "/verification/receiptUrl", "the address is of another receipt")
    if receipt.levels != levels_of(proof, anchored=bool(offline.anchor) or offline.order is not None):
        yield Finding("levels_mismatch", "/levels", "the receipt claims other levels than it carries material for")
    if (receipt.effect.status == "void") != (receipt.effect.reason is not None):
        yield Finding("field_mismatch", "/effect", "a void effect has a reason, an applied one has none")
    yield from _content(offline, shown.wire)


def _inclusion(proof: LogProof, leaf: bytes) -> Iterator[Finding]:
    size = proof.checkpoint.size
    if proof.index >= size:
        text = f"record {proof.index + 1} is beyond the checkpoint, which covers {size}"
        yield Finding("record_beyond_checkpoint", "/offline/proof", text)
    elif not proof.proves(merkle.leaf_hash(leaf)):
        yield Finding("inclusion_wrong", "/offline/proof", "the proof does not lead from the record to the root")


def _content(offline: ReceiptProof, wire: Any) -> Iterator[Finding]:
    named = dict(_references(wire["payload"]))
    for index, body in enumerate(offline.content):
        pointer = f"/offline/content/{index}"
        try:
            data = decode_base64(body)
        except ProofRefused as refused:
            yield Finding(refused.code, pointer, refused.message)
            continue
        digest = sha256(data).hexdigest()
        if digest not in named:
            yield Finding("content_not_named", pointer, "the wire names no content with this hash")
        elif named[digest] not in (None, len(data)):
            yield Finding("content_length", pointer, f"{len(data)} bytes; the wire says {named[digest]}")


def _references(value: Any) -> Iterator[tuple[str, int | None]]:
    """Return every (sha256, bytes) that a payload names."""
    if isinstance(value, dict):
        if isinstance(value.get("sha256"), str):
            yield value["sha256"], value.get("bytes")
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _retirements(offline: ReceiptProof) -> dict[bytes, int]:
    """Return the tree size at which each signer in the receipt was retired, by public key."""
    retired: dict[bytes, int] = {}
    for index, term in enumerate(offline.signers):
        try:
            key = parse_key(term.key)
        except KeyRefused as refused:
            raise ProofRefused(refused.message, code=refused.code, pointer=f"/offline/signers/{index}") from refused
        if term.retired is not None:
            retired[key.public_key] = term.retired
    return retired


def _attested(signed: Opinion, attestation: Sequence[Signature], text: bytes) -> Opinion:
    """Keep the signed level only if the same key signed the rest of the receipt."""
    answer = attests(signed.keys, attestation, text)
    if answer:
        return signed
    told = "is wrong: the receipt was changed" if answer is False else "is missing"
    why = f"the checkpoint is {signed.level.why}, but the signature of the receipt itself {told}"
    code = "attestation_invalid" if answer is False else "attestation_missing"
    return Opinion(Level(False, why), (Finding(code, "/offline/attestation", why),))


def _no_offline(receipt: Receipt) -> str:
    if receipt.verification.status == "pending":
        return "no checkpoint covers this record yet: fetch the receipt again"
    return "the receipt has no offline part: fetch it with ?format=proof"
