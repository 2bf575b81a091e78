"""The inclusion proof of one record as C2SP tlog-proof: index, hashes, and the signed checkpoint, as text."""

from __future__ import annotations

import msgspec

from redkey.errors import ProofRefused
from redkey.ledger import merkle
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint, parse_size
from redkey.ledger.note import NOTE_LIMIT, Note, decode_base64, encode_base64

HEADER = "c2sp.org/tlog-proof@v1"
EXTRA_LIMIT = 64 * 1024


class LogProof(msgspec.Struct, frozen=True):
    """The place of a leaf in a log, the hashes that prove it, and the checkpoint that they lead to.

    `extra` is unverified data of the writer.
    """

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: Checkpoint
    note: Note
    extra: bytes = b""

    def encode(self) -> bytes:
        lines = [HEADER, *([f"extra {encode_base64(self.extra)}"] if self.extra else []), f"index {self.index}"]
        lines.extend(encode_base64(one) for one in self.hashes)
        return "\n".join((*lines, "", "")).encode() + self.note.encode()

    def proves(self, leaf: bytes) -> bool:
        """Return whether the leaf with this hash is in the tree of the checkpoint, at the index."""
        return merkle.verify_inclusion(leaf, self.index, self.checkpoint.size, self.hashes, self.checkpoint.root)


def parse_proof(data: bytes) -> LogProof:
    """Parse a proof; raise ProofRefused if it is not exactly one."""
    if len(data) > NOTE_LIMIT + EXTRA_LIMIT * 2:
        raise ProofRefused(f"a proof of {len(data):,} bytes is too large", code="proof_too_large")
    head, _, note_bytes = data.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError as cause:
        raise _malformed("its head is not ASCII") from cause
    if lines.pop(0) != HEADER:
        raise _malformed(f"it does not begin with {HEADER}")
    extra = b""
    if lines and lines[0].startswith("extra "):
        extra = decode_base64(lines.pop(0).removeprefix("extra "))
        if not 0 < len(extra) <= EXTRA_LIMIT:
            raise _malformed(f"its extra data is not 1 to {EXTRA_LIMIT:,} bytes")
    if not lines or not lines[0].startswith("index "):
        raise _malformed("it has no index line")
    index = parse_size(lines.pop(0).removeprefix("index "))
    checkpoint, note = open_checkpoint(note_bytes)
    return LogProof(index, parse_hashes(lines), checkpoint, note, extra)


def parse_hashes(lines: list[str]) -> tuple[bytes, ...]:
    """Parse the hashes of a proof, one per line."""
    if len(lines) > merkle.PROOF_LIMIT:
        raise _malformed(f"it has more than {merkle.PROOF_LIMIT} hashes")
    hashes = tuple(decode_base64(line) for line in lines)
    if not all(len(one) == merkle.HASH_BYTES for one in hashes):
        raise _malformed("a hash has not 32 bytes")
    return hashes


def _malformed(why: str) -> ProofRefused:
    return ProofRefused(f"not a tlog-proof: {why}", code="proof_malformed")
