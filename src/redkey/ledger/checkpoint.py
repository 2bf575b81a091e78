"""Checkpoints as C2SP tlog-checkpoint: which log, how many records, which root; signed as a note.

An origin names one append-only tree: `redkey/<log id>/<workspace>/e<epoch>`. A restore from a backup begins the next
epoch, which is another tree: a smaller size in a new epoch is a restore, in the same epoch it is a fork.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from redkey.errors import ProofRefused
from redkey.ledger.merkle import HASH_BYTES, SIZE_LIMIT
from redkey.ledger.note import ED25519, Note, VerifierKey, decode_base64, encode_base64, is_key_name, parse_note
from redkey.ledger.signer import Signer, sign_note

EXTENSIONS_LIMIT = 16
# An extension line of our own: the size of the checkpoint that the log signed before this one.
PREVIOUS = "redkey-previous "
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_EPOCH = re.compile(r"(?P<log>redkey/[^/]+/[^/]+)/e(?P<epoch>[1-9][0-9]{0,5})")


class Checkpoint(msgspec.Struct, frozen=True):
    """The state of a log: its origin, its number of records, and the root over them."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def text(self) -> bytes:
        lines = (self.origin, str(self.size), encode_base64(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines).encode()


def origin_of(log_id: str, workspace: str, epoch: int) -> str:
    """Return the origin of one workspace of a log, in one epoch."""
    return f"{log_name(log_id)}/{workspace}/e{epoch}"


def log_name(log_id: str) -> str:
    """Return the name of a log's signing key."""
    return f"redkey/{log_id}"


def split_epoch(origin: str) -> tuple[str, int]:
    """Split an origin into its name and its epoch; the epoch is 0 for logs of other software, which have none."""
    found = _EPOCH.fullmatch(origin)
    return (found["log"], int(found["epoch"])) if found else (origin, 0)


def parse_checkpoint(text: bytes) -> Checkpoint:
    """Parse a checkpoint from the text of a note; raise ProofRefused if it is not exactly one."""
    lines = text.decode().split("\n")
    if len(lines) < 4 or not all(lines[:-1]) or lines[-1]:
        raise ProofRefused("a checkpoint is at least three lines, none empty", code="checkpoint_malformed")
    origin, size, root, *extensions = lines[:-1]
    if len(extensions) > EXTENSIONS_LIMIT:
        raise ProofRefused(f"a checkpoint has at most {EXTENSIONS_LIMIT} extensions", code="checkpoint_malformed")
    decoded = decode_base64(root)
    if len(decoded) != HASH_BYTES:
        raise ProofRefused("the root of a checkpoint has 32 bytes", code="checkpoint_malformed")
    return Checkpoint(origin, parse_size(size), decoded, tuple(extensions))


def parse_size(text: str) -> int:
    """Parse a tree size or index: decimal, no leading zero, no sign, below 2^63."""
    if not _DECIMAL.fullmatch(text) or int(text) > SIZE_LIMIT:
        raise ProofRefused(f"{text[:20]!r} is not a tree size", code="checkpoint_malformed")
    return int(text)


def open_checkpoint(data: bytes) -> tuple[Checkpoint, Note]:
    """Parse a signed checkpoint; its signatures are not verified here."""
    note = parse_note(data)
    return parse_checkpoint(note.text), note


def sign_checkpoint(checkpoint: Checkpoint, signers: Iterable[Signer]) -> Note:
    """Sign the checkpoint as a note, under its origin, by each of the log's signers."""
    return sign_note(checkpoint.text(), *(signer.named(checkpoint.origin) for signer in signers))


def key_for(key: VerifierKey, origin: str) -> VerifierKey | None:
    """Return the key as it signs checkpoints of `origin`: a log's key signs for every origin under its name."""
    if key.algorithm != ED25519 or not is_key_name(origin):
        return None
    if origin == key.name or origin.startswith(key.name + "/"):
        return key.named(origin)
    return None
