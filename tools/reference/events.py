"""The event reference, generated from the event structs; descriptions and limits of fields come from the schemas."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.wire import files
from redkey.wire.catalogue import SCHEMAS, EventType, catalogue
from redkey.wire.events import PAYLOADS
from tools.reference.markdown import kind, table

_INTRO = """# Events

Every step of the work is an event of one of these types. On the ledger an event is a *wire* (Agent Wire 1.1,
snake_case); the API shows it in camelCase with its sequence in the workspace. A *request* records what someone asked
for, a *derived* event follows from others by rule; some types are both. Readers that do not know a type can use its
category; events of a terminal category end an attempt.

Each type is a struct of `redkey.wire.events`, written from its schema by `python -m tools.events`, with the fields of
its payload in canonical order.

No event contains free text: titles, reasons and results are content, named by hash (`content_ref`) and erasable.
"""


def page() -> str:
    """The table of all types, then the payload of each."""
    events = catalogue()
    rows = [
        (f"[`{event.name}`](#{_anchor(event.name)})", event.category, ", ".join(event.streams), event.kind)
        for event in events.values()
    ]
    parts = [_INTRO, table(("type", "category", "on the stream of", "kind"), rows)]
    return "\n".join([*parts, *(_event(event) for event in events.values())])


def _anchor(name: str) -> str:
    return "".join(sign for sign in name if sign.isalnum() or sign in "_-")


def _event(event: EventType) -> str:
    struct = PAYLOADS[event.name]
    parts = _payload(files.load(event.schema)).get("properties", {})
    rows = [
        (
            f"`{field.name}`",
            kind(_named(parts[field.name]), None),
            "yes" if field.required else "",
            parts[field.name].get("description", ""),
        )
        for field in msgspec.structs.fields(struct)
    ]
    payload = table(("payload", "type", "required", "meaning"), rows) if rows else "It has no payload.\n"
    return "\n".join(
        [
            f"## `{event.name}`\n",
            f"{' '.join((struct.__doc__ or '').split())} In Python: `{struct.__name__}`.\n",
            payload,
        ]
    )


def _payload(schema: Any) -> Any:
    """The payload's own schema: in the type's properties, or in one of the schemas that it combines."""
    for part in (schema, *schema.get("allOf", ())):
        if "payload" in part.get("properties", {}):
            return part["properties"]["payload"]
    return {}


def _named(part: Any) -> Any:
    """A field that refers to a shared type: that type if it is a simple one, else the reference."""
    if "$ref" not in part:
        return part
    file, _, path = part["$ref"].partition("#/$defs/")
    if not path or not file.endswith("types.schema.json"):
        return part
    shared = files.load(f"{SCHEMAS}/types.schema.json")["$defs"][path]
    return shared if shared.get("type") in ("string", "integer", "boolean", "number") else {"$ref": path}
