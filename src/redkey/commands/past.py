"""What a decision needs to know of things that have left the world, read before the decision.

`wanted` lists what a command needs; the unit of work reads it from rows and the ledger (`services.past`) and passes it
to the decision, which reads nothing else. Reducers never use it: a fold sees only the world and the record, so it has
the same result everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from redkey.reducers.entities import Gate, Message, Miss, Task, Workflow


class PastClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim that holds nothing now: its agent and its task."""

    task_id: str
    agent_id: str


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What a decision needs of the past. The task of a claim is read with it."""

    tasks: tuple[str, ...] = ()
    # True to also read the tasks that these tasks wait for.
    upstream: bool = False
    claim_id: str = ""
    # (task, agent): read the agent's last miss or rejection on the task.
    last_miss: tuple[str, str] | None = None
    message_id: str = ""
    workflow_id: str = ""
    gate_id: str = ""
    # Artifacts that are to be replaced.
    artifacts: tuple[str, ...] = ()


class PastArtifact(msgspec.Struct, frozen=True, gc=False):
    """The last version of an artifact, and the artifact that replaced it, if any."""

    version: int
    superseded_by: str = ""


class Past(Protocol):
    """What decisions may read of things that are no longer live."""

    def task(self, task_id: str) -> Task | None: ...

    def claim(self, claim_id: str) -> PastClaim | None: ...

    def last_miss(self, task_id: str, agent_id: str) -> Miss | None:
        """The last miss or rejection of the agent on a task."""
        ...

    def message(self, message_id: str) -> Message | None: ...

    def workflow(self, workflow_id: str) -> Workflow | None: ...

    def gate(self, gate_id: str) -> Gate | None: ...

    def artifact(self, artifact_id: str) -> PastArtifact | None: ...


class Recalled(msgspec.Struct, frozen=True):
    """What was read for one decision; None means it does not exist. Reading a key that was not requested is a bug."""

    tasks: Mapping[str, Task | None] = {}
    claims: Mapping[str, PastClaim | None] = {}
    misses: Mapping[tuple[str, str], Miss | None] = {}
    messages: Mapping[str, Message | None] = {}
    workflows: Mapping[str, Workflow | None] = {}
    gates: Mapping[str, Gate | None] = {}
    artifacts: Mapping[str, PastArtifact | None] = {}

    def task(self, task_id: str) -> Task | None:
        return self.tasks[task_id]

    def claim(self, claim_id: str) -> PastClaim | None:
        return self.claims[claim_id]

    def last_miss(self, task_id: str, agent_id: str) -> Miss | None:
        return self.misses[task_id, agent_id]

    def message(self, message_id: str) -> Message | None:
        return self.messages[message_id]

    def workflow(self, workflow_id: str) -> Workflow | None:
        return self.workflows[workflow_id]

    def gate(self, gate_id: str) -> Gate | None:
        return self.gates[gate_id]

    def artifact(self, artifact_id: str) -> PastArtifact | None:
        return self.artifacts[artifact_id]


class NoPast:
    """The past of a world that has dropped nothing, because it was just folded from its first record."""

    def task(self, task_id: str) -> Task | None:
        return None

    def claim(self, claim_id: str) -> PastClaim | None:
        return None

    def last_miss(self, task_id: str, agent_id: str) -> Miss | None:
        return None

    def message(self, message_id: str) -> Message | None:
        return None

    def workflow(self, workflow_id: str) -> Workflow | None:
        return None

    def gate(self, gate_id: str) -> Gate | None:
        return None

    def artifact(self, artifact_id: str) -> PastArtifact | None:
        return None


# For commands that need nothing of the past.
NOTHING = Recalled()
