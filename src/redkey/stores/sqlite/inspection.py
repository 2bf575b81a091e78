"""A data directory as fsck reads it: at one commit, read-only, damaged or not.

Nothing is created, locked, migrated or repaired here. What SQLite cannot read is reported, and reading continues after
it. A server may keep writing meanwhile: one transaction fixes the moment.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256 as new_hash
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from redkey.errors import StoreError, StoreFailed, StoreRefused
from redkey.ledger.ports import Row
from redkey.ledger.record import Record
from redkey.ledger.tail import checkpoint_size
from redkey.services.fsck.evidence import Body, Misplaced, Stored, Unreadable
from redkey.stores.closing import Closing
from redkey.stores.sql_files import read_statements
from redkey.stores.sql_queries import BLOCK, WIRE_MARK, Parameters, digest_of
from redkey.stores.sqlite import schema
from redkey.stores.sqlite.checkpoint_files import CheckpointFiles
from redkey.stores.sqlite.connection import DATABASE_NAME
from redkey.stores.sqlite.content_files import PENDING, ContentFiles, Mark
from redkey.stores.sqlite.failures import sync_file, translated
from redkey.stores.sqlite.incoming import INCOMING
from redkey.stores.sqlite.queries import SEQUENCE_BITS, SEQUENCE_LIMIT, Queries
from redkey.stores.sqlite.schema import SQL

_SQL = read_statements(__package__, "inspection.sql")
_PAGE = 1024
_COMPLAINTS = 100
_CHUNK = 1024 * 1024
# The smallest possible size of a record: its running hash alone is 48 bytes.
_RECORD_BYTES = 64
# From this format on the event index contains the idempotency keys of requests.
_KEYS_SINCE = 2
_NOT_WRITABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})


class Inspection(Queries, Closing):
    """One moment of a data directory. Use it from one thread; close it when done.

    `still` says that no process writes to it, as with a backup: then SQLite creates no files beside it.
    """

    def __init__(self, directory: Path, *, still: bool = False) -> None:
        self.directory = directory
        if not (directory / DATABASE_NAME).is_file():
            raise StoreRefused(f"there is no redkey.db in {directory}", code="no_store")
        self._directory = directory
        self._files = ContentFiles(directory, create=False)
        # Read before the database: its moment includes every checkpoint that was published before.
        self._outside, self._coming = _read_outside(directory)
        self._connection = _open(directory / DATABASE_NAME, still=still)
        # Older formats are read as they are, because a backup is never migrated.
        self._format = schema.version(self._connection)
        self._numbers: dict[str, int | None] = {}

    def close(self) -> None:
        self._connection.close()

    def topic_number(self, topic: str) -> int | None:
        if topic not in self._numbers:
            rows = self._fetch(SQL["topic_number"], (topic,))
            self._numbers[topic] = rows[0][0] if rows else None
        return self._numbers[topic]

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        with _damage_reported():
            return self._connection.execute(sql, parameters).fetchall()

    # The store as a whole.

    def complaints(self) -> Iterator[tuple[str, str]]:
        yield from self._integrity()
        try:
            layout, expected = dict(self._fetch(_SQL["layout"], ())), _layout(self._format)
            for name, sql in (layout.items() | expected.items()) - (layout.items() & expected.items()):
                complaint = "is not part of this format" if layout.get(name) == sql else "is missing or was changed"
                yield "layout_changed", f"the table or index {name} {complaint}"
            known = {number for (number,) in self._fetch(_SQL["numbers"], ())}
            yield from self._strays(known)
        except StoreError as error:
            yield "database_damaged", error.message

    def _integrity(self) -> Iterator[tuple[str, str]]:
        try:
            with _damage_reported():
                for (line,) in self._connection.execute(f"PRAGMA integrity_check({_COMPLAINTS})"):
                    if line != "ok":
                        yield "database_damaged", f"SQLite says: {line}"
        except StoreError as error:
            yield "database_damaged", error.message

    def _strays(self, known: set[int]) -> Iterator[tuple[str, str]]:
        at = 0
        while rows := self._fetch(_SQL["next_position"], (at,)):
            number = rows[0][0] >> SEQUENCE_BITS
            if number not in known:
                yield "topic_unknown", f"records of a topic that does not exist (number {number})"
            _check_rising((at - 1, rows[0][0]))
            at = (number + 1) << SEQUENCE_BITS
        for table in ("tile", "checkpoint", "row", "content", "counter"):
            last = -1
            while rows := self._fetch(_SQL[f"next_in_{table}"], (last,)):
                _check_rising((last, rows[0][0]))
                last = rows[0][0]
                if last not in known:
                    yield "topic_unknown", f"the table {table} refers to a topic that does not exist (number {last})"

    def settings(self) -> Mapping[str, str]:
        return dict(self._fetch(_SQL["settings"], ()))

    # Records.

    def last_sequence(self, topic: str) -> int:
        try:
            return self.head(topic).sequence
        except StoreError:
            pass
        base = self._base(topic)
        sizes = [size for size, _ in self._quietly(SQL["checkpoints"], (base >> SEQUENCE_BITS, 1))]
        entries = self._quietly(_SQL["last_entry"], (base, base + SEQUENCE_LIMIT))
        sizes += [position - base for (position,) in entries if position is not None]
        return max((checkpoint_size(self._outside.get(topic, b"")) or 0, *sizes), default=0)

    def stored(self, topic: str) -> Iterator[Sequence[Stored | Unreadable]]:
        base, after = self._base(topic), 0
        last = None
        while True:
            try:
                rows = self._fetch(_SQL["stored_records"], (base + after, base + SEQUENCE_LIMIT, _PAGE))
                _check_rising((base + after, *(row[0] for row in rows)))
            except StoreError as error:
                last = min(self.last_sequence(topic), self._most_records()) if last is None else last
                if after >= last:
                    yield [Unreadable(after + 1, error.message)]
                    return
                end = min(after + _PAGE, last)
                yield [self._salvaged(topic, base, sequence) for sequence in range(after + 1, end + 1)]
                after = end
                continue
            if not rows:
                return
            yield [_stored(topic, row) for row in rows]
            after = rows[-1][0] - base

    def _salvaged(self, topic: str, base: int, sequence: int) -> Stored | Unreadable:
        try:
            rows = self._fetch(_SQL["stored_record"], (base + sequence,))
        except StoreError as error:
            return Unreadable(sequence, error.message)
        return _stored(topic, rows[0]) if rows else Unreadable(sequence, "it is missing")

    def _most_records(self) -> int:
        """More records than a database of this size can contain: a larger sequence is damage."""
        return int((self.directory / DATABASE_NAME).stat().st_size // _RECORD_BYTES) + _PAGE

    def _quietly(self, sql: str, parameters: Parameters) -> list[Any]:
        try:
            return self._fetch(sql, parameters)
        except StoreError:
            return []

    # Tiles, checkpoints, rows.

    def tile_counts(self, topic: str) -> Mapping[int, int]:
        return dict(self._fetch(_SQL["tile_counts"], (self._number(topic),)))

    def checkpoints_up(self, topic: str) -> Iterator[tuple[int, bytes]]:
        after = -1
        while rows := self._fetch(_SQL["checkpoints_up"], (self._number(topic), after, _PAGE)):
            _check_rising((after, *(size for size, _ in rows)))
            yield from rows
            after = rows[-1][0]

    @property
    def has_outside(self) -> bool:
        return True

    def outside(self, topic: str) -> bytes | None:
        return self._outside.get(topic)

    def outside_now(self, topic: str) -> bytes | None:
        return CheckpointFiles(self._directory, create=False).last(topic)

    def outside_coming(self, topic: str) -> bool:
        return topic in self._coming

    def outside_topics(self) -> Sequence[str]:
        return list(self._outside)

    def placed(self, topic: str, kind: str, key: str) -> tuple[int, Row] | None:
        rows = self._fetch(_SQL["placed"], (self._number(topic), kind, key))
        return (rows[0][0], Row(*rows[0][1:])) if rows else None

    def places(self, topic: str) -> Iterator[tuple[int, str, str]]:
        after = ("", "")
        while rows := self._fetch(_SQL["places"], (self._number(topic), *after, _PAGE)):
            _check_rising((after, *(row[1:] for row in rows)))
            yield from rows
            after = rows[-1][1:]

    # Content.

    def bodies(self, topic: str) -> Iterator[Body]:
        after, marked = b"", self._marked()
        while rows := self._fetch(_SQL["bodies"], (self._number(topic), after, _PAGE // 16)):
            _check_rising((after, *(row[0] for row in rows)))
            for digest, size, pinned, erased, data in rows:
                name = digest.hex()
                stored = (len(data), new_hash(data).hexdigest()) if data is not None else self._file(topic, name)
                if stored is None and not erased and self._erased_since(topic, name):
                    continue
                if erased and data is None and (topic, name) in marked:
                    # The erasure is durable; the file is deleted when no reader needs the log any more.
                    stored = None
                yield Body(name, size, bool(pinned), bool(erased), stored)
            after = rows[-1][0]

    def file_bodies(self, topic: str) -> Iterator[tuple[str, int]]:
        """(SHA-256, size) of every body that is stored as a file."""
        after = b""
        while rows := self._fetch(_SQL["file_bodies"], (self._number(topic), after, _PAGE)):
            _check_rising((after, *(row[0] for row in rows)))
            yield from ((digest.hex(), size) for digest, size in rows)
            after = rows[-1][0]

    def copy_database(self, path: Path) -> None:
        """Write this moment of the database to a new file, durably."""
        with translated():
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            target = sqlite3.connect(path, isolation_level=None)
            try:
                # All pages in one step, inside the transaction that fixes the moment, so that no write restarts it.
                self._connection.backup(target)
            finally:
                target.close()
            with path.open("rb") as file:
                sync_file(file.fileno())

    def body_facts(self, topic: str, sha256: str) -> tuple[int, bool] | None:
        rows = self._fetch(_SQL["body_known"], (self._number(topic), digest_of(sha256)))
        return (rows[0][0], bool(rows[0][1])) if rows else None

    def unnamed_files(self) -> Iterator[str]:
        marked = self._marked()
        for folder in sorted((self.directory / "content").glob("*")):
            if folder.name in (PENDING, INCOMING) or not folder.is_dir():
                continue
            number = self.topic_number(folder.name)
            with os.scandir(folder) as entries:
                for entry in entries:
                    rows = self._fetch(_SQL["body_known"], (number, digest_of(entry.name))) if number else []
                    if (folder.name, entry.name) not in marked and [row[1:] for row in rows] != [(0, 1)]:
                        yield f"content/{folder.name}/{entry.name}"

    def _marked(self) -> set[Mark]:
        return set(self._files.marks()) if (self.directory / "content" / PENDING).is_dir() else set()

    def _file(self, topic: str, name: str) -> tuple[int, str] | None:
        size, digest = 0, new_hash()
        try:
            with self._files.path(topic, name).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    size += len(chunk)
                    digest.update(chunk)
        except OSError:
            return None
        return size, digest.hexdigest()

    def _erased_since(self, topic: str, name: str) -> bool:
        """Whether a server has erased a file after this moment; a new look at the database says so."""
        later = _open(self.directory / DATABASE_NAME)
        try:
            rows = later.execute(_SQL["body_known"], (self._number(topic), digest_of(name))).fetchall()
        except sqlite3.Error:
            return False
        finally:
            later.close()
        return bool(rows) and bool(rows[0][1])

    # The event index.

    @property
    def indexes_keys(self) -> bool:
        return self._format >= _KEYS_SINCE

    def index_size(self) -> int:
        size: int = self._fetch(_SQL["index_size"], ())[0][0]
        return size

    def index_complete(self, sequence: int) -> int:
        return sequence & -BLOCK

    def missing_entries(self, topic: str) -> Iterator[Misplaced]:
        base = self._base(topic)
        complete = base + self.index_complete(self.head(topic).sequence)
        at = base
        # Step from record to record, because a stray record may be far behind the others.
        while (rows := self._fetch(_SQL["next_position"], (at + 1,))) and rows[0][0] <= complete:
            position = rows[0][0]
            _check_rising((at, position))
            end = min(position - 1 + _PAGE, complete)
            missing = self._fetch(_SQL["missing_entries"], (position - 1, end))
            yield from (Misplaced(place - base, str(subject), True) for place, subject in missing)
            at = end

    def extra_entries(self, topic: str) -> Iterator[Misplaced]:
        base = self._base(topic)
        complete = base + self.index_complete(self.head(topic).sequence)
        bounds = {"first": base, "last": base + SEQUENCE_LIMIT, "complete": complete}
        with _damage_reported():
            for position, subject in self._connection.execute(_SQL["extra_entries"], bounds):
                yield Misplaced(position - base, str(subject), False)

    def repeated_wires(self) -> Iterator[str]:
        with _damage_reported():
            for (subject,) in self._connection.execute(_SQL["repeated_wires"]):
                yield subject.removeprefix(WIRE_MARK)

    def _number(self, topic: str) -> int:
        number = self.topic_number(topic)
        return -1 if number is None else number

    def _base(self, topic: str) -> int:
        return self._number(topic) << SEQUENCE_BITS


@contextmanager
def _damage_reported() -> Iterator[None]:
    """Report any error of SQLite as damage: the statements themselves are known to be valid."""
    try:
        with translated():
            yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # Even SQLite's error message may quote damaged text.
        raise StoreFailed(f"redkey.db is damaged: {error}", code="store_damaged") from error


def _check_rising(keys: Sequence[Any]) -> None:
    """Check that keys rise, so that a walk ends; the keys of a damaged tree may lead back to an earlier page."""
    try:
        rising = all(key < following for key, following in pairwise(keys))
    except TypeError:
        # The type of a key is damaged.
        rising = False
    if not rising:
        raise StoreFailed("redkey.db is damaged: keys are not in their order", code="store_damaged")


def _open(path: Path, *, still: bool = False) -> sqlite3.Connection:
    """Open a connection for reading, inside a transaction that fixes this moment."""
    with _damage_reported():
        try:
            return _begin(path, "mode=ro&immutable=1" if still else "mode=ro")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _NOT_WRITABLE:
                raise
            # In a read-only directory SQLite cannot create its index of the log; without a log it needs none.
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                text = f"{path} cannot be read here: {error}; copy the directory to a place where you may write"
                raise StoreRefused(text, code="no_store") from error
        return _begin(path, "mode=ro&immutable=1")


def _begin(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{options}", uri=True, isolation_level=None)
    try:
        # Damaged text must not prevent reading what is around it.
        connection.text_factory = lambda data: data.decode(errors="replace")
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("BEGIN")
        version = schema.version(connection)
    except BaseException:
        connection.close()
        raise
    try:
        schema.refuse_newer(version)
        if not version:
            raise StoreRefused("redkey.db is empty", code="not_redkey")
    except StoreRefused:
        connection.close()
        raise
    return connection


@cache
def _layout(version: int) -> dict[str, str]:
    """The tables and indexes of a format, as its migrations create them."""
    model = sqlite3.connect(":memory:")
    try:
        for migration in schema.MIGRATIONS[:version]:
            model.executescript(migration.sql)
        return dict(model.execute(_SQL["layout"]).fetchall())
    finally:
        model.close()


def _stored(topic: str, row: Sequence[Any]) -> Stored | Unreadable:
    """Convert a row to a record, if every column has its type."""
    position, timestamp, payer, running_hash, subjects, wire = row
    sequence = position & SEQUENCE_LIMIT
    types = (type(timestamp), type(payer), type(running_hash), type(subjects), type(wire))
    if types != (int, str, bytes, str, bytes):
        return Unreadable(sequence, "its columns are damaged")
    try:
        wire_id, *about = orjson.loads(subjects)
    except (orjson.JSONDecodeError, TypeError, ValueError):
        wire_id, about = "", []
    marked = wire_id[1:] if isinstance(wire_id, str) and wire_id.startswith(WIRE_MARK) else ""
    return Stored(Record(topic, sequence, timestamp, payer, running_hash, wire), marked, tuple(map(str, about)))


def _read_outside(directory: Path) -> tuple[dict[str, bytes], set[str]]:
    """The published checkpoints outside the database by topic, and the topics with one that is only prepared."""
    if not (directory / "checkpoints").is_dir():
        return {}, set()
    files = CheckpointFiles(directory, create=False)
    return {topic: files.last(topic) or b"" for topic in files.topics()}, files.prepared()
