"""Is this a valid Agent Wire 1.1 message? Schema first, then the rules that no schema can hold (`rules`).

`validate` answers for a decoded value and `read` for bytes. Both give every finding at once, each with a
code, a JSON pointer and a sentence. What depends on the state of a stream is the reducers' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import orjson

from redkey.errors import Finding, JsonRefused, WireRefused
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import SCHEMAS, VERSION, catalogue
from redkey.wire.decode import decode
from redkey.wire.rules import Rule, rules_of
from redkey.wire.schema import compile_own, compile_schema

MESSAGE_LIMIT = 1024
KNOWN_VERSIONS = ("1.0", "1.1")


class _Kind(NamedTuple):
    """All that is asked of wires of one type, looked up once for each wire."""

    fits_envelope: Callable[[Any], bool]
    fits_type: Callable[[Any], bool]
    broken_rules: Rule
    schema: str


@cache
def _kinds() -> Mapping[str, _Kind]:
    envelope = compile_schema(f"{SCHEMAS}/envelope.schema.json")
    return {
        name: _Kind(envelope.is_valid, compile_own(event.schema).is_valid, rules_of(event), event.schema)
        for name, event in catalogue().items()
    }


def validate(value: Any) -> list[Finding]:
    """Everything wrong with a decoded wire; an empty list when it is valid."""
    try:
        kind = _kinds()[value["type"]]
    except (KeyError, TypeError):
        return _unknown(value)
    if kind.fits_envelope(value) and kind.fits_type(value):
        return kind.broken_rules(value)
    return _refuse(value, kind)


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
        wire: dict[str, Any] = orjson.loads(data)
        kind = _kinds()[wire["type"]]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not (kind.fits_envelope(wire) and kind.fits_type(wire)) or orjson.dumps(wire) != data:
        return None
    return None if _has_whole_float(wire) or kind.broken_rules(wire) else wire


def _has_whole_float(wire: dict[str, Any]) -> bool:
    """Whether a valid wire writes an integer as in 1.0; numbers stand no deeper than in a part of the payload."""
    if type(wire["stream"]["stream_seq"]) is float:
        return True
    for item in (wire["payload"] | wire["extensions"] if "extensions" in wire else wire["payload"]).values():
        kind = type(item)
        if kind is float:
            if item.is_integer():
                return True
        elif kind is dict:
            for part in item.values():
                if type(part) is float and part.is_integer():
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


def _refuse(value: dict[str, Any], kind: _Kind) -> list[Finding]:
    """What is wrong by schema. A reader takes null for absent, so a wire may turn out to be valid after all."""
    if value.get("wire") != VERSION:
        return _unknown(value)
    cleaned, checker = drop_nulls(value), compile_schema(kind.schema)
    found = checker.findings(cleaned)
    if cleaned != value:
        # A field that nobody knows stays unknown when it is null.
        unknown = [new for new in checker.findings(value) if new.code == "schema_additionalProperties"]
        found += [new for new in unknown if new not in found]
    if not found:
        return kind.broken_rules(cleaned)
    with suppress(JsonRefused):  # A value that never was JSON has findings, and no size.
        found += too_large(canonical(cleaned))
    return found


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
