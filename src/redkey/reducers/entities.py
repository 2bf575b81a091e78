"""The entities of a world. Each struct is also the row that is stored and loaded again.

Field names end with their unit. Times are nanoseconds of ledger time; 0 means not yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.ledger.record import LOCAL_PAYER
from redkey.plans.structure import GatePolicy
from redkey.reducers.retrying import RetryDelay, RetryPolicy

DEFAULT_LEASE_SECONDS = 900
DEFAULT_LEASE_LOSSES = 5
DEFAULT_LIVE_CLAIMS = 1000
DEFAULT_IDLE_SECONDS = 1800
PRIORITIES = ("urgent", "high", "normal", "low")
AWAITING_APPROVAL = "awaiting_approval"

Requirement = tuple[tuple[str, ...], tuple[str, ...]]


class Artifact(msgspec.Struct, gc=False, frozen=True, omit_defaults=True):
    """The last version of an artifact of an attempt; `document_sha256` names its stored document."""

    artifact_id: str
    name: str
    readiness: str
    version: int
    sha256: str
    bytes: int
    document_sha256: str
    # RedKey did not see the bytes.
    unverified: bool = False


class Miss(msgspec.Struct, gc=False, frozen=True):
    """The last miss or rejection of an agent's claim on a task. Asking again repeats it without a new ledger record."""

    attempt: int
    reason: str
    detail: str
    winning_claim_id: str
    sequence: int


class Task(msgspec.Struct, gc=False, omit_defaults=True):
    """A task and its current attempt."""

    task_id: str
    attempt: int
    state: str
    queue_id: str
    priority: int
    sequence: int
    created_at: int
    updated_at: int
    content_sha256: str
    content_bytes: int
    context_id: str
    stream_seq: int = 1
    roles: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    lease_seconds: int = 0
    deadline_at: int = 0
    max_attempts: int = 1
    on_failure: str = "reopen"
    # The pause between attempts, and the time this attempt becomes available because of it.
    retry: RetryDelay | None = None
    opens_at: int = 0
    gate: GatePolicy | None = None
    gate_id: str = ""
    gate_passed: bool = False
    note_sha256: str = ""
    # The answer that ended the last block.
    answer_sha256: str = ""
    structure_sha256: str = ""
    structure_bytes: int = 0
    workflow_id: str = ""
    plan_task: str = ""
    reference_task_ids: tuple[str, ...] = ()
    parent_task_id: str = ""
    # The hold: who has the attempt and until when. `reserved` is the claim that came first and will win.
    reserved: str = ""
    claim_id: str = ""
    agent_id: str = ""
    claimed_at: int = 0
    lease_seconds_held: int = 0
    lease_expires_at: int = 0
    started_at: int = 0
    # The last hold whose lease expired; cleared by the next claim.
    expired_claim_id: str = ""
    expired_agent_id: str = ""
    expired_state: str = ""
    # How the attempt went.
    winner_claim_id: str = ""
    winner_agent_id: str = ""
    lease_losses: int = 0
    blocker_type: str = ""
    blocked_by: tuple[str, ...] = ()
    failure_kind: str = ""
    reason_sha256: str = ""
    reason_bytes: int = 0
    cause: str = ""
    artifacts: tuple[Artifact, ...] = ()
    output_sha256: str = ""
    ended_at: int = 0
    ended_by: str = ""
    # What was spent, in billionths of a dollar: by all attempts, and as reported by the last claim.
    nano_usd: int = 0
    claim_nano_usd: int = 0
    # What the model call that its holder makes now may cost.
    reserved_nano_usd: int = 0
    # The last progress report of the last holder; -1 without a percentage.
    progress_at: int = 0
    progress_percent: int = -1
    progress_sha256: str = ""
    # The wire that caused the current state, while an act of the holder or of a person would follow from it.
    moved_by: str = ""
    # What the work is grouped by, if not by its context; and the extensions of the wire that created the task.
    correlation_id: str = ""
    extensions: dict[str, Any] | None = None

    def ready_artifacts(self) -> Mapping[str, Artifact]:
        """The artifacts that may complete the task, by id."""
        return {artifact.artifact_id: artifact for artifact in self.artifacts if artifact.readiness != "draft"}

    @property
    def shown_state(self) -> str:
        """The state as views show it: a completed task whose gate is open awaits approval."""
        return AWAITING_APPROVAL if self.gate_id and self.state == "completed" else self.state


