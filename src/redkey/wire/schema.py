"""JSON Schemas of the contract files, compiled once, with findings as codes, pointers and sentences.

References are resolved among the contract files of this installation and nowhere else: a remote `$ref` is
an error, never a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from redkey.errors import ContractBroken, Finding, pointer
from redkey.wire import files

# A hostile document can be wrong in a million places; report no more than this.
FINDINGS_LIMIT = 50
_VALUE_LIMIT = 60
_SENTENCE_LIMIT = 240
# Replaces the value in the validator's sentences, because a value may be a megabyte.
_MASK = "\ufffc"


class Checker:
    """One compiled schema."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator) -> None:
        self._validator = validator
        # The hot path only needs yes or no; sentences are written only for invalid values.
        self.is_valid = validator.is_valid

    def findings(self, value: Any, limit: int = FINDINGS_LIMIT) -> list[Finding]:
        """List what is wrong with the value, by pointer, at most `limit`."""
        if self.is_valid(value):
            return []
        found: dict[tuple[str, str], Finding] = {}
        for error in self._validator.iter_errors(value):
            for finding in _findings(error):
                found.setdefault((finding.pointer, finding.code), finding)
            if len(found) >= limit:
                break
        return sorted(found.values(), key=lambda finding: finding.pointer)[:limit]


@cache
def schemas() -> Mapping[str, Any]:
    """Return every schema file of this installation by its `$id`."""
    root = files.root()
    paths = [path for folder in ("schemas", "definitions") for path in (root / folder).rglob("*.schema.json")]
    found = [files.load(path.relative_to(root).as_posix()) for path in sorted(paths)]
    return {schema["$id"]: schema for schema in found}


@cache
def _registry() -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry(list(schemas().items()), retriever=_refuse_remote)


def _refuse_remote(uri: str) -> Any:
    raise ContractBroken(f"the schema {uri} is not among the contract files")


def checker_of(schema: dict[str, Any]) -> Checker:
    """Return the checker of a schema that is not a contract file, such as the schema of a struct."""
    return Checker(jsonschema_rs.Draft202012Validator(schema, registry=_registry(), offline=True, mask=_MASK))


@cache
def compile_schema(relative: str) -> Checker:
    """Return the checker of one schema file, such as `schemas/agent-wire/v1.1/envelope.schema.json`."""
    return _compile(relative, files.load(relative))


def uri_of(relative: str) -> str:
    """Return the `$id` of a schema file."""
    uri: str = files.load(relative)["$id"]
    return uri


def _compile(relative: str, schema: dict[str, Any]) -> Checker:
    try:
        return Checker(jsonschema_rs.Draft202012Validator(schema, registry=_registry(), offline=True, mask=_MASK))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as cause:
        raise ContractBroken(f"{relative}: {cause}") from cause


def _findings(error: jsonschema_rs.ValidationError) -> list[Finding]:
    keyword, details = error.kind.name, error.kind.as_dict()
    here = pointer(error.instance_path)
    code = f"schema_{keyword}"
    if keyword == "required":
        name = details["property"]
        return [Finding(code, here + pointer([name]), f"the field {name!r} is missing")]
    if keyword == "additionalProperties":
        return [
            Finding(code, here + pointer([name]), f"{_short(name)} is not a field of this object")
            for name in details["unexpected"][:FINDINGS_LIMIT]
        ]
    if keyword == "falseSchema":
        return [Finding("schema_not_allowed", here, "this field is not allowed here")]
    if keyword == "propertyNames":
        name = details["error"].instance
        return [Finding(code, here + pointer([name]), _sentence(details["error"], name))]
    meant = _meant(error) if keyword in ("anyOf", "oneOf") else None
    if meant is not None:
        return [finding for inner in meant for finding in _findings(inner)]
    return [Finding(code, here, _sentence(error, error.instance))]


def _meant(error: jsonschema_rs.ValidationError) -> list[jsonschema_rs.ValidationError] | None:
    """List what is wrong with the alternative that the value evidently is; None if that is not evident."""
    depth = len(error.instance_path)
    branches = _alternatives(error)
    if len(branches) == 1:
        return branches[0]
    likely = [
        branch
        for branch in branches
        if all(
            inner.kind.name in ("required", "additionalProperties")
            if len(inner.instance_path) == depth
            else inner.kind.name != "const"
            for inner in branch
        )
    ]
    return likely[0] if len(likely) == 1 else None


def _alternatives(error: jsonschema_rs.ValidationError) -> list[list[jsonschema_rs.ValidationError]]:
    """List what is wrong with each alternative; the alternative null is ignored."""
    return [branch for branch in error.kind.as_dict().get("context", ()) if _types(branch, error) != ["null"]]


def _types(branch: list[jsonschema_rs.ValidationError], error: jsonschema_rs.ValidationError) -> list[str]:
    """Return the types of an alternative if the value has none of them; else nothing."""
    if len(branch) != 1 or branch[0].kind.name != "type" or branch[0].instance_path != error.instance_path:
        return []
    return list(branch[0].kind.as_dict()["types"])


def _sentence(error: jsonschema_rs.ValidationError, value: Any) -> str:
    """Return the schema's own description of the place, if it has one: a pattern is hard to read."""
    words = _description(error.absolute_keyword_location)
    if words and error.kind.name in ("pattern", "anyOf", "oneOf"):
        return f"{_short(value)} does not fit: {words[0].lower()}{words[1:]}"
    if error.kind.name == "enum":
        text = f"{_short(value)} is not one of {', '.join(map(_short, error.kind.as_dict()['options']))}"
    elif error.kind.name in ("anyOf", "oneOf"):
        asked = [_types(branch, error) for branch in _alternatives(error)]
        names = dict.fromkeys(json.dumps(name) for types in asked for name in types)
        kinds = f"of type {' or '.join(names)}" if names and all(asked) else "of an accepted form"
        text = f"{_short(value)} is not {kinds}"
    elif error.kind.name == "pattern" and error.kind.as_dict()["pattern"] == r"\S":
        text = f"{_short(value)} has no visible character"
    elif error.kind.name == "const":
        text = f"{_short(value)} is not {json.dumps(error.kind.as_dict()['expected_value'])}"
    else:
        text = error.message.replace(_MASK, _short(value))
    return text if len(text) <= _SENTENCE_LIMIT else text[: _SENTENCE_LIMIT - 1] + "…"


@cache
def _description(keyword_location: str | None) -> str | None:
    """Return the description of the schema with this keyword."""
    uri, _, path = (keyword_location or "").partition("#")
    schema = schemas().get(uri, {})
    for step in path.split("/")[1:-1]:
        step = step.replace("~1", "/").replace("~0", "~")
        schema = schema[int(step)] if isinstance(schema, list) else schema[step]
    return schema.get("description") if isinstance(schema, dict) else None


def _short(value: Any) -> str:
    if isinstance(value, dict | list):
        return "the object" if isinstance(value, dict) else "the list"
    # In ASCII, so that no value can control a terminal or hide in it.
    text = json.dumps(value)
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"
