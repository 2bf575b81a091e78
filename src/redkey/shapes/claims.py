"""Claims: how agents get tasks, and everything that a holder does until its claim ends.

Exactly one agent wins each task; every other one learns at once that it lost, and to which claim.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from redkey.shapes.fields import (
    BATCH_LIMIT,
    Body,
    Extended,
    Id,
    IdempotencyKey,
    Identified,
    LeaseSeconds,
    Name,
    Reply,
    Sha256,
    Slug,
    TaskId,
    Text,
    Wait,
    one_of,
)
from redkey.shapes.fields import BlockerType as BlockerType
from redkey.shapes.operation import AGENT, Operation
from redkey.shapes.problem import NextStep, Problem
from redkey.shapes.tasks import MediaType, Upstream, UpstreamResult

AskedLease = Annotated[
    int,
    Meta(ge=-(1 << 31), lt=1 << 31, description="5 seconds to 24 hours; any other value is rejected, on the record."),
]


ClaimId = Annotated[str, Meta(min_length=1, max_length=64)]
ArtifactId = Annotated[str, Meta(pattern="^art_[0-7][0-9A-HJKMNP-TV-Z]{25}$", max_length=30)]
FailureKind = Literal["error", "timeout", "verification", "rejected"]
Readiness = Literal["draft", "ready", "final"]


class ClaimRequest(Extended, frozen=True, kw_only=True):
    """An agent's claim on a task."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    # Whether the reply includes the task's input and brief, as claim-next always does.
    with_task: bool = False
    idempotency_key: IdempotencyKey | None = None


