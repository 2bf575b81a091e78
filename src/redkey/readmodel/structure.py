"""The structure that a record's fold needs: the pinned document its wire names, read from beside the ledger."""

from __future__ import annotations

from typing import Any

from redkey.errors import LedgerError
from redkey.ledger.ports import Content, Reader
from redkey.wire.decode import decode
from redkey.wire.events import AnyPayload, CreditsPriced, DefinitionPublished, TaskCreated, WorkflowStarted


def structure_ref(payload: AnyPayload) -> str | None:
    """The hash of the structure that a wire names; None when it names none."""
    if type(payload) is TaskCreated:
        return payload.structure_ref.sha256 if payload.structure_ref is not None else None
    if type(payload) is WorkflowStarted or type(payload) is DefinitionPublished:
        return payload.structure_ref.sha256
    return payload.prices_ref.sha256 if type(payload) is CreditsPriced else None


def structure_of(reader: Reader, topic: str, payload: AnyPayload) -> dict[str, Any] | None:
    """What a wire's fold is handed beside it; replay cannot go on without it."""
    sha256 = structure_ref(payload)
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
