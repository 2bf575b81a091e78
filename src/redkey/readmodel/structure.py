"""The structure that folding a record needs: the pinned document that its wire names."""

from __future__ import annotations

from typing import Any

from redkey.errors import LedgerError
from redkey.ledger.ports import Content, Reader
from redkey.wire.decode import decode
from redkey.wire.events import AnyPayload, CreditsPriced, DefinitionPublished, TaskCreated, WorkflowStarted


def structure_ref(payload: AnyPayload) -> str | None:
    """Return the hash of the structure that a wire names; None if it names none."""
    if type(payload) is TaskCreated:
        return payload.structure_ref.sha256 if payload.structure_ref is not None else None
    if type(payload) is WorkflowStarted or type(payload) is DefinitionPublished:
        return payload.structure_ref.sha256
    return payload.prices_ref.sha256 if type(payload) is CreditsPriced else None


def structure_of(reader: Reader, topic: str, payload: AnyPayload) -> dict[str, Any] | None:
    """Read the structure that folding a wire needs; raise if it is missing, since a replay cannot go on without it."""
    sha256 = structure_ref(payload)
    if sha256 is None:
        return None
    return pinned(reader, topic, sha256)


def pinned(reader: Reader, topic: str, sha256: str) -> dict[str, Any]:
    """Read the structure with this hash."""
    content = reader.content(topic, sha256)
    if content is None:
        raise LedgerError(f"the structure {sha256} is missing", code="structure_missing")
    return read(content)


def read(content: Content) -> dict[str, Any]:
    """Decode the structure in pinned content."""
    value: dict[str, Any] = decode(content.data, size_limit=len(content.data))
    return value
