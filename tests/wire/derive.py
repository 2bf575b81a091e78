"""Violations derived from a schema: for each keyword, a document that breaks only that keyword.

Given a valid document in which every property is present, `ways` walks schema and document together. Each way
names the place of the broken keyword in the schema files, so that a test can ask whether all were exercised.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from redkey.errors import pointer
from redkey.wire import files

ANNOTATIONS = {"$schema", "$id", "$defs", "$comment", "title", "description"}
# Keywords that carry other schemas or are broken together with one that is listed in `_break`.
STRUCTURE = {"$ref", "allOf", "properties", "items"}


@dataclass(frozen=True)
class Way:
    """One violation: the keyword's place in the schema, the expected code and pointer, and the document."""

    location: str
    code: str
    pointer: str
    document: Any


def ways(relative: str, document: Any) -> Iterator[Way]:
    """Yield a violation of every keyword that the schema file `relative` and its references apply to the document."""
    yield from _walk(relative, files.load(relative), [], document, [])


def keywords(relative: str) -> set[str]:
    """Return the places of all keywords that can be broken, in the file and in the files that it references."""
    found: set[str] = set()
    seen: set[str] = set()
    pending = [(relative, files.load(relative), [])]
    while pending:
        file, schema, place = pending.pop()
        here = _location(file, place)
        if here in seen:
            continue
        seen.add(here)
        for keyword, rule in schema.items():
            at = [*place, keyword]
            if keyword == "$ref":
                pending.append(_resolve(file, rule))
            elif keyword == "properties":
                pending.extend((file, part, [*at, name]) for name, part in rule.items())
            elif keyword == "allOf":
                pending.extend((file, part, [*at, index]) for index, part in enumerate(rule))
            elif keyword in ("items", "propertyNames") or (keyword == "additionalProperties" and rule):
                pending.append((file, rule, at))
            elif keyword == "required":
                found.update(_location(file, [*at, name]) for name in rule)
            elif keyword not in ANNOTATIONS:
                found.add(_location(file, at))
    return found


def _location(file: str, place: list[Any]) -> str:
    return f"{file}#{pointer(place)}"


def _resolve(file: str, ref: str) -> tuple[str, Any, list[Any]]:
    name, _, fragment = ref.partition("#")
    if name:
        file = file.rsplit("/", 1)[0] + "/" + name
    schema = files.load(file)
    place = [step for step in fragment.split("/") if step]
    for step in place:
        schema = schema[step]
    return file, schema, place


def _walk(file: str, schema: Any, place: list[Any], document: Any, path: list[Any]) -> Iterator[Way]:
    part = _get(document, path)
    for keyword, rule in schema.items():
        at = [*place, keyword]
        if keyword == "$ref":
            yield from _walk(*_resolve(file, rule), document, path)
        elif keyword == "allOf":
            for index, sub in enumerate(rule):
                yield from _walk(file, sub, [*at, index], document, path)
        elif keyword == "properties" and isinstance(part, dict):
            for name, sub in rule.items():
                if name in part:
                    yield from _walk(file, sub, [*at, name], document, [*path, name])
        elif keyword == "items" and isinstance(part, list) and part:
            yield from _walk(file, rule, at, document, [*path, 0])
        elif keyword == "additionalProperties" and isinstance(rule, dict) and part:
            yield from _walk(file, rule, at, document, [*path, next(iter(part))])
        elif keyword == "required":
            for name in rule:
                without = {key: item for key, item in part.items() if key != name}
                yield Way(
                    _location(file, [*at, name]),
                    "schema_required",
                    pointer([*path, name]),
                    _set(document, path, without),
                )
        elif keyword == "propertyNames" and part:
            for bound, name in (("minLength", ""), ("maxLength", "x" * (rule["maxLength"] + 1))):
                broken = {**part, name: next(iter(part.values()))}
                where = _location(file, [*at, bound])
                yield Way(where, "schema_propertyNames", pointer([*path, name]), _set(document, path, broken))
        elif keyword not in ANNOTATIONS | STRUCTURE and not isinstance(rule, dict):
            for broken in _break(keyword, rule, part):
                where = [*path, "unexpected"] if keyword == "additionalProperties" else path
                yield Way(_location(file, at), f"schema_{keyword}", pointer(where), _set(document, path, broken))


def _break(keyword: str, rule: Any, part: Any) -> list[Any]:
    """Return values that break one keyword; none if the keyword does not apply to the type of the part."""
    match keyword, part:
        case "type", _:
            return [["an", "array"]] if "object" in rule else [{"an": "object"}]
        case "enum" | "const", _:
            return ["unheard-of"]
        case "minimum", _:
            return [rule - 1]
        case "maximum", _:
            return [rule + 1]
        case "minLength", str():
            return [""]
        case "maxLength", str():
            return ["x" * (rule + 1)]
        case "pattern", str():
            return ["-§"]
        case "minItems", [_, *_]:
            return [[]]
        case "maxItems", [first, *_]:
            return [[first] * (rule + 1)]
        case "additionalProperties", dict():
            return [{**part, "unexpected": 1}]
        case "maxProperties", dict() if part:
            return [{f"name-{index}": next(iter(part.values())) for index in range(rule + 1)}]
    return []


def _get(document: Any, path: list[Any]) -> Any:
    for step in path:
        document = document[step]
    return document


def _set(document: Any, path: list[Any], value: Any) -> Any:
    if not path:
        return value
    document = copy.deepcopy(document)
    _get(document, path[:-1])[path[-1]] = value
    return document
