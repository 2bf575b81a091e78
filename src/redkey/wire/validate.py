"""Is this a valid Agent Wire 1.1 message? Schema first, then the rules that no schema can hold.

`validate` answers for a decoded value and `read` for bytes. Both give every finding at once, each with a
code, a JSON pointer and a sentence. What depends on the state of a stream is the reducers' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from typing import Any

import orjson

from redkey.errors import Finding, JsonRefused, WireRefused
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import SCHEMAS, VERSION, catalogue
from redkey.wire.decode import decode
from redkey.wire.ids import SUBJECT_FIELD, Stream, parse_stream
from redkey.wire.schema import Checker, compile_own, compile_schema

MESSAGE_LIMIT = 1024
KNOWN_VERSIONS = ("1.0", "1.1")
# roles, capabilities, waits_for, outputs, references and parent of one task.created, together.
ENTRIES_LIMIT = 4
# Failures that no holder reports.
SYSTEM_FAILURES = frozenset({"deadline", "lease_losses", "dependency_failed"})


def validate(value: Any) -> list[Finding]:
    """Everything wrong with a decoded wire; an empty list when it is valid."""
    if _fits_schema(value):
        return _semantic(value)
    event = catalogue().get(value["type"]) if _has_type(value) else None
    if event is None or value.get("wire") != VERSION:
        return _unknown(value)
    return _refuse(value, compile_schema(event.schema))


def read(data: bytes) -> dict[str, Any]:
    """The wire in `data`, without fields that are null; JsonRefused or WireRefused when there is none."""
    wire = _read_compact(data)
    if wire is not None:
        return wire
    value = decode(data)
    findings = validate(value)
    if findings:
        raise WireRefused(findings)
    return drop_nulls(value)


def _read_compact(data: bytes) -> dict[str, Any] | None:
    """The common case, in as few steps as it can be told apart: bytes as a compact writer makes them.

    What the schema lets through has no number beyond its bounds, no unsafe string and no depth, so of all that
    `decode` refuses only duplicate keys are left to look for, and whole numbers written as fractions.
    """
    if len(data) > MESSAGE_LIMIT:
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not _fits_schema(value) or orjson.dumps(value) != data or _has_whole_float(value) or _semantic(value):
        return None
    wire: dict[str, Any] = value
    return wire


@cache
def _rules() -> tuple[Callable[[Any], bool], Mapping[str, Callable[[Any], bool]]]:
    """Whether a value fits the envelope, and whether it fits what each type adds to it."""
    own = {name: compile_own(event.schema).is_valid for name, event in catalogue().items()}
    return compile_schema(f"{SCHEMAS}/envelope.schema.json").is_valid, own


def _fits_schema(value: Any) -> bool:
    if not _has_type(value):
        return False
    envelope, types = _rules()
    own = types.get(value["type"])
    return own is not None and envelope(value) and own(value)


def _has_type(value: Any) -> bool:
    return type(value) is dict and type(value.get("type")) is str


def _has_whole_float(part: dict[str, Any]) -> bool:
    """Whether a valid wire, or a part of one, writes an integer as in 1.0; its lists hold no numbers."""
    for item in part.values():
        kind = type(item)
        if kind is str:
            continue
        if (kind is float and item.is_integer()) or (kind is dict and _has_whole_float(item)):
            return True
    return False


def too_large(message: bytes) -> list[Finding]:
    """The finding when canonical bytes exceed what the ledger takes. No valid wire does: its schema is so bounded."""
    if len(message) <= MESSAGE_LIMIT:
        return []
    text = f"the wire is {len(message):,} canonical bytes; the ledger takes {MESSAGE_LIMIT:,}"
    return [Finding("wire_too_large", "", text)]


def drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """The wire without fields that are null, in the envelope, its stream and its payload."""
    cleaned = {key: item for key, item in value.items() if item is not None}
    for part in ("stream", "payload"):
        if isinstance(cleaned.get(part), dict):
            cleaned[part] = {key: item for key, item in cleaned[part].items() if item is not None}
    return cleaned


def _unknown(value: Any) -> list[Finding]:
    if not isinstance(value, dict):
        return [Finding("schema_type", "", f"a wire is a JSON object, not {_kind(value)}")]
    version = value.get("wire")
    if version != VERSION:
        known = ", ".join(KNOWN_VERSIONS)
        lift = "; lift it to 1.1 first" if version in KNOWN_VERSIONS else ""
        text = f"wire version {repr(version)[:40]} is not 1.1; known: {known}{lift}"
        return [Finding("unknown_version", "/wire", text)]
    if isinstance(value.get("type"), str):
        return [Finding("unknown_type", "/type", f"{value['type'][:40]!r} is not an event type of Agent Wire 1.1")]
    return compile_schema(f"{SCHEMAS}/envelope.schema.json").findings(value)


def _refuse(value: dict[str, Any], checker: Checker) -> list[Finding]:
    """What is wrong by schema. A reader takes null for absent, so a wire may turn out to be valid after all."""
    cleaned = drop_nulls(value)
    found = checker.findings(cleaned)
    if cleaned != value:
        # A field that nobody knows stays unknown when it is null.
        unknown = [new for new in checker.findings(value) if new.code == "schema_additionalProperties"]
        found += [new for new in unknown if new not in found]
    if not found:
        return _semantic(cleaned)
    with suppress(JsonRefused):  # A value that never was JSON has findings, and no size.
        found += too_large(canonical(cleaned))
    return found


def _semantic(wire: dict[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    payload, stream = wire["payload"], wire["stream"]
    place = parse_stream(stream["stream_id"])
    field = SUBJECT_FIELD.get(place.kind)
    if field in payload and payload[field] != place.subject:
        found.append(_mismatch(f"/payload/{field}", place.subject))
    if place.attempt and payload.get("attempt", place.attempt) != place.attempt:
        found.append(_mismatch("/payload/attempt", str(place.attempt)))
    if stream.get("causation_id") == wire["wire_id"]:
        found.append(Finding("own_cause", "/stream/causation_id", "a wire cannot be its own cause"))
    # Of the days that the schema lets through, only the last of a month and the year 0 may not exist.
    if wire["ts"][8:10] > "28" or wire["ts"].startswith("0000"):
        found += _check_time("/ts", wire["ts"])
    rule = _RULES.get(wire["type"])
    if rule is not None:
        found += rule(wire, place)
    return found


def _mismatch(where: str, expected: str) -> Finding:
    return Finding("stream_mismatch", where, f"the stream id says {expected}; the payload must say the same or nothing")


def _check_time(where: str, text: str) -> list[Finding]:
    # A schema knows no calendar.
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return [Finding("no_such_time", where, f"there is no such time as {text}")]
    return []


def _check_lease(wire: dict[str, Any], place: Stream) -> list[Finding]:
    return _check_time("/payload/lease_expires_at", wire["payload"].get("lease_expires_at", wire["ts"]))


def _check_created(wire: dict[str, Any], place: Stream) -> list[Finding]:
    payload, stream = wire["payload"], wire["stream"]
    found = _own_dependencies("/payload/waits_for", payload.get("waits_for", ()), place)
    if stream.get("parent_task_id") == place.subject:
        found.append(Finding("own_dependency", "/stream/parent_task_id", "a task cannot be its own parent"))
    entries = sum(len(payload.get(name, ())) for name in ("roles", "capabilities", "waits_for", "outputs"))
    entries += len(stream.get("reference_task_ids", ())) + ("parent_task_id" in stream)
    if entries > ENTRIES_LIMIT:
        text = f"{entries} roles, capabilities, dependencies, outputs, references and parent; a wire has room for"
        text += f" {ENTRIES_LIMIT}: name what the task asks for in a structure_ref"
        found.append(Finding("entries_too_many", "/payload", text))
    expected = place.attempt - 1 or None
    if payload.get("retry_of") != expected:
        text = f"attempt {place.attempt} retries attempt {expected}" if expected else "a first attempt retries nothing"
        found.append(Finding("retry_of_mismatch", "/payload/retry_of", text))
    return found


def _check_blocked(wire: dict[str, Any], place: Stream) -> list[Finding]:
    return _own_dependencies("/payload/depends_on", wire["payload"].get("depends_on", ()), place)


def _own_dependencies(where: str, task_ids: list[str] | tuple[str, ...], place: Stream) -> list[Finding]:
    if place.subject not in task_ids:
        return []
    here = f"{where}/{task_ids.index(place.subject)}"
    return [Finding("own_dependency", here, "a task cannot wait for itself")]


def _check_failed(wire: dict[str, Any], place: Stream) -> list[Finding]:
    if wire["payload"]["kind"] in SYSTEM_FAILURES or "claim_id" in wire["payload"]:
        return []
    return [Finding("claim_id_missing", "/payload/claim_id", "a failure that a holder reports names its claim")]


def _check_missed(wire: dict[str, Any], place: Stream) -> list[Finding]:
    if wire["payload"]["winning_claim_id"] != wire["payload"]["claim_id"]:
        return []
    return [Finding("own_winner", "/payload/winning_claim_id", "a claim cannot be missed because of itself")]


def _check_gate(wire: dict[str, Any], place: Stream) -> list[Finding]:
    if place.kind == "workflow" or "workflow_id" not in wire["payload"]:
        return []
    text = "a gate of a workflow stands on the workflow's stream, not on a queue's"
    return [Finding("stream_mismatch", "/payload/workflow_id", text)]


def _check_mail(wire: dict[str, Any], place: Stream) -> list[Finding]:
    stream_id, to = wire["stream"]["stream_id"], wire["payload"]["to"]
    if stream_id == to or (place.kind == "workspace" and not to.startswith("agent:")):
        return []
    text = "mail to an agent stands on that agent's stream, other mail on the workspace's"
    return [Finding("stream_mismatch", "/payload/to", text)]


_RULES: Mapping[str, Callable[[dict[str, Any], Stream], list[Finding]]] = {
    "task.created": _check_created,
    "task.claimed": _check_lease,
    "task.lease_extended": _check_lease,
    "task.claim_missed": _check_missed,
    "task.blocked": _check_blocked,
    "task.failed": _check_failed,
    "gate.opened": _check_gate,
    "inbox.sent": _check_mail,
}


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
