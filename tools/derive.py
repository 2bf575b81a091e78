"""Invalid wires, derived from the schemas: for each limit, enum and required field a wire that breaks only it.

Each case is a golden fixture with one change. If no golden fixture has the field, it is taken from the largest wire of
the type. The expected finding is derived from the schema, not from the validator.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from redkey.errors import pointer
from redkey.wire import files
from redkey.wire.canonical import LARGEST_INTEGER
from redkey.wire.catalogue import FIXTURES, SCHEMAS
from redkey.wire.validate import validate
from tools.largest import build, largest, widest
from tools.shapes import Shape, event_shape, schema_shape

Path = tuple[str | int, ...]
Wire = dict[str, Any]
_ABSENT = object()
# The event type whose cases cover the limits of the envelope.
ENVELOPE_EVENT = "task.started"


class Break(NamedTuple):
    """One change that makes a wire invalid: the value to set, and the code and place of the expected finding."""

    name: str
    path: Path
    value: Any
    code: str
    found_at: Path


class Case(NamedTuple):
    """One derived fixture."""

    name: str
    code: str
    pointer: str
    wire: Wire


def file_stem(event: str) -> str:
    """Return an event type as it is written in the names of fixture and schema files."""
    return event.replace(".", "-").replace("_", "-")


@cache
def golden(event: str) -> tuple[Wire, ...]:
    """Return the valid fixtures of a type, the plain one first."""
    names = [name for name in files.names(FIXTURES, ".json") if name.startswith(f"{file_stem(event)}.valid")]
    return tuple(files.load(f"{FIXTURES}/{name}") for name in sorted(names, key=len))


def own_cases(event: str) -> list[Case]:
    """Return the cases of this type alone: its payload, and how it narrows the envelope."""
    ways = [way for way in _breaks(event_shape(event), (), event) if not _is_shared(event, way)]
    return [_case(event, way) for way in [*ways, *_exclusions(event)]]


def envelope_cases(event: str) -> list[Case]:
    """Return the cases of the envelope, which are the same for every type."""
    return [_case(event, way) for way in _breaks(event_shape(event), (), event) if _is_shared(event, way)]


def _is_shared(event: str, way: Break) -> bool:
    """Return whether the rule belongs to the envelope and not to this type."""
    if way.path[:1] == ("payload",) and len(way.path) > 1:
        return False
    path = way.path[:-1] if way.name in ("missing", "unexpected") else way.path
    shapes = [_shape_at(shape, path) for shape in (event_shape(event), _envelope())]
    if way.name == "missing":
        return all(way.path[-1] in shape["required"] for shape in shapes)
    first, second = (
        {**shape, "properties": 0, "required": 0} if isinstance(shape, dict) else shape for shape in shapes
    )
    return bool(first == second)


def _envelope() -> Shape:
    return schema_shape(f"{SCHEMAS}/envelope.schema.json")


def _shape_at(shape: Any, path: Path) -> Any:
    for step in path:
        shape = shape["items"] if isinstance(step, int) else shape["properties"][step]
    return shape


def _breaks(shape: Shape, path: Path, event: str) -> Iterator[Break]:
    """Yield every way to break the flat schema at a path of the wire."""
    if path in (("wire",), ("type",)):
        return  # A wrong version or type has its own messages; those fixtures are written by hand.
    if isinstance(shape, bool):
        if shape is False:
            yield Break("not-allowed", path, _anything(path), "schema_not_allowed", path)
    elif "const" in shape:
        yield Break("other", path, "other", "schema_const", path)
    elif "enum" in shape:
        yield Break("unknown", path, "unheard-of", "schema_enum", path)
    else:
        yield Break("wrong-type", path, [1] if shape["type"] == "object" else {"an": "object"}, "schema_type", path)
        yield from _BREAKS[shape["type"]](shape, path, event)


def _break_string(shape: dict[str, Any], path: Path, event: str) -> Iterator[Break]:
    value, most, least = str(_example(event, path)), shape["maxLength"], shape.get("minLength", 0)
    yield Break("too-long", path, value.ljust(most + 1, value[-1]), "schema_maxLength", path)
    if least:
        yield Break("too-short", path, value[: least - 1], "schema_minLength", path)
    code = "schema_pattern" if "pattern" in shape else "schema_anyOf"
    wrong = next(mark for mark in "! " if not re.fullmatch(shape.get("pattern", ""), value[:-1] + mark))
    yield Break("misspelt", path, value[:-1] + wrong, code, path)


def _break_integer(shape: dict[str, Any], path: Path, event: str) -> Iterator[Break]:
    yield Break("fraction", path, shape["minimum"] + 0.5, "schema_type", path)
    yield from _break_number(shape, path, event)


def _break_number(shape: dict[str, Any], path: Path, event: str) -> Iterator[Break]:
    yield Break("too-small", path, shape["minimum"] - 1, "schema_minimum", path)
    if (
        shape["maximum"] < LARGEST_INTEGER
    ):  # Beyond that, parsers disagree about the number, so it is refused before the schema is used.
        yield Break("too-large", path, shape["maximum"] + 1, "schema_maximum", path)


def _break_array(shape: dict[str, Any], path: Path, event: str) -> Iterator[Break]:
    items, most = shape["items"], shape["maxItems"]
    unique = len(items["enum"]) if "enum" in items else most + 1
    yield Break("too-many", path, [build(items, index % unique) for index in range(most + 1)], "schema_maxItems", path)
    if shape.get("minItems"):
        yield Break("too-few", path, [], "schema_minItems", path)
    if shape.get("uniqueItems"):
        yield Break("twice", path, [build(items), build(items)], "schema_uniqueItems", path)
    yield from _breaks(items, (*path, 0), event)


def _break_object(shape: dict[str, Any], path: Path, event: str) -> Iterator[Break]:
    for name in shape.get("required", ()):
        if (*path, name) not in (("wire",), ("type",)):
            yield Break("missing", (*path, name), _ABSENT, "schema_required", (*path, name))
    if shape.get("additionalProperties") is False:
        yield Break("unexpected", (*path, "unexpected"), 1, "schema_additionalProperties", (*path, "unexpected"))
    for name, part in shape.get("properties", {}).items():
        yield from _breaks(part, (*path, name), event)
    if "propertyNames" in shape:
        yield Break("misspelt", path, {"unexpected": 1}, "schema_propertyNames", (*path, "unexpected"))
        name = "redkey.extension"
        yield Break("null", path, {name: None}, "schema_type", (*path, name))


_BREAKS = {
    "string": _break_string,
    "integer": _break_integer,
    "number": _break_number,
    "boolean": lambda shape, path, event: iter(()),
    "array": _break_array,
    "object": _break_object,
}


def _exclusions(event: str) -> Iterator[Break]:
    """Yield the cases of fields that exclude each other: a golden fixture with a field of another alternative added."""
    payload = event_shape(event)["properties"]["payload"]
    for condition in payload.get("conditions", ()):
        triggers = condition["if"]["required"]
        for name, part in condition["then"].get("properties", {}).items():
            if part is False:
                path: Path = ("payload", name)
                value = _get(next(wire for wire in largest(event) if _has(wire, path)), path)
                yield Break(f"beside-{'-'.join(triggers)}", path, value, "schema_not_allowed", path)


def _case(event: str, way: Break) -> Case:
    name = "-".join([*(str(step) for step in way.path), way.name])
    if way.name.startswith("beside-"):
        trigger = way.name.removeprefix("beside-")
        base = next(wire for wire in golden(event) if trigger in wire["payload"])
    else:
        base = _base(event, way.path if way.value is _ABSENT or way.name in _CHANGES else way.path[:-1])
    return Case(name, way.code, pointer(way.found_at), _changed(base, way.path, way.value))


# Breaks that change an existing value; the others add one.
_CHANGES = {"other", "unknown", "wrong-type", "too-long", "too-short", "misspelt", "fraction", "too-small", "too-large"}


def _example(event: str, path: Path) -> Any:
    return _get(_base(event, path), path)


def _base(event: str, path: Path) -> Wire:
    """Return a valid wire that has a value at the path."""
    for wire in golden(event):
        if _has(wire, path):
            return wire
    full = next((wire for wire in (*largest(event), *widest(event)) if _has(wire, path)), None)
    if full is None:
        raise LookupError(f"no wire of {event} has {pointer(path)}")
    top = path[:2]
    for wire in golden(event):
        candidate = _changed(wire, top, _get(full, top))
        if not validate(candidate):
            return candidate
    return full


def _anything(path: Path) -> Any:
    """Return any value for a field that is not allowed."""
    return build(_shape_at(_envelope(), path))


def _has(value: Any, path: Path) -> bool:
    for step in path:
        inside = isinstance(value, dict) and step in value
        if not inside and not (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            return False
        value = value[step]
    return True


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _changed(wire: Wire, path: Path, value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(wire)
    holder = _get(changed, path[:-1])
    if value is _ABSENT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return changed