class ClaimNextRequest(Extended, frozen=True, kw_only=True):
    """An agent's claim on the next tasks of a queue that it may claim."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    count: Annotated[int, Meta(ge=1, le=100)] | None = None
    wait: Wait = 0
    idempotency_key: IdempotencyKey | None = None


class Assignment(Reply, frozen=True, kw_only=True):
    """The task that comes with a claim: only what never changes, so that a repeated claim gets the same reply."""

    task_id: str
    queue_id: str
    attempt: int
    workflow_id: str = ""
    plan_task_id: str = ""
    context_id: str
    title: str = ""
    description: str = ""
    input: Any = None
    brief: dict[str, Any] | None = None
    completion_criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    required_roles: tuple[str, ...]
    required_capabilities: tuple[str, ...]
    priority: str
    correlation_id: str = ""
    parent_task_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    extensions: dict[str, Any] | None = None
    # For a plan's task: its inputs, its required result, the run's input, and the note of an approver.
    expected_inputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    upstream: tuple[Upstream, ...] = ()
    results: tuple[UpstreamResult, ...] = ()
    workflow_input: Any = None
    note: str = ""
    # The notes of the agents that did the tasks before this one, without their names.
    prior_context: tuple[str, ...] = ()
    # The answer that ended the task's last block, if there was one.
    answer: str = ""
    erased: bool = False


class Claimed(Reply, frozen=True, kw_only=True, tag_field="status", tag="claimed"):
    """The task belongs to this agent until the lease expires. `task` is included on request, and always by claim-next;
    without it, `upstream` and `results` are the outputs of the tasks that this one depends on."""

    status: ClassVar[str] = "claimed"
    task_id: str
    claim_id: str
    agent_id: str
    lease_expires_at: str
    event_id: str
    upstream: tuple[Upstream, ...] = ()
    results: tuple[UpstreamResult, ...] = ()
    task: Assignment | None = None
    claims: tuple[Claimed, ...] | None = None


class Missed(Reply, frozen=True, kw_only=True, tag_field="status", tag="missed"):
    """Another claim won. Do not retry the same task at once; claim the next one."""

    status: ClassVar[str] = "missed"
    task_id: str
    agent_id: str
    reason: str
    winning_claim_id: str
    winning_agent_id: str
    event_id: str
    next: NextStep


class Rejected(Reply, frozen=True, kw_only=True, tag_field="status", tag="rejected"):
    """The agent may not claim this. A rejected claim-next names no task and writes no event; the same holds for a claim
    on a task that the agent has completed itself (`completed_by_you`; `detail` is its claim)."""

    status: ClassVar[str] = "rejected"
    task_id: str = ""
    agent_id: str
    reason: str
    detail: str = ""
    event_id: str = ""
    next: NextStep


class NoTasks(Reply, frozen=True, kw_only=True, tag_field="status", tag="no_tasks"):
    """The queue has nothing that this agent may claim now."""

    status: ClassVar[str] = "no_tasks"
    agent_id: str
    queue_id: str
    next: NextStep


ClaimOutcome: TypeAlias = Claimed | Missed | Rejected
ClaimNextOutcome: TypeAlias = Claimed | Missed | Rejected | NoTasks


class ClaimChanged(Reply, frozen=True, kw_only=True):
    """The result of an act on a claim."""

    status: Annotated[str, one_of("started", "released", "blocked", "planned", "completed", "failed")]
    task_id: str
    claim_id: str
    event_id: str


class ClaimEnded(ClaimChanged, frozen=True, kw_only=True):
    """A claim that has ended; `next` is the outcome of the claim that was requested with it."""

    # After a failure: whether another attempt follows.
    retry: bool | None = None
    gate_id: str = ""
    next: ClaimNextOutcome | None = None


class HolderActivity(Extended, frozen=True, kw_only=True):
    """What a process that keeps a claim without a handler reports; a running handler counts as activity."""

    # From the `idleSeconds` of its queue on, the lease is not extended: the hold stalls, and others may claim the task.
    idle_seconds: Annotated[int, Meta(ge=0, le=31_536_000, description="How long the holder has been idle.")] = 0


class Heartbeat(Reply, frozen=True, kw_only=True):
    """Whether the claim still holds its task, and until when. A stalled hold resumes with its holder's next act. For an
    ended claim, `state` is the state of the task if this claim was its last holder."""

    state: Annotated[str, one_of("held", "stalled", "lease_lost", "completed", "failed", "cancelled")]
    lease_expires_at: str | None = None
    event_id: str = ""


class ClaimNext(Body, frozen=True):
    """The next claim of a busy worker, requested together with the end of the current one."""

    queue_id: Name
    lease_seconds: LeaseSeconds | None = None


class NewArtifact(Extended, frozen=True, kw_only=True):
    """A durable output, in one of three ways: inline content, the hash of uploaded content, or a URI with a hash."""

    name: Slug
    # Text, or JSON.
    content: Any | UnsetType = UNSET
    content_base64: str | None = None
    uri: Annotated[str, Meta(pattern="^[!-~]+$", min_length=1, max_length=2048)] | None = None
    sha256: Sha256 | None = None
    bytes: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    media_type: MediaType | None = None
    readiness: Readiness = "ready"
    # Set to add a new version of this artifact of the same attempt.
    artifact_id: ArtifactId | None = None
    derived_from: Annotated[tuple[ArtifactId, ...], Meta(max_length=4)] = ()
    # Another artifact that this one replaces, for example one of a task that has ended.
    supersedes: ArtifactId | None = None


class Completion(Extended, frozen=True, kw_only=True):
    """The result of the work. Required outputs must have ready artifacts; the server checks that and names them beside
    those in `artifactIds`. Without `artifactIds` every ready artifact is named; more than four go into a manifest.
    `artifacts` are added with the completion. A required output without an artifact is taken from the field of the
    same name in `output`."""

    output: Any = None
    artifacts: Annotated[tuple[NewArtifact, ...], Meta(max_length=32)] = ()
    summary: Text = ""
    artifact_ids: Annotated[tuple[Id, ...], Meta(max_length=256)] = ()
    cost_usd: Annotated[float, Meta(ge=0, le=1_000_000)] = 0
    duration_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] | None = None
    semantic: Literal["pass", "fail", "skipped"] = "skipped"
    # How many tries it took until the work passed its verification.
    attempts: Annotated[int, Meta(ge=1, le=999)] = 1
    notes: Text = ""
    claim_next: ClaimNext | None = None


class BatchedCompletion(Completion, frozen=True, kw_only=True):
    """One completion of a batch."""

    claim_id: ClaimId


class Completions(Body, frozen=True, kw_only=True):
    """Up to 500 completions; each gets its own result."""

    completions: Annotated[list[BatchedCompletion], Meta(min_length=1, max_length=BATCH_LIMIT)] = field(name="claims")


class ClaimResult(Reply, frozen=True, kw_only=True):
    """The result for one claim of a batch: it was completed, or there is a problem with it."""

    claim: ClaimEnded | None = None
    problem: Problem | None = None


class ClaimResults(Reply, frozen=True, kw_only=True):
    """The result for each claim, in the order of the request."""

    items: tuple[ClaimResult, ...]


class FailureReport(Extended, frozen=True, kw_only=True):
    """Why the task failed."""

    reason: Annotated[str, Meta(min_length=1, max_length=65536, description="Why the task failed.")]
    kind: Annotated[FailureKind, Meta(description="The kind of failure.")] = "error"
    claim_next: ClaimNext | None = None


class BlockReport(Extended, frozen=True, kw_only=True):
    """What blocks the work, and who or what could resolve it."""

    reason: Annotated[str, Meta(min_length=1, max_length=65536, description="What blocks the work.")]
    blocker_type: Annotated[BlockerType, Meta(description="The kind of block.")]
    suggested_resolution: Annotated[Text, Meta(description="What would resolve it.")] = ""
    depends_on: Annotated[tuple[TaskId, ...], Meta(max_length=4, description="A task that must complete first.")] = ()


class HolderPlan(Extended, frozen=True, kw_only=True):
    """The holder's plan for the work."""

    plan: dict[str, Any] | list[Any]


