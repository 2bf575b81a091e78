"""What was said about a task: the messages on its stream, with their parts (seed 001)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from redkey.ledger.ports import Reader
from redkey.ledger.record import iso_time
from redkey.readmodel.view import View, read_document
from redkey.wire.decode import decode
from redkey.wire.ids import event_id

_PAGE = 500
_LOOKED_AT = 5000

MediaType = Annotated[str, Meta(pattern="^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$", max_length=127)]


class _Part(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
):
    """One piece of a message."""

    media_type: MediaType | None = None
    name: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class TextPart(_Part, frozen=True, kw_only=True, tag="text"):
    """Words."""

    text: Annotated[str, Meta(max_length=65536)]


class ArtifactPart(_Part, frozen=True, kw_only=True, tag="artifact_ref"):
    """An artifact, by its id."""

    artifact_id: Annotated[str, Meta(pattern="^art_[0-9A-Za-z]{1,26}$", max_length=30)]


class DataPart(_Part, frozen=True, kw_only=True, tag="data"):
    """Small JSON."""

    data: Any


class FilePart(_Part, frozen=True, kw_only=True, tag="file_ref"):
    """A file elsewhere, and the hash of its bytes."""

    uri: Annotated[str, Meta(pattern="^[!-~]+$", min_length=1, max_length=2048)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", min_length=64, max_length=64)]


PartView = TextPart | ArtifactPart | DataPart | FilePart


class TaskMessage(View, frozen=True, kw_only=True):
    """One message about a task."""

    message_id: str
    role: str
    sender: str
    parts: tuple[PartView, ...]
    metadata: dict[str, str | int | float | bool | None] | None = None
    at: str
    event_id: str
    sequence: int
    erased: bool = False


def task_messages(
    reader: Reader, topic: str, task_id: str, after: int, limit: int
) -> tuple[list[TaskMessage], int | None]:
    """Messages about a task after a sequence, in order; and where the next page begins."""
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


def _message(reader: Reader, topic: str, wire: dict[str, Any], sequence: int, timestamp: int) -> TaskMessage:
    payload = wire["payload"]
    document = read_document(reader, topic, payload["parts_ref"]["sha256"])
    said = document or {}
    return TaskMessage(
        message_id=payload["message_id"],
        role=payload["role"],
        sender=wire["sender"],
        parts=msgspec.convert(said.get("parts", ()), tuple[PartView, ...]),
        metadata=said.get("metadata") or None,
        at=iso_time(timestamp),
        event_id=event_id(wire["wire_id"]),
        sequence=sequence,
        erased=document is None,
    )
