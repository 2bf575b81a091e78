"""The event types as Python structs: `python -m tools.events` writes `src/redkey/wire/events.py` from the schemas.

The schemas are the source. One struct per event type has the fields of its payload in canonical order, so encoding a
struct gives the canonical bytes. Objects inside payloads come before the types that contain them. `make verify` proves
that the file is current.
"""

from __future__ import annotations

import json
import keyword
import textwrap
from pathlib import Path
from typing import Any

from redkey.wire import files
from redkey.wire.catalogue import SCHEMAS, catalogue
from tools.shapes import event_shape, schema_shape

ROOT = Path(__file__).resolve().parents[1]
FILE = "src/redkey/wire/events.py"

# The payload fields that the event index uses, in the order of the index entry.
NAMING = ("task_id", "agent_id", "claim_id", "workflow_id", "queue_id", "ref_task_id")
_NOTE = "Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current."
_WIDTH = 120
_SCALARS = {"string": "str", "integer": "int", "number": "int | float", "boolean": "bool"}


# The source text of each class by its name, in the order of the module.
Classes = dict[str, str]


def class_name(event: str) -> str:
    """The class name of an event type: `task.claim_missed` becomes `TaskClaimMissed`."""
    return "".join(word.capitalize() for word in event.replace(".", "_").split("_"))


def generated() -> dict[str, bytes]:
    """The module, by its path from the root of the repository."""
    classes: Classes = {}
    for shape, name in _named_objects().items():
        _object_class(name, json.loads(shape), classes, "", _described(name))
    for event in catalogue():
        text = _event_class(event, classes)
        if class_name(event) in classes:
            raise NotImplementedError(f"{event}: an object of another type has the name of its class")
        classes[class_name(event)] = text
    names = [class_name(event) for event in catalogue()]
    head = [
        '"""Every event type as a struct. The class of `task.claimed` is `TaskClaimed`, and so for every type.',
        "",
        _NOTE,
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import ClassVar, final",
        "",
        "from redkey.wire.payload import Payload, WirePart",
        "",
        "",
        "",
    ]
    tables = [
        "",
        "",
        "AnyPayload = (",
        *(f"    {'' if index == 0 else '| '}{name}" for index, name in enumerate(names)),
        ")",
        "",
        "# The struct of each event type.",
        "PAYLOADS: dict[str, type[AnyPayload]] = {",
        *(f"    {name}.TYPE: {name}," for name in names),
        "}",
        "",
    ]
    text = "\n".join(head) + "\n\n".join(classes.values()) + "\n".join(tables)
    return {FILE: text.encode()}


def _named_objects() -> dict[str, str]:
    """The class of each shared object, by its shape as JSON."""
    definitions = files.load(f"{SCHEMAS}/types.schema.json")["$defs"]
    shapes = {
        class_name(name): schema_shape(f"{SCHEMAS}/types.schema.json#/$defs/{name}")
        for name, part in definitions.items()
        if part.get("type") == "object"
    }
    for part in ("stream", "state"):
        shapes[f"Wire{part.capitalize()}"] = schema_shape(f"{SCHEMAS}/{part}.schema.json")
    return {_key(shape): name for name, shape in shapes.items()}


def _key(shape: Any) -> str:
    return json.dumps(shape, sort_keys=True)


def _described(name: str) -> str:
    words = {
        "WireStream": "The place of a wire: its stream and number, its context and its cause.",
        "WireState": files.load(f"{SCHEMAS}/state.schema.json")["title"].partition(": ")[2].capitalize() + ".",
    }
    if name in words:
        return words[name]
    definitions = files.load(f"{SCHEMAS}/types.schema.json")["$defs"]
    return str(next(part["description"] for key, part in definitions.items() if class_name(key) == name))


def _event_class(event: str, classes: Classes) -> str:
    shape = event_shape(event)["properties"]["payload"]
    fields = _fields(shape, classes, event)
    lines = [
        "@final",
        f"class {class_name(event)}(Payload, frozen=True, kw_only=True):",
        *_docstring(files.load(catalogue()[event].schema)["description"]),
        "",
        f'    TYPE: ClassVar[str] = "{event}"',
    ]
    names = shape.get("properties", {})
    if {"idem", "body"} <= names.keys():
        lines.append("    KEYED: ClassVar[bool] = True")
    lines += ["", *fields] if fields else []
    naming = [f"self.{name}" for name in NAMING if name in names]
    if naming:
        lines += ["", "    def named(self) -> tuple[str | None, ...]:"]
        lines.append(f"        return ({', '.join(naming)}{',' if len(naming) == 1 else ''})")
    return "\n".join([*lines, ""])


def _object_class(name: str, shape: Any, classes: Classes, event: str, description: str) -> None:
    fields = _fields(shape, classes, event)
    lines = [f"class {name}(WirePart, frozen=True, kw_only=True):", *_docstring(description), "", *fields, ""]
    classes[name] = "\n".join(lines)


def _docstring(text: str) -> list[str]:
    """The lines of a class's docstring."""
    if len(text) + 10 <= _WIDTH:
        return [f'    """{text}"""']
    first, *rest = textwrap.wrap(text, _WIDTH - 10)
    return [f'    """{first}', *(f"    {line}" for line in rest), '    """']


def _fields(shape: Any, classes: Classes, event: str) -> list[str]:
    """The fields of an object in canonical order."""
    required = shape.get("required", ())
    lines = []
    for name, part in sorted(shape.get("properties", {}).items()):
        if keyword.iskeyword(name) or not name.isidentifier() or not name.isascii():
            raise NotImplementedError(f"{event}: {name} is not a valid name for a field of a struct")
        kind = _kind(part, classes, event, name)
        lines.append(f"    {name}: {kind}" if name in required else f"    {name}: {kind} | None = None")
    return lines


def _kind(part: Any, classes: Classes, event: str, field: str) -> str:
    """The Python type of a field."""
    if "const" in part or "enum" in part:
        kinds = {type(value).__name__ for value in part.get("enum", [part.get("const")])}
        if len(kinds) != 1 or not kinds <= {"str", "int", "bool"}:
            raise NotImplementedError(f"{event}: {field} has values of several types")
        return kinds.pop()
    kind = part.get("type", "string" if "anyOf" in part else None)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "array":
        return f"tuple[{_kind(part['items'], classes, event, field)}, ...]"
    if kind == "object" and "properties" in part:
        return _object_name(part, classes, event, field)
    if kind == "object" and isinstance(part.get("additionalProperties"), dict):
        return f"dict[str, {_kind(part['additionalProperties'], classes, event, field)}]"
    raise NotImplementedError(f"{event}: {field} has a type without a struct: {kind}")


def _object_name(part: Any, classes: Classes, event: str, field: str) -> str:
    """The class of an object in a payload: a shared one, or one named after the field and the event's first word."""
    shared = _named_objects().get(_key(part))
    if shared is not None:
        return shared
    name = class_name(f"{event.partition('.')[0]}.{field}")
    before = classes.get(name)
    _object_class(name, part, classes, event, f"The `{field}` of {event.partition('.')[0]} events.")
    if before not in (None, classes[name]):
        raise NotImplementedError(f"{event}: another type of its family has a different {field}")
    return name


def main() -> None:
    """Write the module."""
    for name, data in generated().items():
        (ROOT / name).write_bytes(data)


if __name__ == "__main__":
    main()
