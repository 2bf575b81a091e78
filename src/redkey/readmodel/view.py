"""What views read: documents of the content store, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from redkey.ledger.ports import Content, ContentFacts, Row
from redkey.ledger.record import Record, iso_time
from redkey.wire.load import load

Document = Mapping[str, Any]


class Shelf(Protocol):
    """What views read from: the store, or a unit with the content it is about to store."""

    def row(self, topic: str, kind: str, key: str) -> Row | None: ...

    def content(self, topic: str, sha256: str) -> Content | None: ...

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None: ...

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]: ...


def read_document(reader: Shelf, topic: str, sha256: str) -> Document | None:
    """Read a document that the server wrote, without its nonce; None if it was erased."""
    found = reader.content(topic, sha256) if sha256 else None
    return document_of(found.data) if found is not None else None


def document_of(data: bytes) -> Document:
    """Decode the bytes of a document: canonical JSON, whose hash is its name."""
    value: dict[str, Any] = load(data)
    value.pop("nonce", None)
    return value


def moment(timestamp: int) -> str | None:
    """Return a ledger time as ISO 8601; None for 0."""
    return iso_time(timestamp) if timestamp else None