class Agent(msgspec.Struct, omit_defaults=True):
    """An agent: its capabilities, its roles, and when it was last seen."""

    agent_id: str
    slug: str
    card_sha256: str
    registered_at: int
    last_act_at: int
    stream_seq: int = 1
    verification: str = "unverified"
    active: bool = True
    lost: bool = False
    capabilities: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    live_claims: int = 0
    capacity: int = -1
    in_use: int = -1
    heartbeat_at: int = 0
    nano_usd: int = 0
    # Why and until when it claims nothing, as the agent reported.
    pause: str = ""
    paused_until: int = 0
    # The account at its model's provider, as a label; agents of one account share its usage limits.
    account: str = ""


class Role(msgspec.Struct, omit_defaults=True):
    """A role: eligibility to claim certain tasks."""

    role_id: str
    created_at: int
    stream_seq: int = 1
    content_sha256: str = ""
    capabilities: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    # A removed role keeps its row and its stream number; a role with the same id may be created again.
    removed_at: int = 0


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings that a queue applies to its tasks."""

    lease_seconds: int = DEFAULT_LEASE_SECONDS
    max_attempts: int = 1
    priority: str = "normal"
    paused: bool = False
    allow_secrets: bool = False
    max_live_claims: int = DEFAULT_LIVE_CLAIMS
    lease_losses: int = DEFAULT_LEASE_LOSSES
    idle_seconds: int = DEFAULT_IDLE_SECONDS


class Queue(msgspec.Struct, omit_defaults=True):
    """A queue and its settings."""

    queue_id: str
    created_at: int
    stream_seq: int = 1
    content_sha256: str = ""
    settings: Settings = Settings()


class Project(msgspec.Struct, omit_defaults=True):
    """A project: it contains phases."""

    project_id: str
    created_at: int
    sequence: int
    content_sha256: str
    stream_seq: int = 1
    # active, on_hold or completed.
    status: str = "active"
    completed_at: int = 0


class Phase(msgspec.Struct, omit_defaults=True):
    """A phase of a project: it contains workflows."""

    phase_id: str
    created_at: int
    sequence: int
    content_sha256: str
    project_id: str
    stream_seq: int = 1
    status: str = "active"
    completed_at: int = 0


class StoredArtifact(msgspec.Struct, gc=False, frozen=True, omit_defaults=True):
    """The last version of an artifact, by artifact id; its task may have left the world."""

    artifact: Artifact
    task_id: str
    attempt: int
    at: int
    sequence: int


class Superseded(msgspec.Struct, gc=False, frozen=True):
    """The artifact that replaces the last version of another artifact."""

    version: int
    by_artifact_id: str
    by_version: int
    at: int
    sequence: int


class Message(msgspec.Struct, gc=False, omit_defaults=True):
    """An inbox message."""

    message_id: str
    to: str
    priority: int
    message_type: str
    body_sha256: str
    sender: str
    sent_at: int
    sequence: int
    ref_task_id: str = ""
    action_required: bool = False
    read_at: int = 0


class Key(msgspec.Struct, omit_defaults=True):
    """A key as the ledger knows it; its secret is never stored."""

    key_id: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: int
    agent_id: str = ""
    name_sha256: str = ""
    revoked_at: int = 0
    # True for a person who logs in by a one-time code or identity provider; the secret was never shown.
    person: bool = False


class Topic(msgspec.Struct, frozen=True, omit_defaults=True):
    """A topic of a public network that belongs to the workspace: it provides the order, or anchors checkpoints."""

    topic: str
    network: str
    use: str
    owner: str
    assigned_at: int
    account: str = ""
    retired_at: int = 0


class Workspace(msgspec.Struct, omit_defaults=True):
    """The workspace itself: the rules that its records fold under, and what it may spend."""

    workspace_id: str = ""
    rules: int = 0
    created_at: int = 0
    stream_seq: int = 0
    name_sha256: str = ""
    credits_granted: int = 0
    credits_used: int = 0
    credits_unit: str = "credit"
    price_version: int = 0
    price_sha256: str = ""
    # event type -> credits; an event type that is not listed costs one credit.
    prices: dict[str, int] = {}
    # The account that paid for workspace.created: the log's own account.
    operator: str = LOCAL_PAYER
    # blocker type -> the roles that are notified, where the workspace overrides the defaults.
    block_routes: dict[str, tuple[str, ...]] = {}
    # Cost caps by scope (task, workflow, agent, day), and what was spent on the last UTC day with costs.
    cost_caps: dict[str, int] = {}
    # Whether a person may decide on gates of their own work, and whether receipts are public.
    self_approval: bool = False
    receipts_public: bool = False
    spent_day: int = 0
    day_nano_usd: int = 0
    # Whether required outputs may be unverified: "allow" or "refuse"; empty means refuse.
    unverified_outputs: str = ""
    # The retry policy of tasks that do not set their own.
    retry: RetryPolicy | None = None
    # The topics of public networks that belong to the workspace, by network and id.
    topics: dict[str, Topic] = {}

    @property
    def is_ordered(self) -> bool:
        """True when a public network provides the order of the workspace."""
        return any(topic.use == "order" for topic in self.topics.values())


class Party(msgspec.Struct, frozen=True, omit_defaults=True):
    """An account that may write on the topic: as one agent or, without an agent, as another server of the operator."""

    payer: str
    added_at: int
    sequence: int
    agent_id: str = ""
    removed_at: int = 0


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A receiver of events by HTTP: a webhook of the workspace, or a push notification config of one task."""

    webhook_id: str
    task_id: str
    changed_at: int
    sequence: int
    settings_sha256: str = ""
    removed: bool = False

    @property
    def key(self) -> str:
        """The key of its row; the webhooks of one task sort together."""
        return f"{self.task_id}/{self.webhook_id}" if self.task_id else self.webhook_id


