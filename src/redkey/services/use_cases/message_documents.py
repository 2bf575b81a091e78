"""Messages about tasks as they are stored: documents that `message.schema.json` validates, from every interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redkey.commands.decision import invalid
from redkey.wire.schema import compile_schema

_SCHEMA = "schemas/agent-wire/v1.1/message.schema.json"


def message_document(
    message_id: str, role: str, parts: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a message in the form of its schema; Refused with every place that does not match."""
    document: dict[str, Any] = {"message_id": message_id, "role": role, "parts": list(parts)}
    if metadata:
        document["metadata"] = metadata
    findings = compile_schema(_SCHEMA).findings(document)
    if findings:
        raise invalid(findings)
    return document
