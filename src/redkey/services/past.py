"""The past of a topic, read inside a unit: rows tell of tasks, misses and messages, the event index of claims."""

from __future__ import annotations

from typing import Any

from redkey.ledger.ports import Reader
from redkey.readmodel.rows import entity, miss_key
from redkey.reducers.entities import Gate, Message, Miss, Task, Workflow
from redkey.reducers.past import PastClaim
from redkey.wire.decode import decode
from redkey.wire.ids import parse_stream


class LedgerPast:
    """What one topic remembers beyond its world."""

    def __init__(self, reader: Reader, topic: str) -> None:
        self._reader, self._topic = reader, topic

    def task(self, task_id: str) -> Task | None:
        found: Task | None = self._entity("task", task_id)
        return found

    def told(self, task_id: str, agent_id: str) -> Miss | None:
        found: Miss | None = self._entity("miss", miss_key(task_id, agent_id))
        return found

    def message(self, message_id: str) -> Message | None:
        found: Message | None = self._entity("message", message_id)
        return found

    def workflow(self, workflow_id: str) -> Workflow | None:
        found: Workflow | None = self._entity("workflow", workflow_id)
        return found

    def gate(self, gate_id: str) -> Gate | None:
        found: Gate | None = self._entity("gate", gate_id)
        return found

    def claim(self, claim_id: str) -> PastClaim | None:
        """A claim begins with the attempt that was given its id."""
        for record in self._reader.events(self._topic, claim_id, limit=1):
            wire = decode(record.wire)
            if wire["type"] == "task.claim_attempted":
                return PastClaim(wire["payload"]["task_id"], parse_stream(wire["stream"]["stream_id"]).subject)
        return None

    def _entity(self, kind: str, key: str) -> Any:
        row = self._reader.row(self._topic, kind, key)
        return entity(row) if row is not None else None
