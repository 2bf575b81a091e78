"""The checkpoints of one topic: signed by the keys that the ledger names, under its origin, over the tree of its
records.

All trees that were published are compared with the tree of the records: those kept in the store and outside it, those
recorded on the ledger, and those of receipts.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from redkey.errors import ProofRefused, TreeDamaged
from redkey.ledger.checkpoint import PREVIOUS, Checkpoint, open_checkpoint, origin_of, split_epoch
from redkey.ledger.note import Note, Signature, decode_base64, parse_key, verifies
from redkey.ledger.tail import checkpoint_size
from redkey.ledger.tiles import TileTree
from redkey.ledger.trust import TrustedKey, signed_level
from redkey.services.fsck.claims import Claim
from redkey.services.fsck.evidence import Evidence
from redkey.services.fsck.report import Report
from redkey.services.fsck.wire_check import WireCheck
from redkey.services.log_facts import Log
from redkey.wire.events import CheckpointAnchored, LedgerRestored


class CheckpointCheck:
    """Compares signed trees with the records; created after all records of a topic were taken."""

    def __init__(
        self, evidence: Evidence, topic: str, report: Report, log: Log | None, wires: WireCheck, tree: TileTree | None
    ) -> None:
        self._evidence, self._topic, self._report = evidence, topic, report
        self._log, self._wires, self._tree = log, wires, tree
        self._head = evidence.head(topic).sequence
        self._keys = [(parse_key(term.key), term) for term in wires.terms.values()]
        self._agreed = self._contradicted = 0
        # The size of the last checkpoint but one.
        self._second = 0

    def run(self, pinned: Sequence[TrustedKey], witnessed: str | None) -> Checkpoint | None:
        """Check every checkpoint of the topic, and the trees recorded on the ledger; return the newest of them."""
        newest: tuple[Checkpoint, Note] | None = None
        shown = checkpoint_size(witnessed.encode()) if witnessed else None
        kept, before = b"", 0
        for size, data in self._evidence.checkpoints_up(self._topic):
            self._report.figures["checkpoints"] += 1
            kept = data if size == shown else kept
            found = self._check(data, f"the checkpoint of size {size}", size)
            if found is not None:
                self._check_previous(found[0], before)
            newest, self._second, before = found or newest, before, size
        if self._contradicted > 1:
            text = f"{self._contradicted - 1} later checkpoints are not of these records either"
            self._report.note("checkpoint_contradicted", text, self._topic)
        self._check_outside(newest)
        if witnessed:
            self._check(witnessed.encode(), "the checkpoint that was witnessed last", None)
            if witnessed.encode() != kept:
                # Checking a cosignature needs the witness's key. That a stored one was changed is visible without it.
                text = "the checkpoint that was witnessed last differs from the stored one of its size"
                self._report.add("witnessed_changed", text, self._topic, shown or 0)
        self._check_told()
        if pinned and newest is not None:
            signed = signed_level(*newest, pinned)
            if not signed.level.holds:
                text = f"the newest checkpoint is not signed by a key that was given: {signed.level.why}"
                self._report.add("key_did_not_sign", text, self._topic, newest[0].size)
        return newest[0] if newest is not None else None

    def _check_previous(self, checkpoint: Checkpoint, before: int) -> None:
        """Check that the checkpoint before this one exists: each names it, except those of early versions."""
        for line in checkpoint.extensions:
            if line.startswith(PREVIOUS) and line != f"{PREVIOUS}{before}":
                text = f"the checkpoint of size {checkpoint.size} comes after one of size {line[len(PREVIOUS) :][:20]}"
                size = line.removeprefix(PREVIOUS)
                place = int(size) if size.isascii() and size.isdecimal() and len(size) < 20 else checkpoint.size
                self._report.add("checkpoint_missing", f"{text}, which is missing", self._topic, place)

    def _check(self, data: bytes, what: str, size: int | None) -> tuple[Checkpoint, Note] | None:
        try:
            checkpoint, note = open_checkpoint(data)
        except ProofRefused as refused:
            self._report.add(
                "checkpoint_unreadable", f"{what} cannot be read: {refused.message}", self._topic, size or 0
            )
            return None
        if size is not None and checkpoint.size != size:
            text = f"{what} has size {checkpoint.size} in its text"
            self._report.add("checkpoint_unreadable", text, self._topic, size)
        self._check_origin(checkpoint, what)
        self._check_signatures(checkpoint, note, what)
        self._check_root(checkpoint, what)
        return checkpoint, note

    def _check_origin(self, checkpoint: Checkpoint, what: str) -> None:
        if self._log is None:
            self._report.add("setting_wrong", f"there is {what}, but the store has no log id", self._topic)
            return
        right = origin_of(self._log.log_id, self._wires.workspace_id, self._epoch_at(self._log, checkpoint.size))
        if checkpoint.origin != right:
            text = f"{what} is of {checkpoint.origin}, not of {right}"
            self._report.add("checkpoint_origin", text, self._topic, checkpoint.size)

    def _epoch_at(self, log: Log, size: int) -> int:
        """Return the epoch of the log when it had this size: the next restore records which one it left."""
        for sequence, payload in self._wires.restored:
            if sequence > size:
                return split_epoch(payload.origin or "")[1]
        return log.epoch

    # Signatures.

    def _check_signatures(self, checkpoint: Checkpoint, note: Note, what: str) -> None:
        signatures = [one for one in note.signatures if one.name == checkpoint.origin]
        wrong = [found for one in signatures if (found := self._wrong_signature(checkpoint, note, one)) is not None]
        for code, text in wrong:
            self._report.add(code, f"{what} {text}", self._topic, checkpoint.size)
        if not signatures:
            self._report.add("checkpoint_unsigned", f"{what} is not signed by its log", self._topic, checkpoint.size)
            return
        for key, term in self._keys:
            signs = term.added <= checkpoint.size and (term.retired is None or checkpoint.size < term.retired)
            named = key.named(checkpoint.origin)
            if signs and named.key_id not in {one.key_id for one in signatures}:
                text = f"{what} is not signed by {named.name}+{named.key_id.hex()}, which signed at that time"
                self._report.add("checkpoint_unsigned", text, self._topic, checkpoint.size)

    def _wrong_signature(self, checkpoint: Checkpoint, note: Note, line: Signature) -> tuple[str, str] | None:
        for key, term in self._keys:
            named = key.named(checkpoint.origin)
            if named.key_id != line.key_id:
                continue
            if not verifies(named, line, note.text):
                return "signature_invalid", f"has a wrong signature of {line.signer}"
            if checkpoint.size < term.added:
                return "signer_unknown", f"is signed by {line.signer}, which the ledger names only at {term.added}"
            if term.retired is not None and checkpoint.size >= term.retired:
                return "signer_retired", f"is signed by {line.signer}, which was retired at {term.retired}"
            return None
        return "signer_unknown", f"is signed by {line.signer}, which the ledger does not name"

    # Roots.

    def _check_root(self, checkpoint: Checkpoint, what: str) -> None:
        if checkpoint.size > self._head:
            text = f"{what} is larger than the ledger, which ends at {self._head}: its tail was cut"
            self._report.add("checkpoint_ahead", text, self._topic, checkpoint.size)
            return
        agrees = self._agrees(checkpoint.size, checkpoint.root)
        if agrees:
            self._agreed = max(self._agreed, checkpoint.size)
        elif agrees is False:
            self._contradicted += 1
            if self._contradicted == 1:
                where = f"{self._agreed + 1} to {checkpoint.size}"
                text = f"{what} does not match these records: the change is in {where}"
                self._report.add("checkpoint_contradicted", text, self._topic, checkpoint.size)
            else:
                self._report.errors["checkpoint_contradicted"] += 1

    def _agrees(self, size: int, root: bytes) -> bool | None:
        """Compare a root with that of the first `size` records; None if that root is not known."""
        if self._tree is None or size > self._tree.size:
            return None
        try:
            return self._tree.root(size) == root
        except TreeDamaged:
            return None

    def _check_outside(self, newest: tuple[Checkpoint, Note] | None) -> None:
        data = self._evidence.outside(self._topic)
        if data is not None:
            found = self._check(data, "the checkpoint kept outside the database", None)
            if found is not None:
                self._compare_outside(found, newest)
        elif newest is not None and self._evidence.has_outside and not self._evidence.outside_coming(self._topic):
            text = f"checkpoints/{self._topic} is missing: a cut tail would not be noticed at the next start"
            self._report.add("checkpoint_outside_missing", text, self._topic)

    def _compare_outside(self, found: tuple[Checkpoint, Note], newest: tuple[Checkpoint, Note] | None) -> None:
        """Check that the database has the checkpoint in force outside it: otherwise a unit was lost."""
        (outside, signed), inside = found, newest[0].size if newest is not None else 0
        if inside < outside.size <= self._head:
            text = f"the database has no checkpoint of size {outside.size}, and one is kept outside"
            self._report.add("checkpoint_missing", text, self._topic, outside.size)
        elif outside.size < inside:
            self._check_set_back(inside)
        elif newest is not None and outside.size == inside and not {*signed.signatures} <= {*newest[1].signatures}:
            text = f"checkpoints/{self._topic} has signatures that the checkpoint in the database has not"
            self._report.add("witnessed_changed", text, self._topic, inside)

    def _check_set_back(self, inside: int) -> None:
        """Check the checkpoint outside. It may be one behind: a process died, or a server continued, while it was
        written.
        """
        size = checkpoint_size(self._evidence.outside_now(self._topic) or b"") or 0
        if size < inside and size < self._second:
            text = f"checkpoints/{self._topic} is of size {size}, the database has one of {inside}: it was set back"
            self._report.add("checkpoint_set_back", text, self._topic, size)

    def _check_told(self) -> None:
        """Check the trees recorded on the ledger: those that a restore continued from, and those anchored elsewhere."""
        told: list[tuple[int, LedgerRestored | CheckpointAnchored]] = [*self._wires.restored, *self._wires.anchored]
        for sequence, payload in told:
            size, root = payload.tree_size, decode_base64(payload.root)
            if size >= sequence or self._agrees(size, root) is False:
                text = f"it tells of a tree of {size} records that is not this ledger's"
                self._report.add("tree_contradicted", text, self._topic, sequence)

    # Documents that others hold.

    def check_claim(self, claim: Claim) -> None:
        """Check that the ledger contains the records and trees of a receipt or checkpoint."""
        self._report.figures["receipts"] += 1
        end = self._head
        if claim.checkpoint is not None:
            epoch = split_epoch(claim.checkpoint.origin)[1]
            later = [sequence for sequence, payload in self._wires.restored if payload.epoch > epoch]
            end = min(later, default=self._head + 1) - 1
            self._check_claimed_tree(claim, claim.checkpoint, end, restored=bool(later))
        if 0 < claim.sequence <= end:
            self._check_claimed_record(claim)
        elif claim.sequence > end and claim.checkpoint is None:
            text = f"{claim.source} is of record {claim.sequence}, the ledger ends at {end}: its tail was cut"
            self._report.add("receipt_beyond_head", text, self._topic, claim.sequence)

    def _check_claimed_tree(self, claim: Claim, checkpoint: Checkpoint, end: int, *, restored: bool) -> None:
        if checkpoint.size > end:
            what = f"{claim.source} tells of {checkpoint.size} records of {checkpoint.origin}"
            if restored:
                self._report.note(
                    "receipt_before_restore", f"{what}; the log was restored to {end} of them", self._topic
                )
            else:
                text = f"{what}, the ledger ends at {end}: its tail was cut"
                self._report.add("receipt_beyond_head", text, self._topic, checkpoint.size)
        elif self._agrees(checkpoint.size, checkpoint.root) is False:
            text = f"{claim.source} shows another tree of {checkpoint.size} records: the ledger was changed"
            self._report.add("receipt_contradicts", text, self._topic, checkpoint.size)

    def _check_claimed_record(self, claim: Claim) -> None:
        found = self._evidence.read(self._topic, claim.sequence - 1, 1)
        record = found[0] if found and found[0].sequence == claim.sequence else None
        same = record is not None and (
            (record.running_hash, sha256(record.wire).digest()) == (claim.running_hash, claim.wire_sha256)
            if claim.running_hash
            else f'"wire_id":"{claim.wire_id}"'.encode() in record.wire
        )
        if not same:
            text = f"{claim.source} shows another record at this place"
            self._report.add("receipt_contradicts", text, self._topic, claim.sequence)
