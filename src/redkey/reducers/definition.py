"""What records mean for definitions: versions are published in order and never change."""

from __future__ import annotations

from redkey.reducers.entities import Definition, Version
from redkey.reducers.event import Event
from redkey.reducers.world import World
from redkey.wire.events import DefinitionPublished

Void = str | None


def published(world: World, e: Event, p: DefinitionPublished) -> Void:
    """Add a version of a definition; its number must be the next one."""
    definition_id, number = p.definition_id, p.version
    world.workspace.stream_seq = max(world.workspace.stream_seq, e.stream.stream_seq)
    e.changes.touch("workspace", "")
    before = world.definitions.get(definition_id)
    expected = before.version + 1 if before is not None else 1
    if number != expected:
        return "version_exists" if number < expected else "version_skipped"
    definition = Definition(definition_id, number, before.sequence if before is not None else e.sequence)
    version = Version(
        definition_id=definition_id,
        version=number,
        content_sha256=p.content_ref.sha256,
        content_bytes=p.content_ref.bytes,
        structure_sha256=p.structure_ref.sha256,
        structure_bytes=p.structure_ref.bytes,
        published_at=e.timestamp,
        published_by=e.sender,
        sequence=e.sequence,
    )
    world.definitions[definition_id] = definition
    e.changes.touch("definition", definition_id, definition)
    e.changes.touch("version", f"{definition_id}/{number}", version)
    return None
