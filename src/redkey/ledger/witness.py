"""What a witness decides: whether a checkpoint continues the last one it cosigned for that log.

The request and the answers are those of C2SP tlog-witness. A log whose history was rewritten has no
consistency proof, so the same witness never cosigns two histories. An epoch is a tree of its own: a restored log
continues in the next epoch, from size 0, and its earlier epochs are closed, so a restore is visible and cannot hide a
second history.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redkey.errors import ProofRefused, WitnessRefused
from redkey.ledger import merkle
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint, parse_size, split_epoch
from redkey.ledger.note import NOTE_LIMIT, Note, encode_base64
from redkey.ledger.proof import parse_hashes
from redkey.ledger.trust import TrustedKey, signed_level

REQUEST_LIMIT = NOTE_LIMIT + 8 * 1024


class Request(msgspec.Struct, frozen=True):
    """A checkpoint to cosign, and the proof that it continues the one of size `old`."""

    old: int
    hashes: tuple[bytes, ...]
    checkpoint: Checkpoint
    note: Note

    def encode(self) -> bytes:
        lines = (f"old {self.old}", *(encode_base64(one) for one in self.hashes))
        return "".join(f"{line}\n" for line in lines).encode() + b"\n" + self.note.encode()


def parse_request(data: bytes) -> Request:
    """Parse the body of an add-checkpoint request; raise ProofRefused if it is not exactly one."""
    if len(data) > REQUEST_LIMIT:
        raise ProofRefused(
            f"a request of {len(data):,} bytes; the limit is {REQUEST_LIMIT:,}", code="request_too_large"
        )
    head, _, note_bytes = data.partition(b"\n\n")
    try:
        first, *lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError as cause:
        raise ProofRefused("the head of the request is not ASCII", code="request_malformed") from cause
    if not first.startswith("old "):
        raise ProofRefused("the request does not begin with `old SIZE`", code="request_malformed")
    old = parse_size(first.removeprefix("old "))
    checkpoint, note = open_checkpoint(note_bytes)
    return Request(old, parse_hashes(lines), checkpoint, note)


def recognise(request: Request, keys: Sequence[TrustedKey]) -> None:
    """Accept what a known log signed, or raise WitnessRefused; nothing of unknown logs is stored."""
    checkpoint = request.checkpoint
    signed = signed_level(checkpoint, request.note, keys)
    if not signed.level.holds:
        unknown = not signed.findings or signed.findings[0].code == "key_other_log"
        code = "origin_unknown" if unknown else signed.findings[0].code
        raise WitnessRefused(signed.level.why, code=code, status=404 if unknown else 403)
    if request.old > checkpoint.size:
        text = f"the old size {request.old} is above the size of the checkpoint, {checkpoint.size}"
        raise WitnessRefused(text, code="request_malformed", status=400)


def judge(request: Request, last: Checkpoint | None, newest_epoch: int) -> None:
    """Accept a checkpoint that continues the last one, or raise WitnessRefused.

    `last` is the last checkpoint that was cosigned for this origin, `newest_epoch` the highest epoch of the same log
    with a cosigned checkpoint.
    """
    checkpoint = request.checkpoint
    epoch = split_epoch(checkpoint.origin)[1]
    if epoch < newest_epoch:
        text = f"epoch {epoch} was closed when epoch {newest_epoch} began"
        raise WitnessRefused(text, code="epoch_closed", status=403)
    size = last.size if last else 0
    if request.old != size:
        text = f"the last size cosigned is {size}; prove consistency from there, not from {request.old}"
        raise WitnessRefused(text, code="size_moved", status=409, size=size)
    if last and checkpoint.size == size and checkpoint.root != last.root:
        text = f"two roots for size {size}: this log has two histories"
        raise WitnessRefused(text, code="split_view", status=409, size=size)
    before = last.root if last else merkle.EMPTY_ROOT
    if not merkle.verify_consistency(size, checkpoint.size, before, checkpoint.root, request.hashes):
        text = f"size {checkpoint.size} is not proven to continue size {size}: this log may have two histories"
        raise WitnessRefused(text, code="split_view", status=422)
