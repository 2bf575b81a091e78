"""Incoming messages: checked, then turned into a task, the parts that workers read, and the stored original."""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET

from redkey.a2a.errors import invalid, refused
from redkey.a2a.requests import Configuration, Part, SendMessage
from redkey.services.use_cases.a2a_tasks import Sent
from redkey.shapes.tasks import NewTask
from redkey.wire.a2a import CONTEXT, LEDGER

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+*-]+(\s*;.*)?")
# Parameters in other spellings are left out of what workers read; the message itself is kept as it was sent.
_KEPT_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:; ?[A-Za-z0-9_-]+=[A-Za-z0-9._\"-]+)*")
_OWN_CONTEXT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,35}")
_ANY_CONTEXT = re.compile(r"(?=.{3,40}$)[a-z][a-z0-9_-]{0,15}:[A-Za-z0-9][A-Za-z0-9._-]*")
_TASK_ID = re.compile(r"task_[0-7][0-9A-HJKMNP-TV-Z]{25}")
_TITLE = 120
_TEXT_LIMIT = 65536
# The metadata key by which a message or a request names the skill it wants.
SKILL = "skill"


def read_message(request: SendMessage) -> Sent:
    """Check a message and extract its text, files and parts; A2aError if a part is not supported."""
    message = request.message
    if message.role != "ROLE_USER":
        raise invalid("A client sends messages with the role ROLE_USER.", "message.role", "not ROLE_USER")
    texts: list[str] = []
    files: list[bytes] = []
    parts: list[dict[str, Any]] = []
    for index, part in enumerate(message.parts):
        _check_part(part, f"message.parts[{index}]")
        if part.text is not None:
            texts.append(part.text)
        parts.append(_for_workers(part, files, f"message.parts[{index}]"))
    text = "\n\n".join(texts)
    if len(text) > _TEXT_LIMIT:
        raise invalid(
            "The message has too much text.",
            "message.parts",
            f"at most {_TEXT_LIMIT:,} characters of text; send more as a file",
        )
    kept = msgspec.to_builtins(message)
    for name in ("taskId", "contextId", "role"):
        kept.pop(name, None)
    return Sent(kept, text, tuple(files), tuple(parts))


def new_task(request: SendMessage, sent: Sent, roles: tuple[str, ...], context_id: str) -> NewTask:
    """Build the task that a message asks for: text becomes title and description, data and files the input."""
    first = next((line.strip() for line in sent.text.splitlines() if line.strip()), "")
    title = first if len(first) <= _TITLE else first[: _TITLE - 1].rstrip() + "…"
    references = request.message.reference_task_ids or ()
    for index, task_id in enumerate(references):
        if not _TASK_ID.fullmatch(task_id):
            raise invalid(
                "A referenced task does not exist.",
                f"message.referenceTaskIds[{index}]",
                "there is no such task in this workspace",
            )
    parent = _lineage(request, "parentTaskId")
    if parent and not _TASK_ID.fullmatch(parent):
        raise invalid("The parent task does not exist.", _place("parentTaskId"), "there is no such task")
    correlation = _lineage(request, "correlationId")
    kind, _, named = context_id.partition(":")
    return NewTask(
        title=title or "A2A message",
        description=sent.text if sent.text != title else "",
        required_roles=roles,
        input=_input(sent),
        context_id="" if kind == "workflow" else context_id,
        workflow_id=named if kind == "workflow" else None,
        reference_task_ids=tuple(references),
        parent_task_id=parent or None,
        correlation_id=ledger_context(correlation, "", _place("correlationId")) if correlation else "",
        completion_criteria=_criteria(request.configuration),
    )


def ledger_context(context_id: str | None, generated: str, place: str = "contextId") -> str:
    """Return the ledger's name of a context: a context of RedKey stays as it is, any other gets the prefix of A2A."""
    if not context_id:
        return CONTEXT + generated
    if _OWN_CONTEXT.fullmatch(context_id):
        return CONTEXT + context_id
    if _ANY_CONTEXT.fullmatch(context_id) and not context_id.startswith(CONTEXT):
        return context_id
    text = "1 to 36 letters, digits, dots, dashes and underscores, or a context of this workspace such as workflow:ID"
    raise refused("InvalidParamsError", f"This {place.rpartition('.')[2]} is not accepted.", (place, text))


