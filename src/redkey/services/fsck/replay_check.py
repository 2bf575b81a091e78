"""Replay of one topic from its first record: its rows and counters must equal the stored ones.

Rows are compared during the replay. A row that equals the stored one is marked; one that does not yet is remembered. So
memory depends on the work that was live at one time, not on the history, and each row that differs is reported.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from redkey.errors import RedKeyError, StoreError
from redkey.ledger.ports import Row
from redkey.ledger.record import Record
from redkey.readmodel.counted import COUNTED_AT, METERED
from redkey.readmodel.rows import BESIDE
from redkey.readmodel.structure import read
from redkey.services.fsck.evidence import Evidence
from redkey.services.fsck.report import Report
from redkey.services.replay import Replay
from redkey.wire.envelope import AnyWire


class ReplayCheck:
    """Folds the wires of a topic in order, as long as they can be folded."""

    def __init__(self, evidence: Evidence, topic: str, report: Report) -> None:
        self._evidence, self._topic, self._report = evidence, topic, report
        self._counters: dict[str, int] = {}
        # If the counters cannot be read, that is reported at the end.
        with suppress(StoreError):
            self._counters = self._stored_counters()
        self._replay = Replay(self._structure, self._counters.get(COUNTED_AT))
        # Rows that the replay has produced and that differ from the stored ones, so far; a bit for each equal one.
        self._differ: set[tuple[str, str]] = set()
        self._same = bytearray()
        # The record at which the replay had to end, if it had to.
        self.stopped = 0
        # The hashes of what must be pinned: distinct structures, of which there are few.
        self.structures: set[str] = set()

    def take(self, record: Record, wire: AnyWire | None) -> None:
        """Fold one record; a record without a valid wire ends the replay."""
        if self.stopped:
            return
        if wire is None or record.sequence != self._replay.head.sequence + 1:
            self.stopped = record.sequence
            return
        try:
            void = self._replay.fold(record, wire)
        except RedKeyError as refused:
            self._stop(refused.code, refused.message, record.sequence)
        except Exception as cause:
            # Reducers accept all valid wires; whatever happens in a damaged ledger must not end the check.
            self._stop("replay_failed", f"the record cannot be folded: {cause!r}", record.sequence)
        else:
            if void is not None:
                self._report.figures["void"] += 1
                self._report.note("void", f"{wire.type} is void: {void}", self._topic, record.sequence)

    def compare(self) -> None:
        """Compare the rows that were touched since the last comparison."""
        if self.stopped:
            return
        try:
            for row in self._replay.take_rows():
                self._compare(row)
        except StoreError as error:
            self._stop("database_damaged", f"the rows cannot be read: {error.message}", self._replay.head.sequence + 1)

    def _compare(self, row: Row) -> None:
        stored = self._evidence.placed(self._topic, row.kind, row.key)
        if stored is not None and stored[1] == row:
            self._mark(stored[0], True)
            self._differ.discard((row.kind, row.key))
        else:
            if stored is not None:
                self._mark(stored[0], False)
            self._differ.add((row.kind, row.key))

    def finish(self) -> None:
        """Report the rows and counters that differ, after all records were taken."""
        if self.stopped:
            text = f"rows and counters cannot be compared: replay ends before record {self.stopped}"
            self._report.note("replay_stopped", text, self._topic, self.stopped)
            return
        for kind, key in sorted(self._differ):
            there = self._evidence.placed(self._topic, kind, key) is not None
            code, told = ("row_wrong", "is not what replay gives") if there else ("row_missing", "is missing")
            self._report.add(code, f"the row {kind} {key!r} {told}", self._topic)
        for place, kind, key in self._evidence.places(self._topic):
            if kind in BESIDE:
                continue
            self._report.figures["rows"] += 1
            if not self._is_marked(place) and (kind, key) not in self._differ:
                self._report.add("row_extra", f"the row {kind} {key!r} is not given by replay", self._topic)
        self._compare_counters()

    def _stored_counters(self) -> dict[str, int]:
        """Return the meter's counters and their place; without a place, an older format counted everything."""
        kept = (*METERED, COUNTED_AT)
        stored = {name: amount for name, amount in self._evidence.counters(self._topic) if name.startswith(kept)}
        return stored or {COUNTED_AT: 0}

    def _compare_counters(self) -> None:
        stored = self._counters or self._stored_counters()
        place, head = stored.pop(COUNTED_AT, 0), self._replay.head.sequence
        if not 0 <= place <= head:
            self._report.add("counter_wrong", f"the counters are at record {place} of {head}", self._topic)
        counts = self._replay.take_counts()
        for name in sorted(stored.keys() | counts.keys()):
            found, right = stored.get(name, 0), counts[name]
            if found != right:
                self._report.add(
                    "counter_wrong", f"the counter {name} is {found}, the ledger gives {right}", self._topic
                )

    def _structure(self, sha256: str) -> dict[str, Any] | None:
        self.structures.add(sha256)
        found = self._evidence.content(self._topic, sha256)
        if found is not None and not found.pinned:
            text = f"the structure {sha256} is not pinned: it could be erased"
            self._report.add("structure_unpinned", text, self._topic, self._replay.head.sequence + 1)
        return read(found) if found is not None else None

    def _stop(self, code: str, message: str, sequence: int) -> None:
        self._report.add(code, message, self._topic, sequence)
        self.stopped = sequence

    def _mark(self, place: int, same: bool) -> None:
        index, bit = divmod(place, 8)
        if index >= len(self._same):
            self._same.extend(bytes(index + 1 - len(self._same)))
        self._same[index] = self._same[index] | 1 << bit if same else self._same[index] & ~(1 << bit)

    def _is_marked(self, place: int) -> bool:
        index, bit = divmod(place, 8)
        return index < len(self._same) and bool(self._same[index] >> bit & 1)
