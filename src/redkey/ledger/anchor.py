"""Anchors: write a checkpoint as a message for an HCS topic, as HCS-27 describes it, and read it back."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from redkey.errors import Finding, JsonRefused, ProofRefused
from redkey.ledger.checkpoint import Checkpoint, parse_size
from redkey.ledger.merkle import HASH_BYTES
from redkey.ledger.mirror import MirrorRow, check_rows, parse_row
from redkey.ledger.record import hedera_time
from redkey.ledger.trust import Level, Opinion
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode

# HCS-27 asks for a name of what a leaf is; `running_hash` defines it.
LEAF = "sha256(0x00 || hcs-running-hash-v3-preimage)"


def anchor_message(checkpoint: Checkpoint, previous: Checkpoint | None = None) -> bytes:
    """Build the message that anchors a checkpoint; `previous` is the checkpoint anchored before it."""
    registry, _, log_id = checkpoint.origin.partition("/")
    metadata: dict[str, Any] = {
        "type": "ans-checkpoint-v1",
        "stream": {"registry": registry, "log_id": log_id},
        "log": {"alg": "sha-256", "leaf": LEAF, "merkle": "rfc9162"},
        "root": _commitment(checkpoint),
    }
    if previous is not None:
        metadata["prev"] = _commitment(previous)
    return canonical({"p": "hcs-27", "op": "register", "metadata": metadata})


def anchored_checkpoint(message: bytes) -> Checkpoint:
    """Read the checkpoint that a message anchors; raise ProofRefused if it anchors none."""
    try:
        value = decode(message, size_limit=4096)
        if (value["p"], value["op"]) != ("hcs-27", "register"):
            raise ValueError("it is not an hcs-27 register message")
        metadata = value["metadata"]
        if (metadata["log"]["alg"], metadata["log"]["merkle"]) != ("sha-256", "rfc9162"):
            raise ValueError("its tree is not RFC 9162 over SHA-256")
        stream, root = metadata["stream"], metadata["root"]
        origin = f"{stream['registry']}/{stream['log_id']}"
        return Checkpoint(origin, parse_size(root["treeSize"]), _hash(root["rootHashB64u"]))
    except (KeyError, TypeError, ValueError, JsonRefused) as cause:
        raise ProofRefused(f"the message anchors no checkpoint: {cause}", code="anchor_malformed") from cause


def _commitment(checkpoint: Checkpoint) -> dict[str, str]:
    return {
        "treeSize": str(checkpoint.size),
        "rootHashB64u": urlsafe_b64encode(checkpoint.root).decode().rstrip("="),
    }


def _hash(text: str) -> bytes:
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(data) != HASH_BYTES or urlsafe_b64encode(data).decode().rstrip("=") != text:
        raise ValueError("its root is not 32 bytes of base64url")
    return data


def anchored_level(checkpoint: Checkpoint, attached: Sequence[Any], brought: Sequence[MirrorRow]) -> Opinion:
    """Check that the checkpoint is on a topic, by the rows of the receipt and the rows that the caller fetched.

    Rows of a mirror node carry no signature: anyone can forge a chain of them. So the rows of the receipt count
    only if their running hashes lead to a row that the caller fetched.
    """
    try:
        rows = [*brought, *(parse_row(value, f"anchor[{index}]") for index, value in enumerate(attached))]
    except ProofRefused as refused:
        return _not_anchored(refused.code, refused.message)
    if not rows:
        return Opinion(Level(False, "the receipt carries no anchor, and no mirror answer was given"))
    judged = check_rows(rows)
    if bad := next((one for one in judged if one.status == "bad"), None):
        return _not_anchored("anchor_row_bad", f"row {bad.row.sequence} of topic {bad.row.topic}: {bad.message}")
    verified = {(one.row.topic, one.row.sequence): one.row for one in judged if one.status == "verified"}
    found = [row for row in verified.values() if _anchors(row, checkpoint)]
    if not found:
        return _not_anchored("anchor_not_found", "no row that could be checked anchors this checkpoint")
    trusted = {(row.topic, row.sequence) for row in brought}
    for row in found:
        place = (row.topic, row.sequence)
        while place not in trusted and (row.topic, place[1] + 1) in verified:
            place = (row.topic, place[1] + 1)
        if place in trusted:
            time = hedera_time(row.timestamp)
            return Opinion(Level(True, f"on topic {row.topic} as message {row.sequence} of {time}"))
    row = found[0]
    text = f"the rows say topic {row.topic}, message {row.sequence}, but no mirror answer was given that bears them out"
    return Opinion(Level(False, text))


def _anchors(row: MirrorRow, checkpoint: Checkpoint) -> bool:
    try:
        found = anchored_checkpoint(row.message)
    except ProofRefused:
        return False
    return (found.origin, found.size, found.root) == (checkpoint.origin, checkpoint.size, checkpoint.root)


def _not_anchored(code: str, text: str) -> Opinion:
    return Opinion(Level(False, text), (Finding(code, "/offline/anchor", text),))