class Workflow(msgspec.Struct, omit_defaults=True):
    """A run of a plan, as stored in its row; the steps have rows of their own."""

    workflow_id: str
    queue_id: str
    state: str
    started_at: int
    sequence: int
    content_sha256: str
    content_bytes: int
    structure_sha256: str
    structure_bytes: int
    stream_seq: int = 1
    definition_id: str = ""
    version: int = 0
    total: int = 0
    done: int = 0
    failed: int = 0
    dropped: int = 0
    ended_at: int = 0
    nano_usd: int = 0
    # How many simple tasks were added to the run beside those of its plan.
    extras: int = 0
    # Its phase, and as correlation the project of that phase.
    phase_id: str = ""
    correlation_id: str = ""


class Step(msgspec.Struct, gc=False, omit_defaults=True):
    """One task of a run. Its states:

    waiting (for other steps, or for room), opening (it may start), open (its task exists), gated (completed, waits for
    approval), retry (another attempt will follow), again (the next attempt exists and waits for room), done, failed,
    stuck (failed, a person must step in), dropped (a step it depends on failed).
    """

    index: int
    state: str = "waiting"
    task_id: str = ""
    attempt: int = 0
    # The note of the approver who rejected the last attempt.
    note_sha256: str = ""


class Gate(msgspec.Struct, gc=False, omit_defaults=True):
    """An approval that a completed attempt waits for. `worker` completed it and may not approve it, unless
    `self_approval` is set."""

    gate_id: str
    task_id: str
    attempt: int
    queue_id: str
    workflow_id: str
    worker: str
    agent_id: str
    opened_at: int
    sequence: int
    approvers: tuple[str, ...] = ()
    deadline_at: int = 0
    on_deadline: str = "hold"
    state: str = "open"
    closed_at: int = 0
    closed_by: str = ""
    note_sha256: str = ""
    # A reminder was sent after its deadline.
    reminded: bool = False
    # The workspace policy when the gate opened.
    self_approval: bool = False


class Definition(msgspec.Struct, frozen=True):
    """A published workflow definition: its last version, and the sequence of its first one."""

    definition_id: str
    version: int
    sequence: int


class Version(msgspec.Struct, frozen=True):
    """One published version of a definition."""

    definition_id: str
    version: int
    content_sha256: str
    content_bytes: int
    structure_sha256: str
    structure_bytes: int
    published_at: int
    published_by: str
    sequence: int


class Pending(msgspec.Struct, frozen=True, gc=False):
    """A claim attempt whose outcome is not on the ledger yet; `reason` is set if it is already known to fail."""

    claim_id: str
    task_id: str
    attempt: int
    agent_id: str
    lease_seconds: int
    wire_id: str
    timestamp: int
    reason: str = ""
    detail: str = ""
