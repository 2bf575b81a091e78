"""The payloads of `task.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload, WirePart


@final
class TaskCreated(Payload, frozen=True, kw_only=True):
    """A task, or another attempt at it, exists."""

    TYPE: ClassVar[str] = "task.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    capabilities: tuple[str, ...] | None = None
    content_ref: Ref
    deadline_seconds: int | None = None
    idem: str | None = None
    lease_seconds: int | None = None
    max_attempts: int | None = None
    outputs: tuple[str, ...] | None = None
    plan_task: str | None = None
    priority: str
    queue_id: str
    retry_of: int | None = None
    roles: tuple[str, ...] | None = None
    structure_ref: Ref | None = None
    waits_for: tuple[str, ...] | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id, self.queue_id)


@final
class TaskAvailable(Payload, frozen=True, kw_only=True):
    """Nothing stands before the task any more: it may be claimed."""

    TYPE: ClassVar[str] = "task.available"

    attempt: int | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class TaskClaimAttempted(Payload, frozen=True, kw_only=True):
    """An agent asks for a task; the order of the ledger settles it."""

    TYPE: ClassVar[str] = "task.claim_attempted"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int
    body: str | None = None
    claim_id: str
    idem: str | None = None
    lease_seconds: int
    task_id: str

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskClaimed(Payload, frozen=True, kw_only=True):
    """The attempt has a holder."""

    TYPE: ClassVar[str] = "task.claimed"

    agent_id: str
    attempt: int | None = None
    claim_id: str
    lease_expires_at: str | None = None
    role_id: str | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskClaimMissed(Payload, frozen=True, kw_only=True):
    """Another agent's valid claim came first."""

    TYPE: ClassVar[str] = "task.claim_missed"

    agent_id: str | None = None
    attempt: int
    claim_id: str
    reason: str
    task_id: str
    winning_agent_id: str
    winning_claim_id: str

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskClaimRejected(Payload, frozen=True, kw_only=True):
    """The agent was not allowed to claim."""

    TYPE: ClassVar[str] = "task.claim_rejected"

    agent_id: str | None = None
    claim_id: str
    detail: str | None = None
    reason: str
    task_id: str

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskStarted(Payload, frozen=True, kw_only=True):
    """The holder has begun."""

    TYPE: ClassVar[str] = "task.started"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    body: str | None = None
    claim_id: str
    idem: str | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskReleased(Payload, frozen=True, kw_only=True):
    """The holder gives the task back."""

    TYPE: ClassVar[str] = "task.released"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    body: str | None = None
    claim_id: str
    idem: str | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskPlanCreated(Payload, frozen=True, kw_only=True):
    """The plan the holder follows."""

    TYPE: ClassVar[str] = "task.plan.created"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    body: str | None = None
    claim_id: str
    idem: str | None = None
    plan_ref: Ref
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskLeaseExtended(Payload, frozen=True, kw_only=True):
    """The hold lasts longer, or a late holder takes it up again."""

    TYPE: ClassVar[str] = "task.lease_extended"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    body: str | None = None
    claim_id: str
    idem: str | None = None
    lease_expires_at: str
    reacquired: bool | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskLeaseExpired(Payload, frozen=True, kw_only=True):
    """The hold is open to others."""

    TYPE: ClassVar[str] = "task.lease_expired"

    attempt: int | None = None
    claim_id: str
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.claim_id)


@final
class TaskBlocked(Payload, frozen=True, kw_only=True):
    """The holder cannot go on, says why, and lets go."""

    TYPE: ClassVar[str] = "task.blocked"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    attempts: int
    blocker_type: str
    body: str | None = None
    claim_id: str
    depends_on: tuple[str, ...] | None = None
    idem: str | None = None
    reason_ref: Ref
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskUnblocked(Payload, frozen=True, kw_only=True):
    """What stood in the way is gone."""

    TYPE: ClassVar[str] = "task.unblocked"
    KEYED: ClassVar[bool] = True

    answer_ref: Ref | None = None
    attempt: int | None = None
    body: str | None = None
    idem: str | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


class TaskVerification(WirePart, frozen=True, kw_only=True):
    """The `verification` of task events."""

    attempts: int
    mechanical: str
    semantic: str


@final
class TaskComplete(Payload, frozen=True, kw_only=True):
    """Done, and verified mechanically."""

    TYPE: ClassVar[str] = "task.complete"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    artifact_ids: tuple[str, ...]
    body: str | None = None
    claim_id: str
    cost_usd: int | float
    duration_seconds: int
    idem: str | None = None
    output_ref: Ref | None = None
    verification: TaskVerification

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id, self.claim_id)


@final
class TaskFailed(Payload, frozen=True, kw_only=True):
    """The attempt ended without success."""

    TYPE: ClassVar[str] = "task.failed"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    body: str | None = None
    claim_id: str | None = None
    idem: str | None = None
    kind: str
    reason_ref: Ref | None = None
    retry: bool
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


@final
class TaskCancelled(Payload, frozen=True, kw_only=True):
    """The task will not be done."""

    TYPE: ClassVar[str] = "task.cancelled"
    KEYED: ClassVar[bool] = True

    attempt: int | None = None
    body: str | None = None
    cause: str
    idem: str | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)
