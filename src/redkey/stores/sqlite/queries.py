"""Everything that is read from redkey.db, for the store and for the unit alike.

One class turns the ports' questions into the statements of `statements.sql`. Who runs them is left to `_fetch`:
the store on a connection for reading, at the last commit; the unit on its own, with what it has added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256 as hash_of
from typing import Any

import orjson

from redkey.errors import StoreFailed
from redkey.ledger.ports import Content, ContentFacts, Row
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.tail import open_tree
from redkey.ledger.tiles import TileTree
from redkey.stores.sqlite.content_files import ContentFiles
from redkey.stores.sqlite.schema import SQL

# A position is a topic's number and a sequence in one integer; both are far from their ends.
SEQUENCE_BITS = 40
SEQUENCE_LIMIT = (1 << SEQUENCE_BITS) - 1
# Subjects are indexed by complete blocks of records; what is after them is looked through.
BLOCK = 256
# What a record is called stands among its subjects under this mark, so that nothing it speaks of can be taken for it.
WIRE_MARK = "#"

Parameters = Sequence[Any] | Mapping[str, Any]


class Queries(ABC):
    """What may be read of a data directory."""

    _files: ContentFiles

    @abstractmethod
    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        """All rows that a statement of `statements.sql` gives."""

    @abstractmethod
    def topic_number(self, topic: str) -> int | None:
        """The number of a topic; None when it is not there."""

    def topics(self) -> Sequence[str]:
        return [topic for (topic,) in self._fetch(SQL["topics"], ())]

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

    def find(self, topic: str, wire_id: str) -> Record | None:
        found = self.events(topic, WIRE_MARK + wire_id, limit=1)
        return found[0] if found else None

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

    def row(self, topic: str, kind: str, key: str) -> Row | None:
        number = self.topic_number(topic)
        found = [] if number is None else self._fetch(SQL["row"], (number, kind, key))
        return Row(*found[0]) if found else None

    def rows(
        self, topic: str, kind: str, listed: str | None = None, after: tuple[int, str] = (0, ""), limit: int = 500
    ) -> Sequence[Row]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        if listed is None:
            found = self._fetch(SQL["rows"], (number, kind, after[1], max(limit, 0)))
        else:
            found = self._fetch(SQL["rows_listed"], (number, kind, listed, *after, max(limit, 0)))
        return [Row(*one) for one in found]

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

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None:
        number, digest = self.topic_number(topic), digest_of(sha256)
        if number is None or digest is None:
            return None
        for size, pinned in self._fetch(SQL["content_facts"], (number, digest)):
            return ContentFacts(size, bool(pinned))
        return None

    def content_chunks(self, topic: str, sha256: str) -> Iterator[bytes]:
        number, digest = self.topic_number(topic), digest_of(sha256)
        found = self._fetch(SQL["content"], (number, digest)) if number is not None and digest is not None else []
        if not found:
            return iter(())
        size, _, inline = found[0]
        pieces = self._files.pieces(topic, sha256) if inline is None else iter((inline,))
        return _checked(pieces, f"content {sha256} of topic {topic}", size, sha256)

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

    def counters(self, topic: str, prefix: str = "") -> Sequence[tuple[str, int]]:
        number = self.topic_number(topic)
        if number is None:
            return ()
        return self._fetch(SQL["counters"], (number, prefix, prefix + "\U0010ffff"))

    def tile(self, topic: str, level: int, index: int) -> bytes | None:
        number = self.topic_number(topic)
        found = [] if number is None else self._fetch(SQL["tile"], (number, level, index))
        return found[0][0] if found else None

    def tree(self, topic: str) -> TileTree:
        return open_tree(self, topic)[0]

    def checkpoints(self, topic: str, limit: int = 1) -> Sequence[tuple[int, bytes]]:
        number = self.topic_number(topic)
        return () if number is None else self._fetch(SQL["checkpoints"], (number, max(limit, 0)))

    def setting(self, name: str) -> str | None:
        found = self._fetch(SQL["setting"], (name,))
        return found[0][0] if found else None

    def _records(self, topic: str, rows: Sequence[Any]) -> list[Record]:
        return [
            Record(topic, position & SEQUENCE_LIMIT, timestamp, payer, running_hash, wire)
            for position, timestamp, payer, running_hash, wire in rows
        ]


def _checked(pieces: Iterator[bytes] | None, name: str, size: int, sha256: str) -> Iterator[bytes]:
    """The pieces, the last one held back until all of them are known to be right."""
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
    """The 32 bytes that a hash in hex stands for; None when it is none."""
    try:
        digest = bytes.fromhex(sha256)
    except ValueError:
        return None
    return digest if len(digest) == 32 and digest.hex() == sha256 else None
