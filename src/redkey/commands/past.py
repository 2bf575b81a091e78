"""What has left the world, as a decision is handed it: values, read before anything is decided.

`wanted` says what a command needs of the past, whoever runs the unit reads that from rows and from the ledger
(`services.past`), and the decision looks at nothing else. Reducers never ask: a fold sees the world and the record, so
that it comes out the same wherever it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from redkey.reducers.entities import Gate, Message, Miss, Task, Workflow


class PastClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim that holds nothing now: whose it was, and on what."""

    task_id: str
    agent_id: str


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What a decision needs of the past. A claim brings its task along."""

    tasks: tuple[str, ...] = ()
    # With the tasks come those that they wait for.
    upstream: bool = False
    claim_id: str = ""
    # (task, agent): the last miss or rejection that the agent was told for the task.
    told: tuple[str, str] | None = None
    message_id: str = ""
    workflow_id: str = ""
    gate_id: str = ""


class Past(Protocol):
    """Where decisions look for what is no longer live."""

    def task(self, task_id: str) -> Task | None: ...

    def claim(self, claim_id: str) -> PastClaim | None: ...

    def told(self, task_id: str, agent_id: str) -> Miss | None:
        """The last miss or rejection that an agent was told for a task."""
        ...

    def message(self, message_id: str) -> Message | None: ...

    def workflow(self, workflow_id: str) -> Workflow | None: ...

    def gate(self, gate_id: str) -> Gate | None: ...


class Recalled(msgspec.Struct, frozen=True):
    """What was read for one decision: None where there is nothing. To ask for what was not read is a fault of ours."""

    tasks: Mapping[str, Task | None] = {}
    claims: Mapping[str, PastClaim | None] = {}
    misses: Mapping[tuple[str, str], Miss | None] = {}
    messages: Mapping[str, Message | None] = {}
    workflows: Mapping[str, Workflow | None] = {}
    gates: Mapping[str, Gate | None] = {}

    def task(self, task_id: str) -> Task | None:
        return self.tasks[task_id]

    def claim(self, claim_id: str) -> PastClaim | None:
        return self.claims[claim_id]

    def told(self, task_id: str, agent_id: str) -> Miss | None:
        return self.misses[task_id, agent_id]

    def message(self, message_id: str) -> Message | None:
        return self.messages[message_id]

    def workflow(self, workflow_id: str) -> Workflow | None:
        return self.workflows[workflow_id]

    def gate(self, gate_id: str) -> Gate | None:
        return self.gates[gate_id]


class NoPast:
    """The past of a world that has forgotten nothing: one folded from its first record, a moment ago."""

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


# Of commands that need nothing of the past.
NOTHING = Recalled()
