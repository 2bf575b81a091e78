"""The reads that are the same in every SQL store: rows, counters, tiles, checkpoints and settings.

An adapter provides its statements (`_sql`), runs them (`_fetch`), and implements the reads that depend on its layout:
records, events and content.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256 as hash_of
from typing import Any, ClassVar

from redkey.errors import StoreFailed
from redkey.ledger.ports import ContentFacts, Row
from redkey.ledger.record import Head, Record
from redkey.ledger.tail import open_tree
from redkey.ledger.tiles import TileTree

# Subjects are indexed in complete blocks of this many records; the records after the last block are scanned.
BLOCK = 256
# The wire id is stored among the subjects with this prefix, so no subject can collide with it.
WIRE_MARK = "#"

Parameters = Sequence[Any] | Mapping[str, Any]


class SqlQueries(ABC):
    """The reads of a store, except for records, events and content."""

    _sql: ClassVar[Mapping[str, str]]

    @abstractmethod
    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        """Return all rows of a statement."""

    @abstractmethod
    def topic_number(self, topic: str) -> int | None:
        """Return the number of a topic; None if it does not exist."""

    @abstractmethod
    def head(self, topic: str) -> Head: ...

    @abstractmethod
    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]: ...

    @abstractmethod
    def read_back(
        self, topic: str, before: int, limit: int = 1000, *, after: int = 0, containing: bytes = b""
    ) -> Sequence[Record]: ...

    @abstractmethod
    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]: ...

    def topics(self) -> Sequence[str]:
        return [topic for (topic,) in self._fetch(self._sql["topics"], ())]

    def find(self, topic: str, wire_id: str) -> Record | None:
        records = self.events(topic, WIRE_MARK + wire_id, limit=1)
        return records[0] if records else None

    def wire_ids(self, topic: str, prefix: str, limit: int = 10) -> Sequence[str]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        first = WIRE_MARK + prefix
        found = self._fetch(
            self._sql["wire_ids"],
            {"topic": number, "prefix": first, "beyond": first + "\U0010ffff", "limit": max(limit, 0)},
        )
        return [marked.removeprefix(WIRE_MARK) for (marked,) in found]

    def row(self, topic: str, kind: str, key: str) -> Row | None:
        number = self.topic_number(topic)
        fetched = [] if number is None else self._fetch(self._sql["row"], (number, kind, key))
        return Row(*fetched[0]) if fetched else None

    def rows(
        self, topic: str, kind: str, listed: str | None = None, after: tuple[int, str] = (0, ""), limit: int = 500
    ) -> Sequence[Row]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        if listed is None:
            fetched = self._fetch(self._sql["rows"], (number, kind, after[1], max(limit, 0)))
        else:
            fetched = self._fetch(self._sql["rows_listed"], (number, kind, listed, *after, max(limit, 0)))
        return [Row(*columns) for columns in fetched]

    def count_rows(self, topic: str, kind: str, listed: str) -> int:
        number = self.topic_number(topic)
        if number is None:
            return 0
        ((count,),) = self._fetch(self._sql["count_listed"], (number, kind, listed))
        return int(count)

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None:
        number, digest = self.topic_number(topic), digest_of(sha256)
        if number is None or digest is None:
            return None
        for size, pinned in self._fetch(self._sql["content_facts"], (number, digest)):
            return ContentFacts(size, bool(pinned))
        return None

    def counters(self, topic: str, prefix: str = "") -> Sequence[tuple[str, int]]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        return self._fetch(self._sql["counters"], (number, prefix, prefix + "\U0010ffff"))

    def tile(self, topic: str, level: int, index: int) -> bytes | None:
        number = self.topic_number(topic)
        fetched = [] if number is None else self._fetch(self._sql["tile"], (number, level, index))
        return fetched[0][0] if fetched else None

    def tree(self, topic: str) -> TileTree:
        return open_tree(self, topic)[0]  # type: ignore[arg-type]

    def checkpoints(self, topic: str, limit: int = 1) -> Sequence[tuple[int, bytes]]:
        number = self.topic_number(topic)
        return () if number is None else self._fetch(self._sql["checkpoints"], (number, max(limit, 0)))

    def setting(self, name: str) -> str | None:
        fetched = self._fetch(self._sql["setting"], (name,))
        return fetched[0][0] if fetched else None


def checked_pieces(pieces: Iterator[bytes] | None, name: str, size: int, sha256: str) -> Iterator[bytes]:
    """Yield the pieces of a body; yield the last one only if size and hash of the whole body are right."""
    if pieces is None:
        raise StoreFailed(f"{name} is missing", code="content_missing")
    digest, last = hash_of(), b""
    for piece in pieces:
        if last:
            yield last
        digest.update(piece)
        size -= len(piece)
        last = piece
    if size or digest.hexdigest() != sha256:
        raise StoreFailed(f"{name} is damaged", code="content_damaged")
    yield last


def digest_of(sha256: str) -> bytes | None:
    """Return the 32 bytes of a hash in lower-case hex; None if the text is not such a hash."""
    try:
        digest = bytes.fromhex(sha256)
    except ValueError:
        return None
    return digest if len(digest) == 32 and digest.hex() == sha256 else None
