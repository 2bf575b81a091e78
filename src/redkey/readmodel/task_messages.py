"""The messages on the stream of a task, with their parts."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import iso_time
from redkey.readmodel.view import read_document
from redkey.shapes.tasks import Part, TaskMessage
from redkey.wire.decode import decode
from redkey.wire.ids import event_id

_PAGE = 500
_LOOKED_AT = 5000


def task_messages(
    reader: Reader, topic: str, task_id: str, after: int, limit: int
) -> tuple[list[TaskMessage], int | None]:
    """List the messages about a task after a sequence, in order; and where the next page begins."""
    found: list[TaskMessage] = []
    looked = 0
    while looked < _LOOKED_AT:
        records = reader.events(topic, task_id, after, _PAGE)
        for record in records:
            looked, after = looked + 1, record.sequence
            wire = decode(record.wire)
            if wire["type"] == "message.added":
                found.append(_message(reader, topic, wire, record.sequence, record.timestamp))
                if len(found) == limit:
                    return found, after
        if len(records) < _PAGE:
            return found, None
    return found, after


# How the first version spelled the fields of a part.
_OLD_NAMES = {"mediaType": "media_type", "artifactId": "artifact_id"}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part as its schema spells it, also where it was kept before that."""
    return {_OLD_NAMES.get(name, name): value for name, value in part.items()}


def _message(reader: Reader, topic: str, wire: dict[str, Any], sequence: int, timestamp: int) -> TaskMessage:
    payload = wire["payload"]
    document = read_document(reader, topic, payload["parts_ref"]["sha256"])
    said = document or {}
    return TaskMessage(
        message_id=payload["message_id"],
        role=payload["role"],
        sender=wire["sender"],
        parts=msgspec.convert([_part(part) for part in said.get("parts", ())], tuple[Part, ...]),
        metadata=said.get("metadata") or None,
        at=iso_time(timestamp),
        event_id=event_id(wire["wire_id"]),
        sequence=sequence,
        erased=document is None,
    )
