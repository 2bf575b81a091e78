"""Everything that is read from PostgreSQL, for the store and for the unit alike.

One class turns the ports' questions into the statements of `statements.sql`. Who runs them is left to `_fetch`: the
store on any connection, at the last commit; the unit on its own, with what it has added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256 as hash_of
from typing import Any, ClassVar
from uuid import UUID

from redkey.errors import StoreFailed
from redkey.ledger.ports import Content
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.stores.postgres.schema import SQL
from redkey.stores.sql_queries import SqlQueries, checked_pieces, digest_of

_LAST = 2**63 - 1


class Queries(SqlQueries):
    """What may be read of a database."""

    _sql: ClassVar = SQL

    def head(self, topic: str) -> Head:
        number = self.topic_number(topic)
        for sequence, timestamp, running_hash in [] if number is None else self._fetch(SQL["head"], (number,)):
            return Head(sequence, timestamp, running_hash) if sequence else EMPTY_HEAD
        return EMPTY_HEAD

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        return records(topic, self._fetch(SQL["records_after"], (number, max(after, 0), max(limit, 0))))

    def read_back(
        self, topic: str, before: int, limit: int = 1000, *, after: int = 0, containing: bytes = b""
    ) -> Sequence[Record]:
        number = self.topic_number(topic)
        if number is None or before <= 0:
            return ()
        between = number, max(after, 0), min(before, _LAST)
        if containing:
            return records(topic, self._fetch(SQL["records_containing"], (*between, containing, max(limit, 0))))
        return records(topic, self._fetch(SQL["records_before"], (*between, max(limit, 0))))

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        after = max(after, 0) or (_LAST if newest_first else 0)
        return records(
            topic,
            self._fetch(
                SQL["events_before" if newest_first else "events_after"],
                {"topic": number, "subject": subject, "after": min(after, _LAST), "limit": max(limit, 0)},
            ),
        )

    def content(self, topic: str, sha256: str) -> Content | None:
        found = self._content(topic, sha256)
        if found is None:
            return None
        size, pinned, data, upload = found
        if upload is not None:
            data = b"".join(self._pieces(upload))
        if data is None or len(data) != size or hash_of(data).hexdigest() != sha256:
            if self._content(topic, sha256) is None:
                # It was erased between the row and its pieces.
                return None
            raise StoreFailed(f"content {sha256} of topic {topic} is damaged", code="content_damaged")
        return Content(sha256, data, pinned)

    def content_chunks(self, topic: str, sha256: str) -> Iterator[bytes]:
        found = self._content(topic, sha256)
        if found is None:
            return iter(())
        size, _, data, upload = found
        name = f"content {sha256} of topic {topic}"
        if upload is None:
            return checked_pieces(iter((data or b"",)), name, size, sha256)
        # The first piece is read now: who has begun to read a small body may go on when it is erased.
        return checked_pieces(self._pieces(upload, self._piece(upload, 0)), name, size, sha256)

    def _content(self, topic: str, sha256: str) -> tuple[int, bool, bytes | None, UUID | None] | None:
        number, digest = self.topic_number(topic), digest_of(sha256)
        if number is None or digest is None:
            return None
        found = self._fetch(SQL["content"], (number, digest))
        return found[0] if found else None

    def _piece(self, upload: UUID, number: int) -> bytes:
        found = self._fetch(SQL["piece"], (upload, number))
        return found[0][0] if found else b""

    def _pieces(self, upload: UUID, first: bytes | None = None) -> Iterator[bytes]:
        number, piece = 0, self._piece(upload, 0) if first is None else first
        while piece:
            yield piece
            number += 1
            piece = self._piece(upload, number)


def records(topic: str, rows: Sequence[Any]) -> list[Record]:
    """Records from their rows."""
    return [Record(topic, *row) for row in rows]
