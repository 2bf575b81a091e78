"""The entities of a world, as structs that are also their rows: what is written is what is loaded again.

Units stand last in names; times are whole nanoseconds of ledger time, 0 where they have not come.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from redkey.ledger.record import LOCAL_PAYER
from redkey.plans.structure import GatePolicy

DEFAULT_LEASE_SECONDS = 900
DEFAULT_LEASE_LOSSES = 5
DEFAULT_LIVE_CLAIMS = 1000
DEFAULT_IDLE_SECONDS = 1800
PRIORITIES = ("urgent", "high", "normal", "low")

Requirement = tuple[tuple[str, ...], tuple[str, ...]]


class Artifact(msgspec.Struct, gc=False, frozen=True, omit_defaults=True):
    """The last version of an artifact of an attempt; `document_sha256` names what was written of it."""

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
    """The last miss or rejection an agent was told for a task, so that asking again adds nothing to the ledger."""

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
    gate: GatePolicy | None = None
    gate_id: str = ""
    gate_passed: bool = False
    note_sha256: str = ""
    # What lifted the last block.
    answer_sha256: str = ""
    structure_sha256: str = ""
    structure_bytes: int = 0
    workflow_id: str = ""
    plan_task: str = ""
    reference_task_ids: tuple[str, ...] = ()
    parent_task_id: str = ""
    # The hold: who has the attempt now, and until when. `reserved` is the attempt that came first and will get it.
    reserved: str = ""
    claim_id: str = ""
    agent_id: str = ""
    claimed_at: int = 0
    lease_seconds_held: int = 0
    lease_expires_at: int = 0
    started_at: int = 0
    # The last hold that ended by expiry, as long as nobody claimed since.
    expired_claim_id: str = ""
    expired_agent_id: str = ""
    expired_state: str = ""
    # How it went.
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
    # What the last holder reported last; without a percentage it is -1.
    progress_at: int = 0
    progress_percent: int = -1
    progress_sha256: str = ""

    def ready_artifacts(self) -> Mapping[str, Artifact]:
        """The artifacts that the task may be completed with, by id."""
        return {artifact.artifact_id: artifact for artifact in self.artifacts if artifact.readiness != "draft"}


class Agent(msgspec.Struct, omit_defaults=True):
    """An agent: what it can do, which roles it was granted, and whether it was heard of."""

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
    # Why and until when it claims nothing, as it said itself.
    pause: str = ""
    paused_until: int = 0
    # Whose usage limits it shares: the account at its model's provider, as a label.
    account: str = ""


class Role(msgspec.Struct, omit_defaults=True):
    """A role: eligibility to claim certain tasks."""

    role_id: str
    created_at: int
    stream_seq: int = 1
    content_sha256: str = ""
    capabilities: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    # A role that was removed keeps its row and its place in its stream; one of the same id may be created again.
    removed_at: int = 0


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a queue decides for its tasks."""

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
    """A key as the ledger knows it; its secret is nowhere."""

    key_id: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: int
    agent_id: str = ""
    name_sha256: str = ""
    revoked_at: int = 0


class Workspace(msgspec.Struct, omit_defaults=True):
    """The workspace itself: the rules its records fold under, and what it may spend."""

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
    # event type -> credits; a request that is not listed costs one.
    prices: dict[str, int] = {}
    # Who paid for workspace.created: the log itself.
    operator: str = LOCAL_PAYER
    # blocker type -> the roles that are told, where they are others than the rules name.
    block_routes: dict[str, tuple[str, ...]] = {}
    # What may be spent, by scope (task, workflow, agent, day), and what was spent on the last day with costs (UTC).
    cost_caps: dict[str, int] = {}
    # Whether a person may decide on gates of its own work, and whether receipts open for everybody.
    self_approval: bool = False
    receipts_public: bool = False
    spent_day: int = 0
    day_nano_usd: int = 0
    # Whether required outputs may be unverified: "allow", or "refuse" and the same when it is empty.
    unverified_outputs: str = ""


class Party(msgspec.Struct, frozen=True, omit_defaults=True):
    """An account that may write on the topic: as one agent, or, without one, as another server of the operator."""

    payer: str
    added_at: int
    sequence: int
    agent_id: str = ""
    removed_at: int = 0


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who gets events by HTTP: a webhook of the workspace, or a push notification config of one task."""

    webhook_id: str
    task_id: str
    changed_at: int
    sequence: int
    settings_sha256: str = ""
    removed: bool = False

    @property
    def key(self) -> str:
        """The key of its row: those of a task are next to each other."""
        return f"{self.task_id}/{self.webhook_id}" if self.task_id else self.webhook_id


class Workflow(msgspec.Struct, omit_defaults=True):
    """A run of a plan, as its row has it; the steps have rows of their own."""

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
    # How many simple tasks were put beside those of its plan.
    extras: int = 0


class Step(msgspec.Struct, gc=False, omit_defaults=True):
    """One task of a run.

    waiting (for others, or for room), opening (its turn has come), open (the task lives), gated (done, to be
    approved), retry (another attempt is called for), again (it exists and waits for room), done, failed, stuck (failed,
    somebody must step in), dropped (something above it failed).
    """

    index: int
    state: str = "waiting"
    task_id: str = ""
    attempt: int = 0
    # What the approver said who sent the last attempt back.
    note_sha256: str = ""


class Gate(msgspec.Struct, gc=False, omit_defaults=True):
    """An approval that a completed attempt waits for. `worker` is who completed it, and may not decide on it unless
    `self_approval` says so."""

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
    # Told once more after its deadline.
    reminded: bool = False
    # The policy of the workspace when the gate opened.
    self_approval: bool = False


class Definition(msgspec.Struct, frozen=True):
    """A workflow definition of which something was published: its last version, and where the first one stands."""

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
    """A claim attempt whose outcome is not on the ledger yet; `reason` is set when its place already decides no."""

    claim_id: str
    task_id: str
    attempt: int
    agent_id: str
    lease_seconds: int
    wire_id: str
    timestamp: int
    reason: str = ""
    detail: str = ""
