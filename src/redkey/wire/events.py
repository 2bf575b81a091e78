"""Every event type as a struct. The class of `task.claimed` is `TaskClaimed`, and so for every type.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.payload import Payload, WirePart


class Ref(WirePart, frozen=True, kw_only=True):
    """Content outside the ledger, by hash."""

    bytes: int
    sha256: str


class WireStream(WirePart, frozen=True, kw_only=True):
    """The place of a wire: its stream and number, its context and its cause."""

    causation_id: str | None = None
    context_id: str
    correlation_id: str | None = None
    parent_task_id: str | None = None
    reference_task_ids: tuple[str, ...] | None = None
    stream_id: str
    stream_seq: int


class WireState(WirePart, frozen=True, kw_only=True):
    """The normalised lifecycle category of a task event."""

    category: str
    terminal: bool


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
class TaskUsageReported(Payload, frozen=True, kw_only=True):
    """What a model call, or several of them, used under a claim, as its holder reports it."""

    TYPE: ClassVar[str] = "task.usage_reported"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    claim_id: str
    cost_usd: int | float
    idem: str | None = None
    input_tokens: int | None = None
    model: str | None = None
    output_tokens: int | None = None
    reserved_usd: int | float | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id, self.claim_id)


@final
class TaskProgress(Payload, frozen=True, kw_only=True):
    """How far the work under a claim has come, as its holder reports it; what it says is content."""

    TYPE: ClassVar[str] = "task.progress"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    claim_id: str
    idem: str | None = None
    percent: int | None = None
    text_ref: Ref | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id, self.claim_id)


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
class TaskStalled(Payload, frozen=True, kw_only=True):
    """The holder did nothing for longer than its queue allows: the hold is open to others."""

    TYPE: ClassVar[str] = "task.stalled"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    attempt: int | None = None
    body: str | None = None
    claim_id: str
    idem: str | None = None
    idle_seconds: int
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.agent_id, self.claim_id)


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
    manifest_ref: Ref | None = None
    output_ref: Ref | None = None
    unverified: tuple[int, ...] | None = None
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


@final
class ArtifactReady(Payload, frozen=True, kw_only=True):
    """An output of the attempt exists, named by hash."""

    TYPE: ClassVar[str] = "artifact.ready"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    artifact_id: str
    body: str | None = None
    bytes: int
    claim_id: str
    content_ref: Ref
    derived_from: tuple[str, ...] | None = None
    idem: str | None = None
    name: str
    readiness: str
    sha256: str
    unverified: bool | None = None
    uri: str | None = None
    version: int

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id, self.claim_id)


@final
class ArtifactSuperseded(Payload, frozen=True, kw_only=True):
    """A version of the artifact was replaced: by its next version, or by another artifact."""

    TYPE: ClassVar[str] = "artifact.superseded"
    KEYED: ClassVar[bool] = True

    artifact_id: str | None = None
    attempt: int
    body: str | None = None
    by_artifact_id: str | None = None
    by_version: int
    idem: str | None = None
    task_id: str
    version: int

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class MessageAdded(Payload, frozen=True, kw_only=True):
    """Somebody said something about the task."""

    TYPE: ClassVar[str] = "message.added"
    KEYED: ClassVar[bool] = True

    attempt: int | None = None
    body: str | None = None
    idem: str | None = None
    message_id: str
    parts_ref: Ref
    role: str
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class ReviewConcern(Payload, frozen=True, kw_only=True):
    """A reviewer's concern about work in progress."""

    TYPE: ClassVar[str] = "review.concern"
    KEYED: ClassVar[bool] = True

    attempt: int | None = None
    body: str | None = None
    by: str
    concern_ref: Ref
    idem: str | None = None
    message_id: str
    severity: str
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class InboxSent(Payload, frozen=True, kw_only=True):
    """A message for an agent, a role or a human."""

    TYPE: ClassVar[str] = "inbox.sent"
    KEYED: ClassVar[bool] = True

    action_required: bool
    body: str | None = None
    body_ref: Ref
    idem: str | None = None
    message_id: str
    message_type: str
    priority: int
    ref_task_id: str | None = None
    to: str

    def named(self) -> tuple[str | None, ...]:
        return (self.ref_task_id,)


