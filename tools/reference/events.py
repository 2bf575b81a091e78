"""The events as a page, written from the event catalogue and the schemas of Agent Wire 1.1."""

from __future__ import annotations

from typing import Any

from redkey.wire import files
from redkey.wire.catalogue import SCHEMAS, EventType, catalogue
from tools.reference.markdown import kind, table

_INTRO = """# Events

Every step of the work is one event of one of these types. On the ledger an event is a *wire* (Agent Wire 1.1,
snake_case); the API shows it in camelCase with its place in the workspace's order. A *request* is somebody's act, a
*derived* event follows from others by rule; some types are both. The category is what a reader who knows none of the
types goes by, and its terminal ones end an attempt.

No event holds free text: titles, reasons and results are content, named by hash (`content_ref`) and erasable.
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
    schema = files.load(event.schema)
    payload = _payload(schema)
    told = [f"## `{event.name}`\n"]
    if "description" in schema:
        told.append(schema["description"] + "\n")
    required = payload.get("required", ())
    rows = [
        (f"`{field}`", kind(_named(part), None), "yes" if field in required else "", part.get("description", ""))
        for field, part in payload.get("properties", {}).items()
    ]
    told.append(table(("payload", "type", "required", "meaning"), rows) or "It has no payload.\n")
    return "\n".join(told)


def _payload(schema: Any) -> Any:
    """The payload's own schema: it stands in the type's properties, or in one of the schemas it is made of."""
    for part in (schema, *schema.get("allOf", ())):
        if "payload" in part.get("properties", {}):
            return part["properties"]["payload"]
    return {}


def _named(part: Any) -> Any:
    """A field that refers to a shared type, as that type where it is a simple one."""
    if "$ref" not in part:
        return part
    file, _, path = part["$ref"].partition("#/$defs/")
    if not path or not file.endswith("types.schema.json"):
        return part
    found = files.load(f"{SCHEMAS}/types.schema.json")["$defs"][path]
    return found if found.get("type") in ("string", "integer", "boolean", "number") else {"$ref": path}
