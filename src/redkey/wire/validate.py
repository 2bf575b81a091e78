"""Validate Agent Wire 1.1 messages: the schema first, then the rules that no schema can express (`rules`).

`validate` checks a decoded value, `read` and `read_wire` check bytes; `encode` returns the canonical bytes of a wire
with its findings. All report every finding at once, each with a code, a JSON pointer and a sentence. Reducers check
what depends on the state of a stream.

Almost every wire is valid, and its canonical bytes match the grammar of its type (`grammar`): that is one pass over
bytes that are needed anyway. The schema validator checks any other wire; only it can refuse one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import orjson

from redkey.errors import Finding, JsonRefused, UpgradeNeeded, WireRefused
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import SCHEMAS, VERSION, catalogue
from redkey.wire.decode import decode
from redkey.wire.envelope import AnyWire, wire_from, wire_of
from redkey.wire.grammar import grammar_of
from redkey.wire.rules import Rule, rules_of
from redkey.wire.schema import compile_schema, uri_of

MESSAGE_LIMIT = 1024
KNOWN_VERSIONS = ("1.0", "1.1")
WIRE_TOO_LARGE = "wire_too_large"


_SORTED = orjson.OPT_SORT_KEYS


class _Kind(NamedTuple):
    """All rules for wires of one type, looked up once for each wire."""

    matches: Callable[[bytes], object]
    broken_rules: Rule
    schema: str


class _Kinds(dict[str, _Kind]):
    """The rules of each type, computed for its first wire; KeyError if there is no such type."""

    def __missing__(self, name: str) -> _Kind:
        event = catalogue()[name]
        grammar = grammar_of(uri_of(event.schema))
        matches = grammar.fullmatch if grammar is not None else _never
        kind = self[name] = _Kind(matches, rules_of(event), event.schema)
        return kind


def _never(_: bytes) -> None:
    """Match nothing: a schema without a grammar leaves every wire to the validator."""


_kinds = _Kinds()


def validate(value: Any) -> list[Finding]:
    """List everything wrong with a decoded wire; empty if it is valid."""
    try:
        kind = _kinds[value["type"]]
        message = orjson.dumps(value, option=_SORTED)
        if len(message) <= MESSAGE_LIMIT and kind.matches(message):
            return kind.broken_rules(wire_of(message))
    except (KeyError, TypeError):
        # The type does not exist, or a part of the value is not JSON.
        pass
    return _judge(value)


_encode = msgspec.json.Encoder().encode


def encode(wire: AnyWire) -> tuple[bytes, list[Finding]]:
    """Return the canonical bytes of a wire, encoded once for check, hash and store, and everything wrong with it."""
    kind = _kinds[wire.type]
    try:
        message = _encode(wire)
    except (TypeError, ValueError):
        message = b""
    # A wire that matches its grammar is canonical.
    if len(message) <= MESSAGE_LIMIT and kind.matches(message):
        return message, kind.broken_rules(wire)
    value = msgspec.to_builtins(wire)
    return canonical(value), _judge(value)


def _judge(value: Any) -> list[Finding]:
    """List the findings of the schema validator, and then of the rules."""
    try:
        kind = _kinds[value["type"]]
    except (KeyError, TypeError):
        return _unknown(value)
    if compile_schema(kind.schema).is_valid(value):
        return kind.broken_rules(wire_from(value)) or too_large(canonical(value))
    return _refuse(value, kind)


def read(data: bytes) -> dict[str, Any]:
    """Read the wire in `data`, without fields that are null; raise JsonRefused or WireRefused if it is invalid."""
    wire = _read_compact(data)
    if wire is not None:
        return wire
    value = decode(data)
    findings = validate(value)
    if findings:
        raise WireRefused(findings)
    return drop_nulls(value)


def _read_compact(data: bytes) -> dict[str, Any] | None:
    """Read bytes that match the grammar of their type: the common case, in which nothing is ambiguous."""
    try:
        wire: dict[str, Any] = orjson.loads(data)
        kind = _kinds[wire["type"]]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if len(data) > MESSAGE_LIMIT:
        return None
    # Many writers do not sort keys; equal bytes show that there is no duplicate key.
    ordered = kind.matches(data) or (orjson.dumps(wire) == data and kind.matches(orjson.dumps(wire, option=_SORTED)))
    return None if not ordered or kind.broken_rules(wire_from(wire)) else wire


def read_wire(data: bytes) -> AnyWire:
    """Read the wire in `data` as a typed value; raise JsonRefused or WireRefused if it is invalid."""
    try:
        wire = wire_of(data)
        kind = _kinds[wire.type]
        if len(data) <= MESSAGE_LIMIT and kind.matches(data) and not kind.broken_rules(wire):
            return wire
    except (UpgradeNeeded, msgspec.DecodeError, UnicodeDecodeError):
        pass  # The slow way below finds the error, and names it.
    return wire_from(read(data))


def too_large(message: bytes) -> list[Finding]:
    """Return the finding for canonical bytes above the limit of the ledger."""
    if len(message) <= MESSAGE_LIMIT:
        return []
    text = f"the wire is {len(message):,} canonical bytes; the limit of the ledger is {MESSAGE_LIMIT:,}"
    return [Finding(WIRE_TOO_LARGE, "", text)]


def drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """Return the wire without fields that are null, in the envelope, its stream and its payload."""
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
    """List the findings of the schema. Null counts as absent, so the wire may be valid without its nulls."""
    if value.get("wire") != VERSION:
        return _unknown(value)
    cleaned, checker = drop_nulls(value), compile_schema(kind.schema)
    findings = checker.findings(cleaned)
    if cleaned != value:
        # An unknown field is an error even if it is null.
        unknown = [new for new in checker.findings(value) if new.code == "schema_additionalProperties"]
        findings += [new for new in unknown if new not in findings]
    if not findings:
        return kind.broken_rules(wire_from(cleaned)) or too_large(canonical(cleaned))
    with suppress(JsonRefused):  # A value that is not JSON has findings, and no size.
        findings += too_large(canonical(cleaned))
    return findings


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
