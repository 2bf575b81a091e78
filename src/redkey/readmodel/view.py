"""What every view is: a struct in camelCase whose fields without a value are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import iso_time
from redkey.wire.decode import decode

Document = Mapping[str, Any]


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """JSON as the API shows it."""


def read_document(reader: Reader, topic: str, sha256: str) -> Document | None:
    """A document of the server's making, without its nonce; None when it was erased."""
    found = reader.content(topic, sha256) if sha256 else None
    return document_of(found.data) if found is not None else None


def document_of(data: bytes) -> Document:
    """The bytes of such a document, read."""
    value: dict[str, Any] = decode(data, size_limit=len(data))
    value.pop("nonce", None)
    return value


def moment(timestamp: int) -> str | None:
    """A time of the ledger as people read it; None when it has not come."""
    return iso_time(timestamp) if timestamp else None
