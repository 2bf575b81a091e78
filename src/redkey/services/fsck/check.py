"""`fsck`: checks everything in a data directory against everything else, and trusts nothing in it.

One pass over the records of each topic checks chain, tree, wires, streams and replay together. Its results are then
compared with tiles, checkpoints, content, rows, counters, the index, and documents that others hold. All findings are
reported at once. Reading is the evidence's; each check is a module beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from redkey.errors import JsonRefused, LedgerError, ProofRefused, StoreError
from redkey.ledger.checkpoint import log_name, split_epoch
from redkey.ledger.trust import TrustedKey
from redkey.services.fsck.chain_check import ChainCheck
from redkey.services.fsck.checkpoint_check import CheckpointCheck
from redkey.services.fsck.claims import Claim, read_claim
from redkey.services.fsck.content_check import check_bodies
from redkey.services.fsck.evidence import Evidence, Stored
from redkey.services.fsck.replay_check import ReplayCheck
from redkey.services.fsck.report import Report
from redkey.services.fsck.setting_check import SettingCheck
from redkey.services.fsck.wire_check import WireCheck
from redkey.services.signing import WITNESSED

# Called with the number of records checked, and the number of all records.
Progress = Callable[[int, int], None]


class Fsck:
    """One check of a data directory as it is at one moment."""

    def __init__(
        self, evidence: Evidence, *, keys: Sequence[TrustedKey] = (), progress: Progress | None = None
    ) -> None:
        self._evidence, self._keys = evidence, keys
        self._progress = progress or (lambda done, total: None)
        # By the log and workspace that they are of; documents without a proof do not name them.
        self._claims: dict[str, list[Claim]] = {}
        self._settings: dict[str, str] = {}
        self._facts = SettingCheck(evidence, Report(), {}, ())
        self._entries = self._done = self._total = 0
        self.report = Report()

    def hold_against(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Add receipts, proofs and checkpoints (name, bytes) that the ledger must contain."""
        for name, data in documents:
            try:
                claim = read_claim(name, data)
            except (ProofRefused, JsonRefused) as refused:
                self.report.note("receipt_unreadable", f"{name}: {refused.message} [{refused.code}]")
                continue
            origin = split_epoch(claim.checkpoint.origin)[0] if claim.checkpoint is not None else ""
            self._claims.setdefault(origin, []).append(claim)

    def run(self, only: Sequence[str] = ()) -> Report:
        """Check the store and all its topics, or only some."""
        for code, message in self._evidence.complaints():
            self.report.add(code, message)
        try:
            self._settings = dict(self._evidence.settings())
            topics = list(self._evidence.topics())
            chosen = [topic for topic in topics if topic in only] if only else topics
            self._total = sum(self._evidence.last_sequence(topic) for topic in chosen)
        except StoreError as error:
            self.report.add("database_damaged", error.message)
            return self.report
        self._facts = SettingCheck(self._evidence, self.report, self._settings, topics)
        self._facts.run()
        for topic in chosen:
            self._guarded(topic, self._check_topic)
        if not only:
            self._facts.finish()
            self._check_whole(topics)
        return self.report

    def _guarded(self, topic: str, check: Callable[[str], None]) -> None:
        try:
            check(topic)
        except LedgerError as error:
            self.report.add("database_damaged", f"the check of this topic had to end: {error.message}", topic)

    # One topic.

    def _check_topic(self, topic: str) -> None:
        log = self._facts.log
        name = log_name(log.log_id) if log is not None else "redkey/unknown"
        chain = ChainCheck(self._evidence, topic, self.report)
        wires = WireCheck(self._evidence, topic, self.report, name, self._facts.absent_until(topic))
        replay = ReplayCheck(self._evidence, topic, self.report)
        self.report.figures["topics"] += 1
        for batch in self._evidence.stored(topic):
            sound = [one for one in batch if isinstance(one, Stored)]
            for one in batch:
                if isinstance(one, Stored):
                    replay.take(one.record, wires.take(one))
                else:
                    chain.skip(one.sequence)
                    wires.skip()
                    replay.stopped = replay.stopped or one.sequence
                    self.report.add("record_unreadable", f"the record cannot be read: {one.why}", topic, one.sequence)
            chain.take([one.record for one in sound])
            replay.compare()
            self._advance(len(batch))
        chain.finish()
        wires.finish()
        self._entries += wires.entries
        self._guarded(topic, lambda _: replay.finish())
        structures = None if replay.stopped else replay.structures
        self._guarded(topic, lambda _: check_bodies(self._evidence, topic, self.report, structures))
        self._guarded(topic, self._check_index)
        checkpoints = CheckpointCheck(self._evidence, topic, self.report, log, wires, chain.tree())
        newest = checkpoints.run(self._keys, self._settings.get(WITNESSED + topic))
        signed = log is not None and newest is not None and split_epoch(newest.origin)[1] == log.epoch
        self._facts.check_topic(topic, wires, signed=signed)
        for claim in self._take_claims(topic, wires.workspace_id):
            checkpoints.check_claim(claim)
        self._check_epoch(topic, wires)

    def _take_claims(self, topic: str, workspace_id: str) -> list[Claim]:
        """Take the claims about this topic; claims about no topic stay."""
        log = self._facts.log
        name = log_name(log.log_id) if log is not None else ""
        unproven = self._claims.get("", [])
        mine = [claim for claim in unproven if self._evidence.find(topic, claim.wire_id) is not None]
        self._claims[""] = [claim for claim in unproven if claim not in mine]
        return [*self._claims.pop(f"{name}/{workspace_id}", ()), *mine]

    def _check_index(self, topic: str) -> None:
        for one in self._evidence.missing_entries(topic):
            self.report.add("index_missing", f"the index does not find it under {one.subject!r}", topic, one.sequence)

    def _check_epoch(self, topic: str, wires: WireCheck) -> None:
        """Check that each restore left a record on each topic: the epochs rise, and the last one is the store's."""
        epochs = [payload.epoch for _, payload in wires.restored]
        log = self._facts.log
        epoch = log.epoch if log is not None else 1
        if epochs != sorted(set(epochs)) or epochs[-1:] not in ([], [epoch]):
            text = f"the ledger was restored into epochs {epochs[-5:]}, the store is in epoch {epoch}"
            self.report.add("setting_wrong", text, topic)

    def _advance(self, count: int) -> None:
        self._done += count
        self.report.figures["records"] += count
        self._progress(self._done, max(self._total, self._done))

    # The store as a whole.

    def _check_whole(self, topics: Sequence[str]) -> None:
        for topic in self._evidence.outside_topics():
            if topic not in topics:
                self.report.add(
                    "topic_missing", f"the topic {topic} has a checkpoint outside the database, and is missing"
                )
        for claims in self._claims.values():
            for claim in claims:
                self._check_orphan(claim)
        try:
            for name in self._evidence.unnamed_files():
                self.report.note("file_unnamed", f"no content has the file {name}")
            for wire_id in self._evidence.repeated_wires():
                self.report.add("wire_repeated", f"the wire {wire_id} is on the ledger more than once")
            if self._entries != self._evidence.index_size():
                for topic in topics:
                    self._guarded(topic, self._check_extra)
        except StoreError as error:
            self.report.add("database_damaged", error.message)

    def _check_extra(self, topic: str) -> None:
        for one in self._evidence.extra_entries(topic):
            text = f"the index finds it under {one.subject!r}, which it does not name"
            self.report.add("index_extra", text, topic, one.sequence)

    def _check_orphan(self, claim: Claim) -> None:
        """Report a claim about another log, or about a missing topic."""
        origin = claim.checkpoint.origin if claim.checkpoint is not None else ""
        log = self._facts.log
        if log is not None and origin and not origin.startswith(log_name(log.log_id) + "/"):
            self.report.note("receipt_other_log", f"{claim.source} is of another log, {origin}")
        else:
            text = f"{claim.source} is of {origin or claim.wire_id}, of which nothing is there"
            self.report.add("receipt_beyond_head", text, claim.topic, claim.sequence)
