"""Everything that is read from redkey.db, for the store and for the unit alike.

One class turns the ports' questions into the statements of `statements.sql`. Who runs them is left to `_fetch`:
the store on a connection for reading, at the last commit; the unit on its own, with what it has added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256 as hash_of
from typing import Any, ClassVar

import orjson

from redkey.errors import StoreFailed
from redkey.ledger.ports import Content
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.stores.sql_queries import SqlQueries, checked_pieces, digest_of
from redkey.stores.sqlite.content_files import ContentFiles
from redkey.stores.sqlite.schema import SQL

# A position is a topic's number and a sequence in one integer; both are far from their ends.
SEQUENCE_BITS = 40
SEQUENCE_LIMIT = (1 << SEQUENCE_BITS) - 1


class Queries(SqlQueries):
    """What may be read of a data directory."""

    _sql: ClassVar = SQL
    _files: ContentFiles

    def head(self, topic: str) -> Head:
        number = self.topic_number(topic)
        if number is None:
            return EMPTY_HEAD
        base = number << SEQUENCE_BITS
        for position, timestamp, running_hash in self._fetch(SQL["head"], (base, base + SEQUENCE_LIMIT)):
            return Head(position - base, timestamp, running_hash)
        return EMPTY_HEAD

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        number = self.topic_number(topic)
        if number is None or after >= SEQUENCE_LIMIT:
            return ()
        base = number << SEQUENCE_BITS
        rows = self._fetch(SQL["records_after"], (base + max(after, 0), base + SEQUENCE_LIMIT, max(limit, 0)))
        return self._records(topic, rows)

    def read_back(
        self, topic: str, before: int, limit: int = 1000, *, after: int = 0, containing: bytes = b""
    ) -> Sequence[Record]:
        number = self.topic_number(topic)
        if number is None or before <= 0:
            return ()
        base = number << SEQUENCE_BITS
        between = base + min(max(after, 0), SEQUENCE_LIMIT), base + min(before, SEQUENCE_LIMIT)
        if containing:
            rows = self._fetch(SQL["records_containing"], (*between, containing, max(limit, 0)))
        else:
            rows = self._fetch(SQL["records_before"], (*between, max(limit, 0)))
        return self._records(topic, rows)

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        base = number << SEQUENCE_BITS
        after = max(after, 0) or (SEQUENCE_LIMIT if newest_first else 0)
        rows = self._fetch(
            SQL["events_before" if newest_first else "events_after"],
            {
                "subject": subject,
                "quoted": orjson.dumps(subject).decode(),
                "first": base,
                "last": base + SEQUENCE_LIMIT,
                "after": base + min(after, SEQUENCE_LIMIT),
                "limit": max(limit, 0),
            },
        )
        return self._records(topic, rows)

    def content(self, topic: str, sha256: str) -> Content | None:
        number = self.topic_number(topic)
        if number is None or (digest := digest_of(sha256)) is None:
            return None
        found = self._body(topic, number, digest)
        if isinstance(found, str):
            # Between the row and its file it may have been erased: then a second look finds no row.
            found = self._body(topic, number, digest)
        if isinstance(found, str):
            raise StoreFailed(f"content {sha256} of topic {topic} is {found}", code=f"content_{found}")
        return found

    def content_chunks(self, topic: str, sha256: str) -> Iterator[bytes]:
        number, digest = self.topic_number(topic), digest_of(sha256)
        found = self._fetch(SQL["content"], (number, digest)) if number is not None and digest is not None else []
        if not found:
            return iter(())
        size, _, inline = found[0]
        pieces = self._files.pieces(topic, sha256) if inline is None else iter((inline,))
        return checked_pieces(pieces, f"content {sha256} of topic {topic}", size, sha256)

    def _body(self, topic: str, number: int, digest: bytes) -> Content | str | None:
        """A body that has the right hash; what is wrong with it; or None when there is none."""
        for size, pinned, inline in self._fetch(SQL["content"], (number, digest)):
            data = self._files.read(topic, digest.hex()) if inline is None else inline
            if data is None:
                return "missing"
            if len(data) != size or hash_of(data).digest() != digest:
                return "damaged"
            return Content(digest.hex(), data, bool(pinned))
        return None

    def _records(self, topic: str, rows: Sequence[Any]) -> list[Record]:
        return [
            Record(topic, position & SEQUENCE_LIMIT, timestamp, payer, running_hash, wire)
            for position, timestamp, payer, running_hash, wire in rows
        ]