@final
class InboxRead(Payload, frozen=True, kw_only=True):
    """The message was read."""

    TYPE: ClassVar[str] = "inbox.read"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    message_id: str


@final
class AgentRegistered(Payload, frozen=True, kw_only=True):
    """An agent is known."""

    TYPE: ClassVar[str] = "agent.registered"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    capabilities: tuple[str, ...]
    card_ref: Ref
    idem: str | None = None
    slug: str
    verification: str

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentUpdated(Payload, frozen=True, kw_only=True):
    """What is known of an agent changed; `add` keeps the capabilities it had."""

    TYPE: ClassVar[str] = "agent.updated"
    KEYED: ClassVar[bool] = True

    active: bool | None = None
    add: bool | None = None
    agent_id: str | None = None
    body: str | None = None
    capabilities: tuple[str, ...] | None = None
    card_ref: Ref | None = None
    idem: str | None = None
    slug: str | None = None
    verification: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentDeactivated(Payload, frozen=True, kw_only=True):
    """The agent may not claim any more."""

    TYPE: ClassVar[str] = "agent.deactivated"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    idem: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentLost(Payload, frozen=True, kw_only=True):
    """Nothing was heard of the agent for some time."""

    TYPE: ClassVar[str] = "agent.lost"

    agent_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentHeartbeat(Payload, frozen=True, kw_only=True):
    """The agent is there, and has this much room."""

    TYPE: ClassVar[str] = "agent.heartbeat"
    KEYED: ClassVar[bool] = True

    account: str | None = None
    agent_id: str | None = None
    body: str | None = None
    capacity: int | None = None
    idem: str | None = None
    in_use: int | None = None
    pause: str | None = None
    paused_until: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class RoleCreated(Payload, frozen=True, kw_only=True):
    """A role exists."""

    TYPE: ClassVar[str] = "role.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    capabilities: tuple[str, ...] | None = None
    idem: str | None = None
    role_id: str | None = None
    role_ref: Ref | None = None


@final
class RoleGranted(Payload, frozen=True, kw_only=True):
    """The agent holds the role."""

    TYPE: ClassVar[str] = "role.granted"
    KEYED: ClassVar[bool] = True

    agent_id: str
    body: str | None = None
    idem: str | None = None
    role_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class RoleRevoked(Payload, frozen=True, kw_only=True):
    """The agent does not hold the role any more."""

    TYPE: ClassVar[str] = "role.revoked"
    KEYED: ClassVar[bool] = True

    agent_id: str
    body: str | None = None
    idem: str | None = None
    role_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class RoleUpdated(Payload, frozen=True, kw_only=True):
    """The role has other capabilities, or another name or description, from here on."""

    TYPE: ClassVar[str] = "role.updated"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    capabilities: tuple[str, ...] | None = None
    idem: str | None = None
    role_id: str | None = None
    role_ref: Ref | None = None


@final
class RoleRemoved(Payload, frozen=True, kw_only=True):
    """The role exists no more; no agent held it any more."""

    TYPE: ClassVar[str] = "role.removed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    role_id: str | None = None


class QueueSettings(WirePart, frozen=True, kw_only=True):
    """The `settings` of queue events."""

    allow_secrets: bool | None = None
    idle_seconds: int | None = None
    lease_losses: int | None = None
    lease_seconds: int | None = None
    max_attempts: int | None = None
    max_live_claims: int | None = None
    paused: bool | None = None
    priority: str | None = None


@final
class QueueCreated(Payload, frozen=True, kw_only=True):
    """A queue exists."""

    TYPE: ClassVar[str] = "queue.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    name_ref: Ref | None = None
    queue_id: str | None = None
    settings: QueueSettings

    def named(self) -> tuple[str | None, ...]:
        return (self.queue_id,)


@final
class QueueUpdated(Payload, frozen=True, kw_only=True):
    """A queue's settings changed."""

    TYPE: ClassVar[str] = "queue.updated"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    name_ref: Ref | None = None
    queue_id: str | None = None
    settings: QueueSettings

    def named(self) -> tuple[str | None, ...]:
        return (self.queue_id,)


