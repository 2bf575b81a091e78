"""All reads of redkey.db, for the store and for units.

This class maps the queries of the ports to the statements of `statements.sql`. Subclasses implement `_fetch`: the store
reads at the last commit on a connection for reading, the unit on its own connection with its additions.
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

# A position is a topic's number and a sequence in one integer; neither comes near its limit.
SEQUENCE_BITS = 40
SEQUENCE_LIMIT = (1 << SEQUENCE_BITS) - 1


class Queries(SqlQueries):
    """The queries on a data directory."""

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
        body = self._body(topic, number, digest)
        if isinstance(body, str):
            # The body may have been erased between reading the row and the file; then a second read finds no row.
            body = self._body(topic, number, digest)
        if isinstance(body, str):
            raise StoreFailed(f"content {sha256} of topic {topic} is {body}", code=f"content_{body}")
        return body

    def content_chunks(self, topic: str, sha256: str) -> Iterator[bytes]:
        number, digest = self.topic_number(topic), digest_of(sha256)
        rows = self._fetch(SQL["content"], (number, digest)) if number is not None and digest is not None else []
        if not rows:
            return iter(())
        size, _, inline = rows[0]
        pieces = self._files.pieces(topic, sha256) if inline is None else iter((inline,))
        return checked_pieces(pieces, f"content {sha256} of topic {topic}", size, sha256)

    def _body(self, topic: str, number: int, digest: bytes) -> Content | str | None:
        """A body with the right hash; or "missing" or "damaged"; or None if there is no row."""
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
