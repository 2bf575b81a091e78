"""The structure that a record's fold needs: the pinned document its wire names, read from beside the ledger."""

from __future__ import annotations

from typing import Any

from redkey.errors import LedgerError
from redkey.ledger.ports import Content, Reader
from redkey.wire.decode import decode


def structure_ref(wire: dict[str, Any]) -> str | None:
    """The hash of the structure that a wire names; None when it names none."""
    payload = wire["payload"]
    sha256: str | None = None
    if "structure_ref" in payload:
        sha256 = payload["structure_ref"]["sha256"]
    elif "prices_ref" in payload:
        sha256 = payload["prices_ref"]["sha256"]
    return sha256


def structure_of(reader: Reader, topic: str, wire: dict[str, Any]) -> dict[str, Any] | None:
    """What a wire's fold is handed beside it; replay cannot go on without it."""
    sha256 = structure_ref(wire)
    if sha256 is None:
        return None
    return pinned(reader, topic, sha256)


def pinned(reader: Reader, topic: str, sha256: str) -> dict[str, Any]:
    """The structure of that hash."""
    content = reader.content(topic, sha256)
    if content is None:
        raise LedgerError(f"the structure {sha256} is missing", code="structure_missing")
    return read(content)


def read(content: Content) -> dict[str, Any]:
    """The structure in pinned content."""
    value: dict[str, Any] = decode(content.data, size_limit=len(content.data))
    return value