@final
class QueueClaimRequested(Payload, frozen=True, kw_only=True):
    """An agent asks for the next task of a queue. Which task that is, is decided at the place of this wire in the
    order.
    """

    TYPE: ClassVar[str] = "queue.claim_requested"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    count: int | None = None
    idem: str | None = None
    lease_seconds: int | None = None
    queue_id: str

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id, self.queue_id)


@final
class WorkflowStarted(Payload, frozen=True, kw_only=True):
    """A plan runs."""

    TYPE: ClassVar[str] = "workflow.started"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref
    definition_id: str | None = None
    idem: str | None = None
    phase_id: str | None = None
    queue_id: str
    structure_ref: Ref
    version: int | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id, self.queue_id)


@final
class WorkflowPaused(Payload, frozen=True, kw_only=True):
    """Nothing more opens or is claimed."""

    TYPE: ClassVar[str] = "workflow.paused"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowResumed(Payload, frozen=True, kw_only=True):
    """The run goes on."""

    TYPE: ClassVar[str] = "workflow.resumed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowCancelled(Payload, frozen=True, kw_only=True):
    """The run ends now."""

    TYPE: ClassVar[str] = "workflow.cancelled"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowCompleted(Payload, frozen=True, kw_only=True):
    """Every task and gate of the run is done."""

    TYPE: ClassVar[str] = "workflow.completed"

    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowFailed(Payload, frozen=True, kw_only=True):
    """The run cannot be completed."""

    TYPE: ClassVar[str] = "workflow.failed"

    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class GateOpened(Payload, frozen=True, kw_only=True):
    """A completed attempt waits for approval."""

    TYPE: ClassVar[str] = "gate.opened"
    KEYED: ClassVar[bool] = True

    attempt: int
    body: str | None = None
    gate_id: str
    idem: str | None = None
    self_approval: bool | None = None
    task_id: str
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.workflow_id)


@final
class GateApproved(Payload, frozen=True, kw_only=True):
    """Somebody other than the worker approved."""

    TYPE: ClassVar[str] = "gate.approved"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    by: str
    gate_id: str
    idem: str | None = None
    note_ref: Ref | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class GateRejected(Payload, frozen=True, kw_only=True):
    """Rejected: the task is tried again with the note."""

    TYPE: ClassVar[str] = "gate.rejected"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    by: str
    gate_id: str
    idem: str | None = None
    note_ref: Ref | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class ProjectCreated(Payload, frozen=True, kw_only=True):
    """A project exists."""

    TYPE: ClassVar[str] = "project.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref
    idem: str | None = None
    project_id: str | None = None


@final
class ProjectUpdated(Payload, frozen=True, kw_only=True):
    """The project has another name, description or status from here on."""

    TYPE: ClassVar[str] = "project.updated"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref | None = None
    idem: str | None = None
    project_id: str | None = None
    status: str | None = None


@final
class ProjectCompleted(Payload, frozen=True, kw_only=True):
    """The project is done: it takes no more phases."""

    TYPE: ClassVar[str] = "project.completed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    project_id: str | None = None


@final
class PhaseCreated(Payload, frozen=True, kw_only=True):
    """A phase of a project exists."""

    TYPE: ClassVar[str] = "phase.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref
    idem: str | None = None
    phase_id: str | None = None
    project_id: str


@final
class PhaseUpdated(Payload, frozen=True, kw_only=True):
    """The phase has another name, description or status from here on."""

    TYPE: ClassVar[str] = "phase.updated"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref | None = None
    idem: str | None = None
    phase_id: str | None = None
    status: str | None = None


@final
class PhaseCompleted(Payload, frozen=True, kw_only=True):
    """The phase is done: it takes no more runs."""

    TYPE: ClassVar[str] = "phase.completed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    phase_id: str | None = None


@final
class DefinitionPublished(Payload, frozen=True, kw_only=True):
    """A version of a definition can be run, and never changes."""

    TYPE: ClassVar[str] = "definition.published"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref
    definition_id: str
    idem: str | None = None
    structure_ref: Ref
    version: int


@final
class WorkspaceCreated(Payload, frozen=True, kw_only=True):
    """A workspace exists; its records fold under these rules."""

    TYPE: ClassVar[str] = "workspace.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    name_ref: Ref | None = None
    rules: int
    self_approval: bool | None = None
    workspace_id: str | None = None