class ModelUsage(Body, frozen=True, kw_only=True):
    """Usage of one model; without `model`, of an unknown one."""

    model: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$", max_length=96)] = ""
    cost_usd: Annotated[float, Meta(ge=0, le=1_000_000)] = 0
    input_tokens: Annotated[int, Meta(ge=0, le=10**12)] = 0
    output_tokens: Annotated[int, Meta(ge=0, le=10**12)] = 0


class NewUsage(Extended, frozen=True, kw_only=True):
    """Usage since the last report; an empty report asks what the caps leave.

    With `reserve_usd` it also asks whether a model call of that cost may begin. The next report under the claim, or the
    end of the claim, frees what was reserved.
    """

    usage: Annotated[tuple[ModelUsage, ...], Meta(max_length=16)]
    reserve_usd: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None


class ClaimSpending(Reply, frozen=True, kw_only=True):
    """The cost of the task so far, and what the caps of the workspace leave. Stop when a cap is reached."""

    task_id: str
    claim_id: str
    cost_usd: float
    # Null without caps; `cap` names the tightest one: task, workflow, agent or day.
    left_usd: float | None
    cap: str = ""
    # False if the call has to wait: calls under other claims may use up what is left. Ask again when they have ended.
    may_call: bool = True
    event_id: str = ""


class NewProgress(Extended, frozen=True, kw_only=True):
    """Progress of the work: a sentence, a percentage, or both."""

    text: Annotated[str, Meta(max_length=2000, description="How the work is going, in one sentence.")] = ""
    percent: Annotated[int, Meta(ge=0, le=100, description="How much is done, in percent.")] | None = None


class ProgressReported(Reply, frozen=True, kw_only=True):
    """Whether the report was recorded: a claim gets at most one record per second. Views show the last report."""

    task_id: str
    claim_id: str
    recorded: bool
    # Why it was not recorded: too_often, or rules_too_old if the workspace records no progress.
    reason: str = ""
    # After too_often: when the same report would be recorded.
    retry_after_seconds: float | None = None
    event_id: str = ""


