"""One unit of work on PostgreSQL, in two round trips when it reads nothing more.

The first (`begin`) takes the lock and brings the head, the clock and what others wrote. Everything that the unit adds
waits in lists; the second round trip writes it, one statement a table, and commits. A read in between flushes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from redkey.errors import AppendRefused, CommitInDoubt, ContentRefused, StoreMisused
from redkey.ledger import content as contents
from redkey.ledger.ports import Content, Doubt, Entry, Erasure, Row, Upload
from redkey.ledger.prefetch import Prefetch
from redkey.ledger.record import LOCAL_PAYER, Head, Record
from redkey.ledger.tail import Tail
from redkey.ledger.tiles import TileTree
from redkey.stores.postgres.connections import Connection, run
from redkey.stores.postgres.failures import translate, translated
from redkey.stores.postgres.queries import Queries
from redkey.stores.postgres.schema import SQL
from redkey.stores.postgres.uploads import PostgresUpload
from redkey.stores.sql_queries import BLOCK, WIRE_MARK, Parameters, digest_of
from redkey.stores.transactions import finished_upload

if TYPE_CHECKING:
    from redkey.stores.postgres.begin import Begun
    from redkey.stores.postgres.store import PostgresStore

Statement = tuple[str, Parameters]
_Times = Sequence[int] | None
# Separates the subjects of a record on their way; ids are printable, so none contains it.
_SEPARATOR = "\x1f"


class PostgresUnit(Queries):
    """Adds to the store; reads what is there and what it has added."""

    def __init__(self, store: PostgresStore, connection: Connection, begun: Begun) -> None:
        self._store, self._connection, self._begun = store, connection, begun
        # The topic that may be written; None in a unit on the whole store.
        self.topic = begun.topic
        self.others = begun.state.foreign if begun.state is not None else 0
        self.ended = False
        # Records that are in memory: what others wrote since this process's last unit, and what this unit adds.
        whole = bool(begun.news) and begun.news[-1].sequence == begun.head.sequence
        self._near: list[Record] = list(begun.news) if whole else []
        self._near_after = begun.head.sequence - len(self._near)
        self._new_records: list[tuple[Record, str]] = []
        self._new_blocks: list[tuple[int, int]] = []
        self._new_tiles: list[tuple[int, int, bytes]] = []
        self._new_checkpoints: dict[int, bytes] = {}
        self._new_rows: dict[tuple[str, str], Row | None] = {}
        self._new_contents: dict[bytes, tuple[int, bool, bytes | None, Any]] = {}
        self._new_counts: dict[str, int] = {}
        self._new_settings: dict[str, str] = {}
        self._new_due: int | None = None
        self._due = begun.due
        self._appended = self._wrote = False
        # What was read ahead, until the unit changes it: rows of statements by their parameters, and the newest records
        # of subjects with whether these are all.
        self._ready: dict[str, dict[tuple[Any, ...], list[Any]]] = {}
        self._ready_events: dict[str, tuple[list[Record], bool]] = {}
        # The checkpoint that this unit signs.
        self.signed: bytes | None = None

    # Reading.

    def head(self, topic: str) -> Head:
        self._check_open()
        if topic != self.topic or self._begun.number is None:
            return super().head(topic)
        tail = self._tail_or_none()
        return self._begun.head if tail is None else tail.head

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        self._check_open()
        if topic == self.topic and after >= self._near_after:
            first = after - self._near_after
            return self._near[first : first + max(limit, 0)]
        return super().read(topic, after, limit)

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]:
        self._check_open()
        ready = self._ready_events.get(subject) if newest_first and topic == self.topic else None
        if ready is not None:
            before = [one for one in ready[0] if not after or one.sequence < after]
            if ready[1] or len(before) >= limit:
                return before[:limit]
        return super().events(topic, subject, after, limit, newest_first=newest_first)

    def prefetch(self, topic: str, wanted: Prefetch) -> None:
        number = self._own(topic)
        statements: list[Statement] = []
        if wanted.rows:
            statements.append((SQL["rows_named"], (*map(list, zip(*wanted.rows, strict=True)), number)))
        digests = [bytes.fromhex(sha256) for sha256 in wanted.contents]
        if digests:
            statements.append((SQL["contents_named"], (digests, number)))
        if wanted.subjects:
            subjects = list(wanted.subjects)
            statements.append((SQL["events_named"], (subjects, number, wanted.newest, number)))
            statements.append((SQL["events_named_last"], {"topic": number, "subjects": subjects}))
        alone: list[Statement] = [
            *((SQL["rows_listed"], (number, kind, listed, 0, "", limit)) for kind, listed, limit in wanted.lists),
            *((SQL["counters"], (number, name, name + "\U0010ffff")) for name in wanted.counters),
        ]
        if not statements and not alone:
            return
        with translated():
            found = iter(self._store.connections.pipeline(self._connection, [*statements, *alone]))
        if wanted.rows:
            rows = self._ready[SQL["row"]] = {(number, *name): [] for name in wanted.rows}
            for row in next(found):
                rows[number, row[0], row[1]] = [row]
        if digests:
            self._ready[SQL["content"]] = {(number, digest): [columns] for digest, *columns in next(found)}
        if wanted.subjects:
            self._take_events(wanted, next(found), next(found))
        for sql, parameters in alone:
            self._ready.setdefault(sql, {})[tuple(parameters)] = next(found)

    def _take_events(self, wanted: Prefetch, indexed: list[Any], last: list[Any]) -> None:
        """Keep the newest records of subjects: those after the last complete block, then those of the index."""
        counts = dict.fromkeys(wanted.subjects, 0)
        for subject, *_ in indexed:
            counts[subject] += 1
        self._ready_events = {subject: ([], count < wanted.newest) for subject, count in counts.items()}
        for subject, *columns in (*last, *indexed):
            self._ready_events[subject][0].append(Record(self.topic or "", *columns))

    def tree(self, topic: str) -> TileTree:
        return self._tail().tree.copy() if topic == self.topic else super().tree(topic)

    def setting(self, name: str) -> str | None:
        self._check_open()
        found = self._new_settings.get(name)
        return found if found is not None else super().setting(name)

    def topic_number(self, topic: str) -> int | None:
        self._check_open()
        return self._begun.number if topic == self.topic else self._store.topic_number(topic)

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        self._check_open()
        if sql in self._ready and (ready := self._ready[sql].get(tuple(parameters))) is not None:
            return ready
        with translated():
            if statements := self._take_statements():
                self._store.connections.pipeline(self._connection, statements)
            return run(self._store.connections, self._connection, sql, parameters)

    # The ledger.

    def next_timestamp(self, topic: str) -> int:
        self._own(topic)
        return self._tail().next_timestamp()

    def append(
        self, topic: str, entries: Sequence[Entry], expected: int, payer: str = LOCAL_PAYER, timestamps: _Times = None
    ) -> Sequence[Record]:
        self._own(topic)
        records, tiles = self._tail().append(entries, expected, payer, timestamps)
        self._new_records += [(record, _subjects(entry)) for record, entry in zip(records, entries, strict=True)]
        self._near += records
        self._appended |= bool(records)
        self._ready_events.clear()
        self._new_tiles += tiles
        complete, before = (expected + len(records)) & -BLOCK, expected & -BLOCK
        if complete > before:
            self._new_blocks.append((before, complete))
        return records

    def put_checkpoint(self, topic: str, size: int, note: bytes) -> None:
        self._own(topic)
        self._tail().check_checkpoint(size, note)
        self._new_checkpoints[size] = note
        self.signed = note

    # Rows, content, counters, settings.

    def put_rows(self, topic: str, rows: Iterable[Row]) -> None:
        self._own(topic)
        for row in rows:
            self._new_rows[row.kind, row.key] = row
            self._forget("row", row.kind, row.key)
        self._forget("rows_listed")

    def delete_rows(self, topic: str, kind: str, keys: Iterable[str]) -> None:
        self._own(topic)
        for key in keys:
            self._new_rows[kind, key] = None
            self._forget("row", kind, key)
        self._forget("rows_listed")

    def put_content(self, topic: str, items: Iterable[Content]) -> None:
        self._own(topic)
        self._forget("content")
        for item in items:
            contents.check(item)
            digest = bytes.fromhex(item.sha256)
            if digest not in self._new_contents or item.pinned:
                self._new_contents[digest] = len(item.data), item.pinned, item.data, None

    def adopt(self, topic: str, upload: Upload) -> None:
        staged = finished_upload(upload, PostgresUpload)
        self._own(topic)
        if staged.staged is None:
            self.put_content(topic, [Content(staged.sha256, staged.data)])
        else:
            self._forget("content")
            self._new_contents.setdefault(bytes.fromhex(staged.sha256), (staged.size, False, None, staged.staged))

    def erase_content(self, topic: str, sha256: str) -> Erasure:
        number, digest = self._own(topic), digest_of(sha256)
        self._forget("content")
        found = self._content(topic, sha256)
        if found is None:
            return ""
        if found[1]:
            raise ContentRefused(f"content {sha256} is pinned: replay needs it", code="content_pinned")
        self._fetch(SQL["erase_content"], (number, digest))
        if found[3] is not None:
            self._fetch(SQL["delete_upload"], (found[3],))
        self._wrote = True
        return "later"

    def count(self, topic: str, amounts: Iterable[tuple[str, int]]) -> None:
        self._own(topic)
        self._forget("counters")
        for name, amount in amounts:
            self._new_counts[name] = self._new_counts.get(name, 0) + amount

    def put_fact(self, topic: str, name: str, value: str) -> None:
        self._own(topic)
        self._new_settings[name] = value

    def put_setting(self, name: str, value: str) -> None:
        self._check_open()
        if self.topic is not None:
            raise StoreMisused("settings are of the whole store; use write_store", code="unit_of_a_topic")
        self._new_settings[name] = value

    def put_due(self, topic: str, at: int) -> None:
        self._own(topic)
        stored = self._due
        if at == stored or (stored > self._tail().next_timestamp() and (not at or at > stored)):
            # Looking a little too early costs an empty unit, and far fewer rows are written.
            return
        self._due = self._new_due = at

    # The end.

    def commit(self) -> None:
        """Write what is left and commit, in one round trip; CommitInDoubt if the connection is lost in it."""
        statements, number = self._take_statements(), self._begun.number
        if self._wrote and number is not None:
            head = self.head(self.topic or "")
            statements.append((SQL["put_head"], (head.sequence, head.timestamp, head.running_hash, number)))
        try:
            self._store.connections.pipeline(self._connection, [*statements, ("COMMIT", ())])
        except psycopg.Error as error:
            if self._connection.closed and self._wrote:
                raise CommitInDoubt("the connection was lost during the commit", doubt=self._doubt()) from error
            failure = translate(error)
            if failure is None:
                raise
            raise failure from error

    @property
    def wrote(self) -> bool:
        """True when the unit adds something."""
        return self._wrote

    def end(self) -> None:
        """From here on every call is refused."""
        self.ended = True

    def _doubt(self) -> Doubt:
        """How to find out: records by the running hash at their place, anything else by the transaction's number."""
        if not self._appended:
            return Doubt(self.topic or "", 0, b"", self._begun.transaction)
        head = self.head(self.topic or "")
        return Doubt(self.topic or "", head.sequence, head.running_hash)

    def _take_statements(self) -> list[Statement]:
        """Return the statements that write the pending rows, one for each table, to be sent in one pipeline."""
        number = self._begun.number
        statements: list[Statement] = []
        if self._new_contents:
            found = self._new_contents
            columns = [list(column) for column in zip(*found.values(), strict=True)]
            statements.append((SQL["put_contents"], (number, list(found), *columns)))
            self._new_contents = {}
        if self._new_records:
            rows = [
                (one.sequence, one.timestamp, one.payer, one.running_hash, subjects, one.wire)
                for one, subjects in self._new_records
            ]
            statements.append((SQL["insert_records"], (number, *map(list, zip(*rows, strict=True)))))
            statements += [(SQL["index_block"], (number, *block)) for block in self._new_blocks]
            self._new_records, self._new_blocks = [], []
        if self._new_tiles:
            statements.append((SQL["insert_tiles"], (number, *map(list, zip(*self._new_tiles, strict=True)))))
            self._new_tiles = []
        statements += self._row_statements(number)
        statements += [(SQL["put_checkpoint"], (number, size, note)) for size, note in self._new_checkpoints.items()]
        self._new_checkpoints = {}
        if self._new_due is not None:
            due, self._new_due = self._new_due, None
            statements.append((SQL["put_due"], (number, due)) if due else (SQL["delete_due"], (number,)))
        if self._new_counts:
            # In one order everywhere: units that wait for each other's rows would be a deadlock.
            names, amounts = zip(*sorted(self._new_counts.items()), strict=True)
            statements.append((SQL["add_to_counters"], (number, list(names), list(amounts))))
            self._new_counts = {}
        if self._new_settings:
            names, values = zip(*sorted(self._new_settings.items()), strict=True)
            statements.append((SQL["put_settings"], (list(names), list(values))))
            self._new_settings = {}
        self._wrote |= bool(statements)
        return statements

    def _row_statements(self, number: int | None) -> list[Statement]:
        rows, self._new_rows = self._new_rows, {}
        statements: list[Statement] = []
        kept = [(row.kind, row.key, row.body, row.listed, row.position) for row in rows.values() if row is not None]
        if kept:
            statements.append((SQL["put_rows"], (number, *map(list, zip(*kept, strict=True)))))
        gone = [key for key, row in rows.items() if row is None]
        if gone:
            statements.append((SQL["delete_rows"], (*map(list, zip(*gone, strict=True)), number)))
        return statements

    def _tail_or_none(self) -> Tail | None:
        return self._begun.state.tail if self._begun.state is not None else None

    def _tail(self) -> Tail:
        self._check_open()
        return self._store.tail_of(self._begun)

    def _forget(self, statement: str, *key: str) -> None:
        """Drop what was read ahead by a statement and is changed now: one row, or everything."""
        if not self._ready:
            return
        if key:
            self._ready.get(SQL[statement], {}).pop((self._begun.number, *key), None)
        else:
            self._ready.pop(SQL[statement], None)

    def _own(self, topic: str) -> int:
        """The number of the unit's own topic: no other one may be written."""
        self._check_open()
        if topic != self.topic:
            raise StoreMisused(f"the unit is of topic {self.topic}, not {topic}", code="unit_of_another_topic")
        if self._begun.number is None:
            raise AppendRefused(f"there is no topic {topic}", code="topic_unknown")
        return self._begun.number

    def _check_open(self) -> None:
        if self.ended:
            raise StoreMisused("the unit has ended; open another", code="unit_ended")


def _subjects(entry: Entry) -> str:
    """The wire id and the subjects of a record, joined."""
    return _SEPARATOR.join((WIRE_MARK + entry.wire_id, *entry.subjects))