@final
class WorkspaceRulesRaised(Payload, frozen=True, kw_only=True):
    """Later records fold under newer rules."""

    TYPE: ClassVar[str] = "workspace.rules_raised"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    rules: int
    workspace_id: str | None = None


class WorkspaceBlockRoute(WirePart, frozen=True, kw_only=True):
    """The `block_route` of workspace events."""

    blocker_type: str
    roles: tuple[str, ...]


class WorkspaceCostCap(WirePart, frozen=True, kw_only=True):
    """The `cost_cap` of workspace events."""

    cost_usd: int | float | None = None
    scope: str


class WorkspaceRetry(WirePart, frozen=True, kw_only=True):
    """The `retry` of workspace events."""

    attempts: int
    backoff_percent: int
    delay_ms: int
    jitter_percent: int
    longest_ms: int


@final
class WorkspacePolicySet(Payload, frozen=True, kw_only=True):
    """What the workspace decides for itself; each event sets one policy."""

    TYPE: ClassVar[str] = "workspace.policy_set"
    KEYED: ClassVar[bool] = True

    block_route: WorkspaceBlockRoute | None = None
    body: str | None = None
    cost_cap: WorkspaceCostCap | None = None
    idem: str | None = None
    receipts_public: bool | None = None
    retry: WorkspaceRetry | None = None
    self_approval: bool | None = None
    unverified_outputs: str | None = None
    workspace_id: str | None = None


@final
class WebhookSet(Payload, frozen=True, kw_only=True):
    """The workspace sends chosen events to a URL; the settings (URL, event types) are content."""

    TYPE: ClassVar[str] = "webhook.set"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    settings_ref: Ref
    webhook_id: str
    workspace_id: str | None = None


@final
class WebhookRemoved(Payload, frozen=True, kw_only=True):
    """A webhook gets nothing any more."""

    TYPE: ClassVar[str] = "webhook.removed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    webhook_id: str
    workspace_id: str | None = None


@final
class PushSet(Payload, frozen=True, kw_only=True):
    """The updates of a task are sent to a URL, as A2A push notifications; the settings (URL, token, authentication)
    are content.
    """

    TYPE: ClassVar[str] = "push.set"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    push_id: str
    settings_ref: Ref
    task_id: str
    workspace_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class PushRemoved(Payload, frozen=True, kw_only=True):
    """A push notification config of a task is gone."""

    TYPE: ClassVar[str] = "push.removed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    push_id: str
    task_id: str
    workspace_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class PartyAdded(Payload, frozen=True, kw_only=True):
    """Somebody else may write on this topic: the account that pays for its records. With an agent it writes as that
    agent alone, without one it is another server of the operator.
    """

    TYPE: ClassVar[str] = "party.added"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    idem: str | None = None
    payer: str

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class PartyRemoved(Payload, frozen=True, kw_only=True):
    """An account may write on this topic no more; its records from here on are void."""

    TYPE: ClassVar[str] = "party.removed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    payer: str


@final
class TopicAssigned(Payload, frozen=True, kw_only=True):
    """A topic of a public network belongs to the workspace from here on, or belongs to another owner."""

    TYPE: ClassVar[str] = "topic.assigned"
    KEYED: ClassVar[bool] = True

    account: str | None = None
    body: str | None = None
    idem: str | None = None
    network: str
    owner: str
    topic: str
    use: str


@final
class TopicRetired(Payload, frozen=True, kw_only=True):
    """A topic of a public network is used no more: nothing that stands on it after this record counts."""

    TYPE: ClassVar[str] = "topic.retired"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    network: str
    topic: str


@final
class KeyCreated(Payload, frozen=True, kw_only=True):
    """A key exists; its secret is nowhere, and the hash of it is here."""

    TYPE: ClassVar[str] = "key.created"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    idem: str | None = None
    key_hash: str | None = None
    key_id: str
    name_ref: Ref | None = None
    person: bool | None = None
    prefix: str
    scopes: tuple[str, ...]

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class KeyRevoked(Payload, frozen=True, kw_only=True):
    """The key opens nothing any more."""

    TYPE: ClassVar[str] = "key.revoked"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    key_id: str


