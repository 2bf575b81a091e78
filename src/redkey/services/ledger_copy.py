"""Copy a whole ledger from one store to another, such as from SQLite to PostgreSQL.

The copy is the same log: the same records at the same places and times, the same checkpoints, rows, content and
settings, so that earlier receipts stay valid. It is copied in units, and an interrupted copy continues where it
stopped: records and content that it has are not copied again. Until it is complete and compared (`copy_check`), the
setting `COPYING` keeps every server from opening it. Signing keys are copied by `redkey.stores.key_copy`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from redkey.errors import CopyRefused
from redkey.ledger.ports import Content, Entry, Reader, Row, SequencedStore
from redkey.ledger.record import Record
from redkey.ledger.tail import records_after
from redkey.readmodel.counted import COUNTED_AT
from redkey.readmodel.rows import BESIDE, KINDS, pages_of
from redkey.services.fsck.evidence import Evidence
from redkey.services.log_facts import COPYING, LOG_ID, NOT_COPIED, read_log
from redkey.wire.envelope import wire_of
from redkey.wire.subjects import subjects

# The limits of one unit: rows, checkpoints and settings; and bytes of small bodies.
_BATCH = 1000
_BODIES_BYTES = 4 * 1024 * 1024
# A larger body is copied in pieces.
_BODY_BYTES = 1024 * 1024
ROW_KINDS = (*KINDS, *sorted(BESIDE))

# Called with the number of records copied, and the number of all records.
Progress = Callable[[int, int], None]
T = TypeVar("T")


# What a copy has: topics, records, rows, contents, checkpoints; "records before" are those of an earlier run.
Copied = Counter[str]


class LedgerCopy:
    """One run of a copy: `run` copies, then the caller compares and calls `finish`."""

    def __init__(self, source: Evidence, target: SequencedStore, progress: Progress | None = None) -> None:
        self._source, self._target = source, target
        self._progress = progress or (lambda done, total: None)
        self._total = sum(source.head(topic).sequence for topic in source.topics())
        self.copied: Copied = Counter()

    def run(self) -> Copied:
        """Copy everything that the target does not have yet; CopyRefused if it is not a copy of this source."""
        self._begin()
        there = set(self._target.topics())
        for topic in self._source.topics():
            if topic not in there:
                self._target.create_topic(topic)
            self._copy_records(topic)
            self._copy_content(topic)
            self._copy_rows(topic)
            self._copy_figures(topic)
            self.copied["topics"] += 1
        return self.copied

    def finish(self) -> None:
        """Finish a copy that was compared: servers may open it now."""
        with self._target.write_store() as unit:
            unit.put_setting(COPYING, "")

    def _begin(self) -> None:
        """Mark the target as a copy of this log, before anything else is in it."""
        log = read_log(self._source)
        if log is None:
            raise CopyRefused("there is no log to copy: nothing was signed in it yet", code="copy_source_empty")
        if self._source.setting(COPYING):
            text = "the source is itself a copy that was not finished; finish that one first"
            raise CopyRefused(text, code="copy_unfinished")
        mark, found = f"{log.log_id}/{log.epoch}", self._target.setting(COPYING)
        if not found and (self._target.topics() or self._target.setting(LOG_ID)):
            text = "the target has a ledger already, and nothing is overwritten; name an empty one"
            raise CopyRefused(text, code="store_not_empty")
        if found and found != mark:
            text = f"the target has an unfinished copy of another log ({found}); name an empty one"
            raise CopyRefused(text, code="copy_other_log")
        settings = {name: value for name, value in self._source.settings().items() if name not in NOT_COPIED}
        settings[COPYING] = mark
        # The mark is written with the first settings.
        for names in _batches(sorted(settings, key=lambda name: (name != COPYING, name))):
            with self._target.write_store() as unit:
                for name in names:
                    unit.put_setting(name, settings[name])

    def _copy_records(self, topic: str) -> None:
        head = self._target.head(topic)
        if head.sequence:
            last = self._source.read(topic, head.sequence - 1, 1)
            if not last or last[0].running_hash != head.running_hash:
                text = f"record {head.sequence} of topic {topic} differs in the unfinished copy; name an empty target"
                raise CopyRefused(text, code="copy_differs")
        self.copied["records before"] += head.sequence
        self._report()
        for batch in records_after(self._source, topic, head.sequence):
            with self._target.write(topic) as unit:
                for payer, group in groupby(batch, attrgetter("payer")):
                    records = list(group)
                    times = [record.timestamp for record in records]
                    added = unit.append(topic, list(map(_entry, records)), records[0].sequence - 1, payer, times)
                    for record, new in zip(records, added, strict=True):
                        if new.running_hash != record.running_hash:
                            text = f"record {record.sequence} of topic {topic} is damaged: redkey fsck names the damage"
                            raise CopyRefused(text, code="source_damaged")
                # When something is due is not known here: the first server checks at once.
                unit.put_due(topic, 1)
            self.copied["records"] += len(batch)
            self._report()

    def _copy_content(self, topic: str) -> None:
        """Copy the bodies that were not erased; records say which were."""
        small: list[Content] = []
        size = 0
        for body in self._source.bodies(topic):
            self.copied["contents"] += not body.erased
            there = self._target.content_facts(topic, body.sha256)
            if body.erased or (there is not None and (there.pinned or not body.pinned)):
                continue
            if body.size > _BODY_BYTES and not body.pinned:
                self._copy_large(topic, body.sha256)
                continue
            found = self._source.content(topic, body.sha256)
            if found is not None:
                small.append(found)
                size += len(found.data)
            if size >= _BODIES_BYTES or len(small) >= _BATCH:
                self._put_content(topic, small)
                small, size = [], 0
        self._put_content(topic, small)

    def _put_content(self, topic: str, items: list[Content]) -> None:
        if items:
            with self._target.write(topic) as unit:
                unit.put_content(topic, items)

    def _copy_large(self, topic: str, sha256: str) -> None:
        upload = self._target.upload()
        try:
            for chunk in self._source.content_chunks(topic, sha256):
                upload.write(chunk)
            upload.finish()
            with self._target.write(topic) as unit:
                unit.adopt(topic, upload)
        finally:
            upload.discard()

    def _copy_rows(self, topic: str) -> None:
        """Write all rows again, because an earlier run may have copied older ones; delete those that are gone."""
        for kind in ROW_KINDS:
            for rows in _batches(all_rows(self._source, topic, kind)):
                with self._target.write(topic) as unit:
                    unit.put_rows(topic, rows)
                self.copied["rows"] += len(rows)
            gone = (row.key for row in all_rows(self._target, topic, kind) if self._gone(topic, row))
            for keys in _batches(gone):
                with self._target.write(topic) as unit:
                    unit.delete_rows(topic, kind, keys)

    def _gone(self, topic: str, row: Row) -> bool:
        return self._source.row(topic, row.kind, row.key) is None

    def _copy_figures(self, topic: str) -> None:
        """Copy counters and checkpoints."""
        there = dict(self._target.counters(topic))
        amounts = [(name, amount - there.get(name, 0)) for name, amount in all_counters(self._source, topic).items()]
        with self._target.write(topic) as unit:
            unit.count(topic, [(name, amount) for name, amount in amounts if amount])
        for notes in _batches(self._source.checkpoints_up(topic)):
            with self._target.write(topic) as unit:
                for size, note in notes:
                    unit.put_checkpoint(topic, size, note)
            self.copied["checkpoints"] += len(notes)

    def _report(self) -> None:
        self._progress(self.copied["records"] + self.copied["records before"], self._total)


def all_counters(reader: Reader, topic: str) -> dict[str, int]:
    """Return the counters and the record up to which they count; a store of an early format counted in every unit."""
    found = {name: amount for name, amount in reader.counters(topic) if amount}
    return {COUNTED_AT: reader.head(topic).sequence, **found} if found else {}


def all_rows(reader: Reader, topic: str, kind: str) -> Iterator[Row]:
    """Yield every row of a kind by key; pages begin after the empty key, which the workspace has."""
    first = reader.row(topic, kind, "")
    if first is not None:
        yield first
    yield from pages_of(reader, topic, kind)


def _entry(record: Record) -> Entry:
    wire = wire_of(record.wire)
    return Entry(record.wire, wire.wire_id, subjects(wire))


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator, batch = iter(items), list[T]()
    for item in iterator:
        batch.append(item)
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
