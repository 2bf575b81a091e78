"""Is this a valid Agent Wire 1.1 message? Schema first, then the rules that no schema can hold.

`validate` answers for a decoded value and `read` for bytes. Both give every finding at once, each with a
code, a JSON pointer and a sentence. What depends on the state of a stream is the reducers' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from redkey.errors import Finding, WireRefused
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import SCHEMAS, VERSION, catalogue
from redkey.wire.decode import decode
from redkey.wire.ids import SUBJECT_FIELD, parse_stream
from redkey.wire.schema import Checker, compile_schema

MESSAGE_LIMIT = 1024
KNOWN_VERSIONS = ("1.0", "1.1")
# roles, capabilities, waits_for, outputs, references and parent of one task.created, together.
ENTRIES_LIMIT = 4
_ENTRY_LISTS = ("roles", "capabilities", "waits_for", "outputs")


@cache
def _checkers() -> Mapping[str, Checker]:
    return {name: compile_schema(event.schema) for name, event in catalogue().items()}


def validate(value: Any) -> list[Finding]:
    """Everything wrong with a decoded wire; an empty list when it is valid."""
    event = value.get("type") if type(value) is dict else None
    checker = _checkers().get(event) if type(event) is str else None
    if checker is None:
        return _unknown(value)
    if not checker.is_valid(value):
        return _without_nulls(value, checker)
    return _semantic(value)


def read(data: bytes) -> dict[str, Any]:
    """The wire in `data`, valid and at most 1,024 canonical bytes; JsonRefused or WireRefused otherwise."""
    value = decode(data)
    findings = validate(value)
    if not findings and len(data) > MESSAGE_LIMIT:
        findings = too_large(canonical(value))
    if findings:
        raise WireRefused(findings)
    wire: dict[str, Any] = value
    return wire


def too_large(message: bytes) -> list[Finding]:
    """The finding when canonical bytes exceed what the ledger takes."""
    if len(message) <= MESSAGE_LIMIT:
        return []
    text = f"the wire is {len(message):,} canonical bytes; the ledger takes {MESSAGE_LIMIT:,}"
    return [Finding("wire_too_large", "", text)]


def _unknown(value: Any) -> list[Finding]:
    if not isinstance(value, dict):
        return [Finding("schema_type", "", f"a wire is a JSON object, not {_kind(value)}")]
    version = value.get("wire")
    if version != VERSION:
        known = ", ".join(KNOWN_VERSIONS)
        lift = "; lift it to 1.1 first" if version in KNOWN_VERSIONS else ""
        shown = repr(version)[:40]
        return [Finding("unknown_version", "/wire", f"wire version {shown} is not 1.1; known: {known}{lift}")]
    if isinstance(value.get("type"), str):
        return [Finding("unknown_type", "/type", f"{value['type'][:40]!r} is not an event type of Agent Wire 1.1")]
    return compile_schema(f"{SCHEMAS}/envelope.schema.json").findings(value)


def _without_nulls(value: dict[str, Any], checker: Checker) -> list[Finding]:
    """Optional fields without a value should be absent; a reader takes null for absent."""
    cleaned = drop_nulls(value)
    if cleaned != value and checker.is_valid(cleaned):
        return _semantic(cleaned)
    if value.get("wire") != VERSION:
        return _unknown(value)
    return checker.findings(cleaned)


def drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """The wire without fields that are null, in the envelope, its stream and its payload."""
    cleaned = {key: item for key, item in value.items() if item is not None}
    for part in ("stream", "payload"):
        if isinstance(cleaned.get(part), dict):
            cleaned[part] = {key: item for key, item in cleaned[part].items() if item is not None}
    return cleaned


def _semantic(wire: dict[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    payload, stream = wire["payload"], wire["stream"]
    parts = parse_stream(stream["stream_id"])
    field = SUBJECT_FIELD.get(parts.kind)
    if field is not None and payload.get(field, parts.subject) != parts.subject and _repeats(wire["type"], parts.kind):
        found.append(_mismatch(f"/payload/{field}", parts.subject))
    if parts.attempt and payload.get("attempt", parts.attempt) != parts.attempt:
        found.append(_mismatch("/payload/attempt", str(parts.attempt)))
    if stream.get("causation_id") == wire["wire_id"]:
        found.append(Finding("own_cause", "/stream/causation_id", "a wire cannot be its own cause"))
    rule = _RULES.get(wire["type"])
    if rule is not None:
        found.extend(rule(wire, parts.attempt))
    return found


def _repeats(event: str, kind: str) -> bool:
    # A gate stands on its workflow's or queue's stream and an inbox message on its reader's; what such a
    # payload names is what it is about, not where it stands, unless it is the field of that very kind.
    return not (event.startswith("task.claim_") and kind != "agent")


def _mismatch(where: str, expected: str) -> Finding:
    return Finding("stream_mismatch", where, f"the stream id says {expected}; the payload must say the same or nothing")


def _task_created(wire: dict[str, Any], attempt: int) -> list[Finding]:
    payload, stream = wire["payload"], wire["stream"]
    found: list[Finding] = []
    entries = sum(len(payload.get(name, ())) for name in _ENTRY_LISTS)
    entries += len(stream.get("reference_task_ids", ())) + ("parent_task_id" in stream)
    if entries > ENTRIES_LIMIT and "structure_ref" not in payload:
        text = f"{entries} roles, capabilities, dependencies, outputs, references; above {ENTRIES_LIMIT}: structure_ref"
        found.append(Finding("entries_too_many", "/payload", text))
    expected = attempt - 1 if attempt > 1 else None
    if payload.get("retry_of") != expected:
        text = f"attempt {attempt} retries attempt {expected}" if expected else "a first attempt retries nothing"
        found.append(Finding("retry_of_mismatch", "/payload/retry_of", text))
    return found


def _task_failed(wire: dict[str, Any], attempt: int) -> list[Finding]:
    if wire["payload"]["kind"] in SYSTEM_FAILURES or "claim_id" in wire["payload"]:
        return []
    return [Finding("claim_id_missing", "/payload/claim_id", "a failure that a holder reports names its claim")]


def _inbox_sent(wire: dict[str, Any], attempt: int) -> list[Finding]:
    kind, subject = parse_stream(wire["stream"]["stream_id"]).kind, wire["payload"]["to"]
    if (kind == "agent") == subject.startswith("agent:"):
        return []
    return [
        Finding(
            "stream_mismatch",
            "/payload/to",
            "mail to an agent stands on that agent's stream, other mail on the workspace's",
        )
    ]


SYSTEM_FAILURES = frozenset({"deadline", "lease_losses", "dependency_failed"})
_RULES = {"task.created": _task_created, "task.failed": _task_failed, "inbox.sent": _inbox_sent}


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