@final
class KeyRecovered(Payload, frozen=True, kw_only=True):
    """A key was made from the data directory itself, by somebody who was locked out; its secret is nowhere."""

    TYPE: ClassVar[str] = "key.recovered"

    key_hash: str | None = None
    key_id: str
    prefix: str
    scopes: tuple[str, ...]


@final
class ContentErased(Payload, frozen=True, kw_only=True):
    """Content was erased; its hash stays."""

    TYPE: ClassVar[str] = "content.erased"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    sha256: str


@final
class SignerAdded(Payload, frozen=True, kw_only=True):
    """A key signs this log's checkpoints."""

    TYPE: ClassVar[str] = "signer.added"

    public_key: str
    signer_id: str


@final
class SignerRetired(Payload, frozen=True, kw_only=True):
    """The key signs no later checkpoint."""

    TYPE: ClassVar[str] = "signer.retired"

    public_key: str | None = None
    signer_id: str
    tree_size: int | None = None


@final
class LedgerRestored(Payload, frozen=True, kw_only=True):
    """The log goes on from a backup, in a new epoch."""

    TYPE: ClassVar[str] = "ledger.restored"

    epoch: int
    origin: str | None = None
    root: str
    tree_size: int


@final
class CreditsGranted(Payload, frozen=True, kw_only=True):
    """The workspace may use this much more."""

    TYPE: ClassVar[str] = "credits.granted"
    KEYED: ClassVar[bool] = True

    amount: int
    body: str | None = None
    idem: str | None = None
    unit: str


@final
class CreditsPriced(Payload, frozen=True, kw_only=True):
    """From here on, requests cost what this table says."""

    TYPE: ClassVar[str] = "credits.priced"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    prices_ref: Ref
    version: int


@final
class CheckpointAnchored(Payload, frozen=True, kw_only=True):
    """A checkpoint stands on a public network."""

    TYPE: ClassVar[str] = "checkpoint.anchored"

    network: str
    root: str
    sequence_number: int
    topic_id: str
    tree_size: int


AnyPayload = (
    TaskCreated
    | TaskAvailable
    | TaskClaimAttempted
    | TaskClaimed
    | TaskClaimMissed
    | TaskClaimRejected
    | TaskStarted
    | TaskReleased
    | TaskPlanCreated
    | TaskUsageReported
    | TaskProgress
    | TaskLeaseExtended
    | TaskLeaseExpired
    | TaskStalled
    | TaskBlocked
    | TaskUnblocked
    | TaskComplete
    | TaskFailed
    | TaskCancelled
    | ArtifactReady
    | ArtifactSuperseded
    | MessageAdded
    | ReviewConcern
    | InboxSent
    | InboxRead
    | AgentRegistered
    | AgentUpdated
    | AgentDeactivated
    | AgentLost
    | AgentHeartbeat
    | RoleCreated
    | RoleGranted
    | RoleRevoked
    | RoleUpdated
    | RoleRemoved
    | QueueCreated
    | QueueUpdated
    | QueueClaimRequested
    | WorkflowStarted
    | WorkflowPaused
    | WorkflowResumed
    | WorkflowCancelled
    | WorkflowCompleted
    | WorkflowFailed
    | GateOpened
    | GateApproved
    | GateRejected
    | ProjectCreated
    | ProjectUpdated
    | ProjectCompleted
    | PhaseCreated
    | PhaseUpdated
    | PhaseCompleted
    | DefinitionPublished
    | WorkspaceCreated
    | WorkspaceRulesRaised
    | WorkspacePolicySet
    | WebhookSet
    | WebhookRemoved
    | PushSet
    | PushRemoved
    | PartyAdded
    | PartyRemoved
    | TopicAssigned
    | TopicRetired
    | KeyCreated
    | KeyRevoked
    | KeyRecovered
    | ContentErased
    | SignerAdded
    | SignerRetired
    | LedgerRestored
    | CreditsGranted
    | CreditsPriced
    | CheckpointAnchored
)

