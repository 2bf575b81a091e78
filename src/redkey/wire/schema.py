"""JSON Schemas of the contract files, compiled once, and what they find as codes, pointers and sentences.

References are resolved among the contract files of this installation and nowhere else: a remote `$ref` is
an error, never a request.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs

from redkey.errors import ContractBroken, Finding
from redkey.wire import files

# A hostile document can be wrong in a million places; nobody reads more than these.
FINDINGS_LIMIT = 50
_VALUE_LIMIT = 120


class Checker:
    """One compiled schema."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator) -> None:
        self._validator = validator
        # The hot path asks yes or no; only a no is worth telling in words.
        self.is_valid = validator.is_valid

    def findings(self, value: Any) -> list[Finding]:
        """Everything wrong with the value, in the order of the document, at most FINDINGS_LIMIT."""
        if self.is_valid(value):
            return []
        found: dict[tuple[str, str], Finding] = {}
        for error in self._validator.iter_errors(value):
            for finding in _findings(error):
                found.setdefault((finding.pointer, finding.code), finding)
            if len(found) >= FINDINGS_LIMIT:
                break
        return sorted(found.values(), key=lambda finding: finding.pointer)[:FINDINGS_LIMIT]


@cache
def _registry() -> jsonschema_rs.Registry:
    resources = []
    for path in sorted(files.root().glob("*/**/*.schema.json")):
        relative = path.relative_to(files.root()).as_posix()
        if relative.startswith(("schemas/", "definitions/")):
            schema = files.load(relative)
            resources.append((schema["$id"], schema))
    return jsonschema_rs.Registry(resources, retriever=_refuse_remote)


def _refuse_remote(uri: str) -> Any:
    raise ContractBroken(f"the schema {uri} is not among the contract files")


@cache
def compile_schema(relative: str) -> Checker:
    """The checker of one schema file, as in `schemas/agent-wire/v1.1/envelope.schema.json`."""
    schema = files.load(relative)
    try:
        return Checker(jsonschema_rs.Draft202012Validator(schema, registry=_registry(), offline=True))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as cause:
        raise ContractBroken(f"{relative}: {cause}") from cause


def pointer(path: list[str | int]) -> str:
    """A path of keys and indexes as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _findings(error: jsonschema_rs.ValidationError) -> list[Finding]:
    keyword = error.kind.name
    here = pointer(error.instance_path)
    code = f"schema_{keyword}"
    if keyword == "required":
        name = error.kind.as_dict()["property"]
        return [Finding(code, here + pointer([name]), f"the field {name!r} is missing")]
    if keyword == "additionalProperties":
        return [
            Finding(code, here + pointer([name]), f"{_short(name)} is not a field of this object")
            for name in error.kind.as_dict()["unexpected"][:FINDINGS_LIMIT]
        ]
    if keyword == "falseSchema":
        return [Finding("schema_not_allowed", here, "this field is not allowed here")]
    return [Finding(code, here, _short(error.message))]


def _short(text: str) -> str:
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"
