"""A database as fsck reads it: at one commit, for reading only.

Nothing is created, locked or migrated here. Servers may go on writing: one transaction keeps this moment. PostgreSQL
checks its own pages; a page that it cannot read is reported in its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256 as new_hash
from typing import Any

import psycopg

from redkey.errors import StoreError, StoreFailed, StoreRefused
from redkey.ledger.ports import Row
from redkey.ledger.record import Record
from redkey.services.fsck.evidence import Body, Misplaced, Stored, Unreadable
from redkey.stores.postgres import schema
from redkey.stores.postgres.connections import Connections, run
from redkey.stores.postgres.failures import translated
from redkey.stores.postgres.queries import Queries
from redkey.stores.postgres.schema import SQL
from redkey.stores.sql_files import read_statements
from redkey.stores.sql_queries import BLOCK, WIRE_MARK, Parameters, digest_of

_SQL = read_statements(__package__, "inspection.sql")
_PAGE = 1024


class Inspection(Queries):
    """One moment of a database. Use it from one thread; close it when done."""

    def __init__(self, url: str) -> None:
        self._connections = Connections(url)
        self._numbers: dict[str, int | None] = {}
        try:
            self._connection = self._connections.connect()
            schema.check_server(self._connection)
            found = schema.version(self._connection)
            schema.refuse_newer(found)
            if not found:
                raise StoreRefused("the database has no ledger; check the URL", code="no_store")
            self._fetch(SQL["begin_snapshot"], ())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()
        self._connections.close()

    def __enter__(self) -> Inspection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topic_number(self, topic: str) -> int | None:
        if topic not in self._numbers:
            found = self._fetch(SQL["topic_number"], (topic,))
            self._numbers[topic] = found[0][0] if found else None
        return self._numbers[topic]

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        try:
            with translated():
                return run(self._connections, self._connection, sql, parameters)
        except psycopg.Error as error:
            raise StoreFailed(f"the database is damaged: {error}", code="store_damaged") from error

    # The store as a whole.

    def complaints(self) -> Iterator[tuple[str, str]]:
        try:
            for topic, head, last in self._fetch(_SQL["heads_differ"], ()):
                yield "database_damaged", f"the head of topic {topic} is at {head}, its last record at {last}"
            for table, number in self._fetch(_SQL["strays"], ()):
                yield "topic_unknown", f"the table {table} has rows of a topic that does not exist (number {number})"
        except StoreError as error:
            yield "database_damaged", error.message

    def settings(self) -> Mapping[str, str]:
        return dict(self._fetch(_SQL["settings"], ()))

    # Records.

    def last_sequence(self, topic: str) -> int:
        return self.head(topic).sequence

    def stored(self, topic: str) -> Iterator[Sequence[Stored | Unreadable]]:
        after = 0
        while rows := self._fetch(_SQL["stored_records"], (self._number(topic), after, _PAGE)):
            yield [_stored(topic, row) for row in rows]
            after = rows[-1][0]

    # Tiles, checkpoints, rows.

    def tile_counts(self, topic: str) -> Mapping[int, int]:
        return dict(self._fetch(_SQL["tile_counts"], (self._number(topic),)))

    def checkpoints_up(self, topic: str) -> Iterator[tuple[int, bytes]]:
        after = -1
        while rows := self._fetch(_SQL["checkpoints_up"], (self._number(topic), after, _PAGE)):
            yield from rows
            after = rows[-1][0]

    def placed(self, topic: str, kind: str, key: str) -> tuple[int, Row] | None:
        found = self._fetch(_SQL["placed"], (self._number(topic), kind, key))
        return (found[0][0], Row(*found[0][1:])) if found else None

    def places(self, topic: str) -> Iterator[tuple[int, str, str]]:
        after = ("", "")
        while rows := self._fetch(_SQL["places"], (self._number(topic), *after, _PAGE)):
            yield from rows
            after = rows[-1][1:]

    # Content.

    def bodies(self, topic: str) -> Iterator[Body]:
        after = b""
        while rows := self._fetch(_SQL["bodies"], (self._number(topic), after, _PAGE // 16)):
            for digest, size, pinned, erased, data, upload in rows:
                found: tuple[int, str] | None = None
                if data is not None:
                    found = len(data), new_hash(data).hexdigest()
                elif upload is not None:
                    length, hashed = 0, new_hash()
                    for piece in self._pieces(upload):
                        length += len(piece)
                        hashed.update(piece)
                    found = length, hashed.hexdigest()
                yield Body(digest.hex(), size, pinned, erased, found)
            after = rows[-1][0]

    def body_facts(self, topic: str, sha256: str) -> tuple[int, bool] | None:
        found = self._fetch(_SQL["body_known"], (self._number(topic), digest_of(sha256)))
        return (found[0][0], found[0][1]) if found else None

    def unnamed_files(self) -> Iterator[str]:
        return iter(())

    # The event index.

    @property
    def indexes_keys(self) -> bool:
        return True

    def index_size(self) -> int:
        size: int = self._fetch(_SQL["index_size"], ())[0][0]
        return size

    def index_complete(self, sequence: int) -> int:
        return sequence & -BLOCK

    def missing_entries(self, topic: str) -> Iterator[Misplaced]:
        complete = self.index_complete(self.head(topic).sequence)
        for first in range(0, complete, _PAGE):
            bounds = self._number(topic), first, min(first + _PAGE, complete)
            for sequence, subject in self._fetch(_SQL["missing_entries"], bounds):
                yield Misplaced(sequence, subject, True)

    def extra_entries(self, topic: str) -> Iterator[Misplaced]:
        complete = self.index_complete(self.head(topic).sequence)
        for sequence, subject in self._fetch(_SQL["extra_entries"], (self._number(topic), complete)):
            yield Misplaced(sequence, subject, False)

    def repeated_wires(self) -> Iterator[str]:
        for (subject,) in self._fetch(_SQL["repeated_wires"], ()):
            yield subject.removeprefix(WIRE_MARK)

    # Each server keeps the largest checkpoint that it has seen, in its own data directory.

    @property
    def has_outside(self) -> bool:
        return False

    def outside(self, topic: str) -> bytes | None:
        return None

    def outside_now(self, topic: str) -> bytes | None:
        return None

    def outside_coming(self, topic: str) -> bool:
        # None is expected outside.
        return True

    def outside_topics(self) -> Sequence[str]:
        return ()

    def _number(self, topic: str) -> int:
        number = self.topic_number(topic)
        return -1 if number is None else number


def _stored(topic: str, row: Sequence[Any]) -> Stored:
    sequence, timestamp, payer, running_hash, subjects, wire = row
    marked = subjects[0].removeprefix(WIRE_MARK) if subjects and subjects[0].startswith(WIRE_MARK) else ""
    return Stored(Record(topic, sequence, timestamp, payer, running_hash, wire), marked, tuple(subjects[1:]))