def wanted_context(request: SendMessage) -> str:
    """Return the context that a new task's message names: its context id, else its correlation id."""
    return request.message.context_id or _lineage(request, "correlationId")


def _lineage(request: SendMessage, name: str) -> str:
    """Read `parentTaskId` or `correlationId` from the message's metadata for the ledger extension."""
    found = _said(request.message.metadata).get(name, "")
    if not isinstance(found, str):
        raise invalid("Parent and correlation of a message are strings.", _place(name), "not a string")
    return found


def wanted_extensions(metadata: dict[str, Any] | None, place: str) -> dict[str, Any] | None:
    """What a request wants to have on its record, under the extension of the ledger."""
    found = _said(metadata).get("extensions")
    if found is not None and not isinstance(found, dict):
        raise invalid("Extensions are an object.", f"{place}.{LEDGER}.extensions", "not an object")
    return found or None


def _said(metadata: dict[str, Any] | None) -> dict[str, Any]:
    said = (metadata or {}).get(LEDGER)
    return said if isinstance(said, dict) else {}


def _place(name: str) -> str:
    return f"message.metadata.{LEDGER}.{name}"


def wanted_skill(request: SendMessage) -> str:
    """Return the skill named in the metadata of the message, else of the request."""
    for metadata in (request.message.metadata, request.metadata):
        skill = (metadata or {}).get(SKILL)
        if isinstance(skill, str) and skill:
            return skill
    return ""


def _check_part(part: Part, where: str) -> None:
    contents = [name for name in ("text", "raw", "url") if getattr(part, name) is not None]
    contents += ["data"] if part.data is not UNSET else []
    if not contents:
        problem = (where, "none of text, raw, url and data")
        raise refused("ContentTypeNotSupportedError", "A part has content of a kind that is not supported.", problem)
    if len(contents) > 1:
        raise invalid("A part has more than one content.", where, " and ".join(contents))
    if part.media_type and not _MEDIA_TYPE.fullmatch(part.media_type):
        problem = (f"{where}.mediaType", "not a media type")
        raise refused("ContentTypeNotSupportedError", "A part has a media type that cannot be read.", problem)
    if part.url is not None and not re.fullmatch(r"https?://[!-~]{1,2040}", part.url):
        problem = (f"{where}.url", "not an http or https URL")
        raise refused(
            "ContentTypeNotSupportedError", "A file is named by an http or https URL, or comes as raw bytes.", problem
        )


def _for_workers(part: Part, files: list[bytes], where: str) -> dict[str, Any]:
    """Convert a part for workers. Bytes are appended to `files` and referenced by their hash."""
    found: dict[str, Any] = {}
    if part.media_type and _KEPT_MEDIA_TYPE.fullmatch(part.media_type):
        found["media_type"] = part.media_type
    if part.filename:
        found["name"] = part.filename
    if part.text is not None:
        return {"kind": "text", "text": part.text, **found}
    if part.url is not None:
        return {"kind": "file_ref", "uri": part.url, **found}
    if part.raw is not None:
        padded = part.raw.replace("-", "+").replace("_", "/")
        try:
            data = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise invalid("The bytes of a part are not base64.", f"{where}.raw", "not base64") from None
        files.append(data)
        digest = sha256(data).hexdigest()
        return {"kind": "file_ref", "uri": f"/content/{digest}", "sha256": digest, **found}
    return {"kind": "data", "data": part.data, **found}


def _input(sent: Sent) -> Any:
    """Return the task's input: the data itself if it is the only part beside text, else all parts but the text."""
    rest = [part for part in sent.parts if part["kind"] != "text"]
    if not rest:
        return None
    if len(rest) == 1 and rest[0]["kind"] == "data":
        return rest[0]["data"]
    return {"parts": rest}


def _criteria(configuration: Configuration | None) -> tuple[str, ...]:
    modes = (configuration.accepted_output_modes if configuration is not None else None) or ()
    for index, mode in enumerate(modes):
        if not _MEDIA_TYPE.fullmatch(mode):
            problem = (f"configuration.acceptedOutputModes[{index}]", "not a media type")
            raise refused("ContentTypeNotSupportedError", "An accepted output mode cannot be read.", problem)
    return (f"Results have one of these media types: {', '.join(modes)}."[:1000],) if modes else ()