class ArtifactAdded(Identified, frozen=True, kw_only=True):
    """The artifact that was added."""

    SPECIFIC: ClassVar[str] = "artifact_id"
    artifact_id: str
    event_id: str
    task_id: str
    name: Slug
    version: int
    sha256: str
    # The bytes are elsewhere: the hash was not checked.
    unverified: bool = False


_CLAIM_ID = "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ"
_STALE = {409: "The claim has lost its task (lease_lost), or the task has ended (already_terminal)."}
_CLAIMED = {
    "status": "claimed",
    "taskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP",
    "claimId": "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ",
    "agentId": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN",
    "leaseExpiresAt": "2026-05-07T20:15:00.000000001Z",
    "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
}
_AGENT_ID = _CLAIMED["agentId"]

CLAIM_TASK = Operation(
    "claim_task",
    "POST",
    "/tasks/{task_id}/claim",
    AGENT,
    body=ClaimRequest,
    reply=ClaimOutcome,
    summary="Claim a task: exactly one agent wins, and every other learns who.",
    description="Claim a task: exactly one agent wins, every other learns who. A lost race is a reply, not an error.",
    example={"agentId": _AGENT_ID, "leaseSeconds": 600, "idempotencyKey": "claim-task_456-agt_123-001"},
    reply_example=_CLAIMED,
    method_name="tasks.claim",
    positional=("agent_id",),
)
CLAIM_NEXT = Operation(
    "claim_next",
    "POST",
    "/queues/{queue_id}/claim-next",
    AGENT,
    body=ClaimNextRequest,
    reply=ClaimNextOutcome,
    summary="Claim the next task of a queue, now or as soon as there is one.",
    description="Claim the next task of a queue, with its input and brief; `wait` waits for one.",
    example={"agentId": _AGENT_ID, "leaseSeconds": 600, "wait": 30},
    method_name="queues.claim_next",
    positional=("agent_id",),
)
COMPLETE_CLAIMS = Operation(
    "complete_claims",
    "POST",
    "/claims/complete",
    AGENT,
    body=Completions,
    reply=ClaimResults,
    summary="Complete up to 500 claims, each with its own result.",
    description="Complete many tasks at once.",
    repeats="parts",
    example={"claims": [{"claimId": _CLAIM_ID, "summary": "Five sources found."}]},
    method_name="claims.complete_many",
    positional=("completions",),
)
START_CLAIM = Operation(
    "start_claim",
    "POST",
    "/claims/{claim_id}/start",
    AGENT,
    body=Extended,
    reply=ClaimChanged,
    summary="Report that the work has started.",
    replies=_STALE,
    method_name="claims.start",
    command="claim start CLAIM",
)
RELEASE_CLAIM = Operation(
    "release_claim",
    "POST",
    "/claims/{claim_id}/release",
    AGENT,
    body=Extended,
    reply=ClaimChanged,
    summary="Release a task.",
    description="Release a task unfinished: others may claim it at once.",
    replies=_STALE,
    method_name="claims.release",
    command="claim release CLAIM",
)
HEARTBEAT_CLAIM = Operation(
    "heartbeat_claim",
    "POST",
    "/claims/{claim_id}/heartbeat",
    AGENT,
    body=HolderActivity,
    reply=Heartbeat,
    summary="Extend the lease, and learn whether the claim still holds.",
    description="Extend the lease, and learn whether the claim still holds its task.",
    replies={409: "The agent is deactivated; it may only release its claims."},
    example={"idleSeconds": 0},
    sends_key=False,
    method_name="claims.heartbeat",
)
BLOCK_CLAIM = Operation(
    "block_claim",
    "POST",
    "/claims/{claim_id}/block",
    AGENT,
    body=BlockReport,
    reply=ClaimChanged,
    summary="Report that the work is blocked. Those who can resolve it get a message.",
    description="Report that the work is blocked, and notify those who can resolve it.",
    replies=_STALE,
    example={"reason": "The brief names no audience.", "blockerType": "spec_gap"},
    method_name="claims.block",
    positional=("reason",),
    command="claim block CLAIM",
)
ADD_ARTIFACT = Operation(
    "add_artifact",
    "POST",
    "/claims/{claim_id}/artifacts",
    AGENT,
    body=NewArtifact,
    reply=ArtifactAdded,
    status=201,
    summary="Add an artifact: inline, as uploaded content, or elsewhere by URI and hash.",
    description="Add an artifact to the attempt, or a new version of one.",
    replies=_STALE,
    example={"name": "research_packet", "content": "Five sources ...", "mediaType": "text/markdown"},
    method_name="claims.add_artifact",
    positional=("name",),
)
PLAN_CLAIM = Operation(
    "plan_claim",
    "POST",
    "/claims/{claim_id}/plan",
    AGENT,
    body=HolderPlan,
    reply=ClaimChanged,
    summary="Record the holder's plan for the work.",
    replies=_STALE,
    example={"plan": {"steps": ["Find sources", "Read them", "Write it up"]}},
    method_name="claims.plan",
    positional=("plan",),
)
REPORT_USAGE = Operation(
    "report_usage",
    "POST",
    "/claims/{claim_id}/usage",
    AGENT,
    body=NewUsage,
    reply=ClaimSpending,
    # What is left changes with what others spend, so a repeated report gets the first reply.
    repeats="bytes",
    summary="Report what model calls cost, and learn what the caps leave.",
    description="Report what model calls used under a claim, before it ends; the reply says what the caps leave.",
    replies=_STALE,
    example={"usage": [{"model": "claude-sonnet-4-6", "costUsd": 0.0425, "inputTokens": 9000, "outputTokens": 1033}]},
    reply_example={
        "taskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP",
        "claimId": _CLAIM_ID,
        "costUsd": 0.0425,
        "leftUsd": 1.9575,
        "cap": "task",
        "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    },
    method_name="claims.report_usage",
    positional=("usage",),
)
REPORT_PROGRESS = Operation(
    "report_progress",
    "POST",
    "/claims/{claim_id}/progress",
    AGENT,
    body=NewProgress,
    reply=ProgressReported,
    summary="Report progress.",
    description=(
        "Report progress for those who watch the task. A claim gets at most one record per second: "
        "an earlier report is not recorded, and the reply says when it would be."
    ),
    replies=_STALE,
    example={"text": "Three of five sources read.", "percent": 60},
    reply_example={
        "taskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP",
        "claimId": _CLAIM_ID,
        "recorded": True,
        "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    },
    method_name="claims.report_progress",
    positional=("text",),
)
COMPLETE_CLAIM = Operation(
    "complete_claim",
    "POST",
    "/claims/{claim_id}/complete",
    AGENT,
    body=Completion,
    reply=ClaimEnded,
    summary="Complete a task; with claimNext the next claim comes in the same reply.",
    description="Complete a task and, if `claimNext` is set, claim the next one in the same request.",
    replies=_STALE,
    example={"summary": "Five sources found.", "claimNext": {"queueId": "queue_podcast"}},
    method_name="claims.complete",
)
FAIL_CLAIM = Operation(
    "fail_claim",
    "POST",
    "/claims/{claim_id}/fail",
    AGENT,
    body=FailureReport,
    reply=ClaimEnded,
    summary="Report that a task failed.",
    description="Report that a task failed; another attempt follows if its policy has one left.",
    replies=_STALE,
    example={"reason": "The source is behind a login.", "kind": "error"},
    method_name="claims.fail",
    positional=("reason",),
    command="claim fail CLAIM",
)

OPERATIONS = (
    CLAIM_TASK,
    CLAIM_NEXT,
    COMPLETE_CLAIMS,
    START_CLAIM,
    RELEASE_CLAIM,
    HEARTBEAT_CLAIM,
    BLOCK_CLAIM,
    ADD_ARTIFACT,
    PLAN_CLAIM,
    REPORT_USAGE,
    REPORT_PROGRESS,
    COMPLETE_CLAIM,
    FAIL_CLAIM,
)