# The struct of each event type.
PAYLOADS: dict[str, type[AnyPayload]] = {
    TaskCreated.TYPE: TaskCreated,
    TaskAvailable.TYPE: TaskAvailable,
    TaskClaimAttempted.TYPE: TaskClaimAttempted,
    TaskClaimed.TYPE: TaskClaimed,
    TaskClaimMissed.TYPE: TaskClaimMissed,
    TaskClaimRejected.TYPE: TaskClaimRejected,
    TaskStarted.TYPE: TaskStarted,
    TaskReleased.TYPE: TaskReleased,
    TaskPlanCreated.TYPE: TaskPlanCreated,
    TaskUsageReported.TYPE: TaskUsageReported,
    TaskProgress.TYPE: TaskProgress,
    TaskLeaseExtended.TYPE: TaskLeaseExtended,
    TaskLeaseExpired.TYPE: TaskLeaseExpired,
    TaskStalled.TYPE: TaskStalled,
    TaskBlocked.TYPE: TaskBlocked,
    TaskUnblocked.TYPE: TaskUnblocked,
    TaskComplete.TYPE: TaskComplete,
    TaskFailed.TYPE: TaskFailed,
    TaskCancelled.TYPE: TaskCancelled,
    ArtifactReady.TYPE: ArtifactReady,
    ArtifactSuperseded.TYPE: ArtifactSuperseded,
    MessageAdded.TYPE: MessageAdded,
    ReviewConcern.TYPE: ReviewConcern,
    InboxSent.TYPE: InboxSent,
    InboxRead.TYPE: InboxRead,
    AgentRegistered.TYPE: AgentRegistered,
    AgentUpdated.TYPE: AgentUpdated,
    AgentDeactivated.TYPE: AgentDeactivated,
    AgentLost.TYPE: AgentLost,
    AgentHeartbeat.TYPE: AgentHeartbeat,
    RoleCreated.TYPE: RoleCreated,
    RoleGranted.TYPE: RoleGranted,
    RoleRevoked.TYPE: RoleRevoked,
    RoleUpdated.TYPE: RoleUpdated,
    RoleRemoved.TYPE: RoleRemoved,
    QueueCreated.TYPE: QueueCreated,
    QueueUpdated.TYPE: QueueUpdated,
    QueueClaimRequested.TYPE: QueueClaimRequested,
    WorkflowStarted.TYPE: WorkflowStarted,
    WorkflowPaused.TYPE: WorkflowPaused,
    WorkflowResumed.TYPE: WorkflowResumed,
    WorkflowCancelled.TYPE: WorkflowCancelled,
    WorkflowCompleted.TYPE: WorkflowCompleted,
    WorkflowFailed.TYPE: WorkflowFailed,
    GateOpened.TYPE: GateOpened,
    GateApproved.TYPE: GateApproved,
    GateRejected.TYPE: GateRejected,
    ProjectCreated.TYPE: ProjectCreated,
    ProjectUpdated.TYPE: ProjectUpdated,
    ProjectCompleted.TYPE: ProjectCompleted,
    PhaseCreated.TYPE: PhaseCreated,
    PhaseUpdated.TYPE: PhaseUpdated,
    PhaseCompleted.TYPE: PhaseCompleted,
    DefinitionPublished.TYPE: DefinitionPublished,
    WorkspaceCreated.TYPE: WorkspaceCreated,
    WorkspaceRulesRaised.TYPE: WorkspaceRulesRaised,
    WorkspacePolicySet.TYPE: WorkspacePolicySet,
    WebhookSet.TYPE: WebhookSet,
    WebhookRemoved.TYPE: WebhookRemoved,
    PushSet.TYPE: PushSet,
    PushRemoved.TYPE: PushRemoved,
    PartyAdded.TYPE: PartyAdded,
    PartyRemoved.TYPE: PartyRemoved,
    TopicAssigned.TYPE: TopicAssigned,
    TopicRetired.TYPE: TopicRetired,
    KeyCreated.TYPE: KeyCreated,
    KeyRevoked.TYPE: KeyRevoked,
    KeyRecovered.TYPE: KeyRecovered,
    ContentErased.TYPE: ContentErased,
    SignerAdded.TYPE: SignerAdded,
    SignerRetired.TYPE: SignerRetired,
    LedgerRestored.TYPE: LedgerRestored,
    CreditsGranted.TYPE: CreditsGranted,
    CreditsPriced.TYPE: CreditsPriced,
    CheckpointAnchored.TYPE: CheckpointAnchored,
}
