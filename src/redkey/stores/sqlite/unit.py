"""One unit of work on redkey.db.

A unit collects its changes in lists until it commits or must read, then writes them with one `executemany` per table:
an entity that changed ten times is written once, and a record costs no statement of its own. The writer begins, commits
and rolls back units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from redkey.errors import AppendRefused, ContentRefused, StoreMisused
from redkey.ledger import content as contents
from redkey.ledger.ports import Content, Entry, Erasure, Row, Upload
from redkey.ledger.prefetch import Prefetch
from redkey.ledger.record import FIRST_LOCAL_TOPIC, LOCAL_PAYER, MESSAGE_LIMIT, Head, Record, local_topic
from redkey.ledger.tail import Tail, check_entity
from redkey.ledger.tiles import TileTree
from redkey.stores.sql_queries import BLOCK, WIRE_MARK, Parameters, digest_of
from redkey.stores.sqlite.content_files import INLINE_LIMIT, Mark
from redkey.stores.sqlite.incoming import Incoming
from redkey.stores.sqlite.queries import SEQUENCE_BITS, Queries
from redkey.stores.sqlite.schema import SQL
from redkey.stores.transactions import finished_upload

if TYPE_CHECKING:
    from redkey.stores.sqlite.writer import Writer


class SqliteUnit(Queries):
    """Adds to the store; reads committed data and its own additions."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        # The topic that may be written now; None between the units of a group, and in a unit on the whole store.
        self.topic: str | None = None
        self.is_store = False
        self._files = writer.files
        self.ended = False
        # What the writer knows about the topics of this unit; looked up once, cleared when the unit ends.
        self._numbers: dict[str, int] = {}
        self._tails: dict[str, Tail] = {}
        self._new_records: list[tuple[int, int, str, bytes, str, bytes]] = []
        self._new_blocks: list[tuple[int, int]] = []
        self._new_tiles: list[tuple[int, int, int, bytes]] = []
        self._new_rows: dict[tuple[int, str, str], Row | None] = {}
        self._new_contents: dict[tuple[str, str], Content] = {}
        self._new_uploads: dict[tuple[str, str], Incoming] = {}
        self._new_counts: dict[tuple[int, str], int] = {}
        self._new_due: dict[int, int] = {}
        # For the writer: checkpoints to publish, and bodies added and erased to settle.
        self.new_checkpoints: dict[str, tuple[int, bytes]] = {}
        self.added: set[Mark] = set()
        self.erased: set[Mark] = set()
        self.bytes = 0

    def end(self) -> None:
        """End the unit: from now on every call is refused."""
        self.ended = True
        self._numbers.clear()
        self._tails.clear()

    @property
    def others(self) -> int:
        return self._writer.seen

    # Reading.

    def head(self, topic: str) -> Head:
        tail = self._tails.get(topic)
        if tail is not None:
            return tail.head
        return super().head(topic) if self.topic_number(topic) is None else self._tail(topic).head

    def tree(self, topic: str) -> TileTree:
        return self._tail(topic).tree.copy()

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        self._check_open()
        self.flush()
        return self._writer.fetch(sql, parameters)

    def topic_number(self, topic: str) -> int | None:
        number = self._numbers.get(topic)
        if number is None:
            self._check_open()
            number = self._writer.topic_number(topic)
            if number is not None:
                self._numbers[topic] = number
        return number

    # The ledger.

    def prefetch(self, topic: str, wanted: Prefetch) -> None:
        """Nothing to do: a read costs no round trip."""

    def next_timestamp(self, topic: str) -> int:
        self._known(topic)
        return self._tail(topic).next_timestamp()

    def create_topic(self, topic: str | None, fact: str) -> str:
        """Create a topic with its fact, or return the topic that already has this fact."""
        existing = self.setting(fact) if fact else None
        if existing is not None:
            return existing
        if topic is None:
            last = self._fetch(SQL["last_local_topic"], ())[0][0]
            topic = local_topic(max(0, (last or 0) + 1 - FIRST_LOCAL_TOPIC))
        else:
            check_entity(topic, "topic")
            if self.topic_number(topic) is not None:
                raise AppendRefused(f"topic {topic} already exists", code="topic_exists")
        self._writer.begin_topic(topic)
        if fact:
            self._writer.run(SQL["put_setting"], (fact, topic))
        return topic

    def append(
        self,
        topic: str,
        entries: Sequence[Entry],
        expected: int,
        payer: str = LOCAL_PAYER,
        timestamps: Sequence[int] | None = None,
    ) -> Sequence[Record]:
        number = self._known(topic)
        records, tiles = self._tail(topic).append(entries, expected, payer, timestamps)
        base = number << SEQUENCE_BITS
        self._new_records += [
            (base + record.sequence, record.timestamp, payer, record.running_hash, _subjects(entry), record.wire)
            for record, entry in zip(records, entries, strict=True)
        ]
        self._new_tiles += [(number, *tile) for tile in tiles]
        complete, before = (expected + len(records)) & -BLOCK, expected & -BLOCK
        if complete > before:
            self._new_blocks.append((base + before, base + complete))
        return records

    def put_checkpoint(self, topic: str, size: int, note: bytes) -> None:
        number = self._known(topic)
        self._tail(topic).check_checkpoint(size, note)
        self._writer.run(SQL["put_checkpoint"], (number, size, note))
        if size >= self.new_checkpoints.get(topic, (0, b""))[0]:
            self.new_checkpoints[topic] = (size, note)

    # Rows, content, counters, settings.

    def put_rows(self, topic: str, rows: Iterable[Row]) -> None:
        number = self._known(topic)
        for row in rows:
            self._new_rows[number, row.kind, row.key] = row

    def delete_rows(self, topic: str, kind: str, keys: Iterable[str]) -> None:
        number = self._known(topic)
        for key in keys:
            self._new_rows[number, kind, key] = None

    def put_content(self, topic: str, items: Iterable[Content]) -> None:
        self._known(topic)
        for item in items:
            contents.check(item)
            before = self._new_contents.get((topic, item.sha256))
            if before is None or item.pinned:
                self._new_contents[topic, item.sha256] = item

    def adopt(self, topic: str, upload: Upload) -> None:
        staged = finished_upload(upload, Incoming)
        self._known(topic)
        if staged.path is None:
            self.put_content(topic, [Content(staged.sha256, staged.data)])
        else:
            self._new_uploads[topic, staged.sha256] = staged

    def erase_content(self, topic: str, sha256: str) -> Erasure:
        number, digest = self._known(topic), digest_of(sha256)
        rows = self._fetch(SQL["content"], (number, digest))
        if not rows:
            return ""
        if rows[0][1]:
            raise ContentRefused(f"content {sha256} is pinned: replay needs it", code="content_pinned")
        self._writer.run(SQL["erase_file" if rows[0][2] is None else "erase_content"], (number, digest))
        self.erased.add((topic, sha256))
        return "now"

    def count(self, topic: str, amounts: Iterable[tuple[str, int]]) -> None:
        number = self._known(topic)
        for name, amount in amounts:
            self._new_counts[number, name] = self._new_counts.get((number, name), 0) + amount

    def put_fact(self, topic: str, name: str, value: str) -> None:
        self._known(topic)
        self._writer.run(SQL["put_setting"], (name, value))

    def put_setting(self, name: str, value: str) -> None:
        self._check_open()
        if not self.is_store:
            raise StoreMisused("settings belong to the whole store; use write_store", code="unit_of_a_topic")
        self._writer.run(SQL["put_setting"], (name, value))

    def put_due(self, topic: str, at: int) -> None:
        number, due = self._known(topic), self._writer.due_times
        stored = due.get(number)
        if stored is None:
            rows = self._writer.fetch(SQL["due_of"], (number,))
            stored = due[number] = rows[0][0] if rows else 0
        if at == stored or (stored > self._tail(topic).next_timestamp() and (not at or at > stored)):
            # Checking a little too early costs an empty unit, but far fewer rows are written.
            return
        due[number] = self._new_due[number] = at

    # Writing to the database.

    def flush(self) -> None:
        """Write the collected changes to the database."""
        many = self._writer.run_many
        if self._new_contents:
            self._flush_contents()
        if self._new_uploads:
            self._flush_uploads()
        if self._new_records:
            self.bytes += len(self._new_records) * MESSAGE_LIMIT
            many(SQL["insert_record"], self._new_records)
            many(SQL["index_block"], self._new_blocks)
            many(SQL["insert_tile"], self._new_tiles)
            self._new_records, self._new_blocks, self._new_tiles = [], [], []
        if self._new_rows:
            rows, self._new_rows = self._new_rows, {}
            kept = [(*key, row.body, row.listed, row.position) for key, row in rows.items() if row is not None]
            many(SQL["put_row"], kept)
            many(SQL["delete_row"], [key for key, row in rows.items() if row is None])
            self.bytes += sum(len(row[3]) for row in kept)
        if self._new_due:
            times, self._new_due = self._new_due, {}
            many(SQL["put_due"], [(number, at) for number, at in times.items() if at])
            many(SQL["delete_due"], [(number,) for number, at in times.items() if not at])
        if self._new_counts:
            counts, self._new_counts = self._new_counts, {}
            many(SQL["add_to_counter"], [(*key, amount) for key, amount in counts.items()])

    def _flush_contents(self) -> None:
        items, self._new_contents = self._new_contents, {}
        files: dict[str, list[tuple[str, bytes]]] = {}
        rows = []
        for (topic, sha256), item in items.items():
            number, digest, large = self._numbers[topic], digest_of(sha256), len(item.data) > INLINE_LIMIT
            if large and not self._writer.fetch(SQL["content"], (number, digest)):
                files.setdefault(topic, []).append((sha256, item.data))
            rows.append((number, digest, len(item.data), item.pinned, None if large else item.data))
        if files:
            marks = [(topic, sha256) for topic, bodies in files.items() for sha256, _ in bodies]
            self.added.update(marks)
            self._writer.mark(marks)
        for topic, bodies in files.items():
            self._writer.write_files(topic, bodies)
        self._writer.run_many(SQL["put_content"], rows)

    def _flush_uploads(self) -> None:
        uploads, self._new_uploads = self._new_uploads, {}
        for (topic, sha256), upload in uploads.items():
            number, digest = self._numbers[topic], digest_of(sha256)
            if self._writer.fetch(SQL["content_facts"], (number, digest)):
                continue
            self.added.add((topic, sha256))
            self._writer.mark([(topic, sha256)])
            self._writer.adopt_files(topic, [(sha256, upload.take)])
            self._writer.run_many(SQL["put_content"], [(number, digest, upload.size, False, None)])

    def _tail(self, topic: str) -> Tail:
        tail = self._tails.get(topic)
        if tail is None:
            self._check_open()
            tail = self._tails[topic] = self._writer.tail(topic)
        return tail

    def _known(self, topic: str) -> int:
        """The number of the unit's own topic; no other topic may be written."""
        if topic != self.topic:
            self._check_open()
            raise StoreMisused(f"the unit belongs to topic {self.topic}, not {topic}", code="unit_of_another_topic")
        number = self._numbers.get(topic) or self.topic_number(topic)
        if number is None:
            raise AppendRefused(f"there is no topic {topic}", code="topic_unknown")
        return number

    def _check_open(self) -> None:
        if self.ended:
            raise StoreMisused("the unit has ended; open another", code="unit_ended")


def _subjects(entry: Entry) -> str:
    """The wire id and the subjects of a record, as stored in its row."""
    return orjson.dumps([WIRE_MARK + entry.wire_id, *entry.subjects]).decode()
