"""Cosignatures as C2SP tlog-cosignature, version 1: a witness states that at this time this checkpoint
was the largest consistent one of its log that it saw. The time is signed with the checkpoint; it comes before the
signature, eight bytes, big-endian.
"""

from __future__ import annotations

from collections.abc import Iterable

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.note import (
    COSIGNATURE,
    SIGNATURE_BYTES,
    Note,
    Signature,
    VerifierKey,
    is_signed_by,
    parse_signature,
)
from redkey.ledger.signer import Signer

TIME_BYTES = 8
COSIGNATURE_BYTES = TIME_BYTES + SIGNATURE_BYTES


def cosign(witness: Signer, text: bytes, seconds: int) -> Signature:
    """Cosign the text of a checkpoint, at a time in seconds since the epoch: return the signature line."""
    key = witness.verifier
    if key.algorithm != COSIGNATURE:
        raise KeyRefused(f"the key of {key.name} is a log's: it does not cosign", code="key_type_wrong")
    return Signature(key.name, key.key_id, seconds.to_bytes(TIME_BYTES) + witness.sign_bytes(_message(text, seconds)))


def cosigned_at(key: VerifierKey, signature: Signature, text: bytes) -> int | None:
    """Return when the witness cosigned this text, in seconds since the epoch; None if it did not."""
    if key.algorithm != COSIGNATURE or len(signature.data) != COSIGNATURE_BYTES:
        return None
    seconds = int.from_bytes(signature.data[:TIME_BYTES])
    if seconds >= 2**63 or not is_signed_by(key, signature.data[TIME_BYTES:], _message(text, seconds)):
        return None
    return seconds


def cosignatures(note: Note, answer: bytes, witnesses: Iterable[VerifierKey]) -> tuple[Signature, ...]:
    """Return the signature lines of a witness's answer that are cosignatures of this checkpoint by these witnesses."""
    try:
        lines = [parse_signature(line) for line in answer.decode().splitlines()]
    except UnicodeDecodeError as cause:
        raise ProofRefused("the answer of the witness is not UTF-8", code="note_malformed") from cause
    known = {(key.name, key.key_id): key for key in witnesses}
    good = {
        (line.name, line.key_id): line
        for line in lines
        if (key := known.get((line.name, line.key_id))) and cosigned_at(key, line, note.text) is not None
    }
    return tuple(good.values())


def with_cosignatures(note: Note, answer: bytes, witnesses: Iterable[VerifierKey]) -> Note:
    """Add the cosignatures of a witness's answer to the checkpoint.

    They replace older lines of the same witness.
    """
    new = {(line.name, line.key_id): line for line in cosignatures(note, answer, witnesses)}
    kept = (one for one in note.signatures if (one.name, one.key_id) not in new)
    return Note(note.text, (*kept, *new.values()))


def is_cosignature(signature: Signature) -> bool:
    """Return whether the line has the length of a cosignature; the signature is not verified."""
    return len(signature.data) == COSIGNATURE_BYTES


def _message(text: bytes, seconds: int) -> bytes:
    return b"cosignature/v1\ntime %d\n" % seconds + text
