"""The past of a topic, read inside a unit before a command is decided: rows hold tasks, misses and messages, the event
index leads to claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from redkey.commands.past import PastArtifact, PastClaim, Recalled, Wanted
from redkey.ledger.ports import Reader
from redkey.readmodel.rows import entity, miss_key
from redkey.reducers.entities import Gate, Message, Miss, StoredArtifact, Superseded, Task, Workflow
from redkey.reducers.world import World
from redkey.wire.envelope import wire_of
from redkey.wire.events import TaskClaimAttempted
from redkey.wire.ids import parse_stream

E = TypeVar("E")
Changed = Mapping[tuple[str, str], msgspec.Struct | None]


class LedgerPast:
    """What one topic knows beyond its world."""

    def __init__(self, reader: Reader, topic: str) -> None:
        self._reader, self._topic = reader, topic

    def task(self, task_id: str) -> Task | None:
        return self._entity("task", task_id, Task)

    def last_miss(self, task_id: str, agent_id: str) -> Miss | None:
        return self._entity("miss", miss_key(task_id, agent_id), Miss)

    def message(self, message_id: str) -> Message | None:
        return self._entity("message", message_id, Message)

    def workflow(self, workflow_id: str) -> Workflow | None:
        return self._entity("workflow", workflow_id, Workflow)

    def gate(self, gate_id: str) -> Gate | None:
        return self._entity("gate", gate_id, Gate)

    def claim(self, claim_id: str) -> PastClaim | None:
        """Return the attempt that was given the claim's id: a claim begins with it."""
        for record in self._reader.events(self._topic, claim_id, limit=1):
            wire = wire_of(record.wire)
            if isinstance(wire.payload, TaskClaimAttempted):
                return PastClaim(wire.payload.task_id, parse_stream(wire.stream.stream_id).subject)
        return None

    def artifact(self, artifact_id: str, changed: Changed) -> PastArtifact | None:
        """Return an artifact from its rows, or as this unit has changed it."""
        stored = changed.get(("artifact", artifact_id)) or self._entity("artifact", artifact_id, StoredArtifact)
        by = changed.get(("superseded", artifact_id)) or self._entity("superseded", artifact_id, Superseded)
        if not isinstance(stored, StoredArtifact):
            return None
        return PastArtifact(stored.artifact.version, by.by_artifact_id if isinstance(by, Superseded) else "")

    def _entity(self, kind: str, key: str, of: type[E]) -> E | None:
        row = self._reader.row(self._topic, kind, key)
        found: E | None = entity(row) if row is not None else None
        return found


def recall(
    reader: Reader, topic: str, world: World, wanted: Wanted, loaded_at: int, changed: Changed | None = None
) -> Recalled:
    """Read the past that a decision needs. Misses of tasks that were created after the world was loaded are in memory;
    `changed` are the rows that the unit will write.
    """
    past = LedgerPast(reader, topic)
    tasks = {task_id: past.task(task_id) for task_id in wanted.tasks}
    if wanted.upstream:
        upstream = [key for task in tasks.values() if task is not None for key in task.waits_for]
        tasks |= {key: past.task(key) for key in upstream if key not in world.tasks}
    claims: dict[str, PastClaim | None] = {}
    if wanted.claim_id:
        claim = claims[wanted.claim_id] = past.claim(wanted.claim_id)
        if claim is not None and claim.task_id not in world.tasks:
            tasks[claim.task_id] = past.task(claim.task_id)
    misses: dict[tuple[str, str], Miss | None] = {}
    if wanted.last_miss is not None:
        live = world.tasks.get(wanted.last_miss[0])
        in_memory = live is not None and live.sequence > loaded_at
        misses[wanted.last_miss] = None if in_memory else past.last_miss(*wanted.last_miss)
    return Recalled(
        tasks,
        claims,
        misses,
        {wanted.message_id: past.message(wanted.message_id)} if wanted.message_id else {},
        {wanted.workflow_id: past.workflow(wanted.workflow_id)} if wanted.workflow_id else {},
        {wanted.gate_id: past.gate(wanted.gate_id)} if wanted.gate_id else {},
        {artifact_id: past.artifact(artifact_id, changed or {}) for artifact_id in wanted.artifacts},
    )
