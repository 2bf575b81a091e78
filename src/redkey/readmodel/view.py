"""What views read: documents beside the ledger, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from redkey.ledger.ports import Content, ContentFacts, Row
from redkey.ledger.record import Record, iso_time
from redkey.wire.load import load

Document = Mapping[str, Any]


class Shelf(Protocol):
    """What views read from: the store, or a unit with what it brings."""

    def row(self, topic: str, kind: str, key: str) -> Row | None: ...

    def content(self, topic: str, sha256: str) -> Content | None: ...

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None: ...

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]: ...


def read_document(reader: Shelf, topic: str, sha256: str) -> Document | None:
    """A document of the server's making, without its nonce; None when it was erased."""
    found = reader.content(topic, sha256) if sha256 else None
    return document_of(found.data) if found is not None else None


def document_of(data: bytes) -> Document:
    """The bytes of such a document, read: they are canonical JSON, and have the hash that names them."""
    value: dict[str, Any] = load(data)
    value.pop("nonce", None)
    return value


def moment(timestamp: int) -> str | None:
    """A time of the ledger as people read it; None when it has not come."""
    return iso_time(timestamp) if timestamp else None
