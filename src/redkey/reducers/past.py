"""What has left the world, as decisions may still ask for it: answered from rows and from the ledger itself.

Reducers never ask: a fold sees the world and the record, so that it comes out the same wherever it runs.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from redkey.reducers.entities import Gate, Message, Miss, Task, Workflow


class PastClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim that holds nothing now: whose it was, and on what."""

    task_id: str
    agent_id: str


class Past(Protocol):
    """Where decisions look for what is no longer live."""

    def task(self, task_id: str) -> Task | None: ...

    def claim(self, claim_id: str) -> PastClaim | None: ...

    def told(self, task_id: str, agent_id: str) -> Miss | None:
        """The last miss or rejection an agent was told for a task."""
        ...

    def message(self, message_id: str) -> Message | None: ...

    def workflow(self, workflow_id: str) -> Workflow | None: ...

    def gate(self, gate_id: str) -> Gate | None: ...


class NoPast:
    """A world that has forgotten nothing: one folded from its first record, a moment ago."""

    def task(self, task_id: str) -> Task | None:
        return None

    def claim(self, claim_id: str) -> PastClaim | None:
        return None

    def told(self, task_id: str, agent_id: str) -> Miss | None:
        return None

    def message(self, message_id: str) -> Message | None:
        return None

    def workflow(self, workflow_id: str) -> Workflow | None:
        return None

    def gate(self, gate_id: str) -> Gate | None:
        return None
