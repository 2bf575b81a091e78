"""What records mean for definitions: versions are published one after the other, and none of them ever changes."""

from __future__ import annotations

from redkey.reducers.entities import Definition, Version
from redkey.reducers.event import Event
from redkey.reducers.world import World

Void = str | None


def published(world: World, e: Event) -> Void:
    payload = e.payload
    definition_id, number = payload["definition_id"], payload["version"]
    world.workspace.stream_seq = max(world.workspace.stream_seq, e.wire["stream"]["stream_seq"])
    e.changes.touch("workspace", "")
    before = world.definitions.get(definition_id)
    expected = before.version + 1 if before is not None else 1
    if number != expected:
        return "version_exists" if number < expected else "version_skipped"
    content, pinned = payload["content_ref"], payload["structure_ref"]
    definition = Definition(definition_id, number, before.sequence if before is not None else e.sequence)
    version = Version(
        definition_id=definition_id,
        version=number,
        content_sha256=content["sha256"],
        content_bytes=content["bytes"],
        structure_sha256=pinned["sha256"],
        structure_bytes=pinned["bytes"],
        published_at=e.timestamp,
        published_by=e.wire["sender"],
        sequence=e.sequence,
    )
    world.definitions[definition_id] = definition
    e.changes.touch("definition", definition_id, definition)
    e.changes.touch("version", f"{definition_id}/{number}", version)
    return None
