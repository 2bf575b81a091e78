"""The shape of a wire: one flat schema per event type, with references resolved and restrictions merged.

A schema file contains what a type adds to the envelope; `largest` and `derive` build wires from a schema and need all
rules of a field in one place. Only the keywords of the contract files are supported; any other is an error, so that
none is ignored silently.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from redkey.wire import files
from redkey.wire.catalogue import SCHEMAS, catalogue

Shape = dict[str, Any] | bool

_ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
_TIGHTER_BELOW = {"maxLength", "maxItems", "maxProperties", "maximum"}
_TIGHTER_ABOVE = {"minLength", "minItems", "minProperties", "minimum"}
# The narrower schema is merged last and wins; tests/wire/test_schema.py proves that it is narrower.
_LAST_WINS = {"type", "pattern", "additionalProperties", "uniqueItems", "items", "propertyNames", "anyOf", "oneOf"}


@cache
def event_shape(event: str) -> dict[str, Any]:
    """The flat schema of an event type. `conditions` holds its if-then rules, each flat too."""
    shape = schema_shape(catalogue()[event].schema)
    assert isinstance(shape, dict)
    return shape


@cache
def schema_shape(relative: str) -> Shape:
    """The flat schema of one contract file, or of a definition in it: `.../types.schema.json#/$defs/ref`."""
    file, _, fragment = relative.partition("#")
    schema: Any = files.load(file)
    for step in fragment.split("/")[1:]:
        schema = schema[step]
    return _flat(schema, file)


def _flat(schema: Shape, file: str) -> Shape:
    if isinstance(schema, bool):
        return schema
    merged: Shape = True
    if "$ref" in schema:
        merged = _merge(merged, _flat(*_resolve(schema["$ref"], file)))
    for part in schema.get("allOf", ()):
        merged = _merge(merged, {"conditions": [_condition(part, file)]} if "if" in part else _flat(part, file))
    own = {key: rule for key, rule in schema.items() if key not in _ANNOTATIONS | {"$ref", "allOf"}}
    if "if" in own:
        own = {key: rule for key, rule in own.items() if key not in ("if", "then", "else")}
        own["conditions"] = [_condition(schema, file)]
    for key in ("items", "propertyNames", "additionalProperties"):
        if key in own:
            own[key] = _flat(own[key], file)
    for key in ("anyOf", "oneOf"):
        if key in own:
            own[key] = [_flat(part, file) for part in own[key]]
    if "properties" in own:
        own["properties"] = {name: _flat(part, file) for name, part in own["properties"].items()}
    return _merge(merged, own)


def _condition(schema: dict[str, Any], file: str) -> dict[str, Any]:
    return {key: _flat(schema[key], file) for key in ("if", "then", "else") if key in schema}


def _resolve(ref: str, file: str) -> tuple[Shape, str]:
    name, _, fragment = ref.partition("#")
    target = f"{SCHEMAS}/{name}" if name else file
    schema: Any = files.load(target)
    for step in fragment.split("/")[1:]:
        schema = schema[step]
    return schema, target


def _merge(wide: Shape, narrow: Shape) -> Shape:
    """Merge two schemas."""
    if wide is False or narrow is False:
        return False
    if isinstance(wide, bool) or isinstance(narrow, bool):
        return narrow if isinstance(wide, bool) else wide
    merged = dict(wide)
    if "pattern" in narrow:
        merged.pop("anyOf", None)  # One of the alternatives is chosen.
    for key, rule in narrow.items():
        if key == "const":
            return {"const": rule}
        if key not in merged:
            merged[key] = rule
        elif key == "properties":
            merged[key] = merged[key] | {name: _merge(merged[key].get(name, True), part) for name, part in rule.items()}
        elif key == "required":
            merged[key] = list(dict.fromkeys([*merged[key], *rule]))
        elif key == "conditions":
            merged[key] = [*merged[key], *rule]
        elif key in _TIGHTER_BELOW:
            merged[key] = min(merged[key], rule)
        elif key in _TIGHTER_ABOVE:
            merged[key] = max(merged[key], rule)
        elif key in _LAST_WINS:
            merged[key] = rule
        else:
            raise NotImplementedError(f"merging {key}")
    return merged
