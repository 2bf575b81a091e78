"""Claims: how agents get tasks, and everything that a holder does until its claim ends.

Exactly one agent wins each task; every other learns at once that it lost, and to whom.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from redkey.shapes.fields import (
    BATCH_LIMIT,
    Body,
    Id,
    IdempotencyKey,
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
    Meta(ge=-(1 << 31), lt=1 << 31, description="5 seconds to 24 hours; any other is rejected, on the record."),
]


ClaimId = Annotated[str, Meta(min_length=1, max_length=64)]
ArtifactId = Annotated[str, Meta(pattern="^art_[0-7][0-9A-HJKMNP-TV-Z]{25}$", max_length=30)]
FailureKind = Literal["error", "timeout", "verification", "rejected"]
Readiness = Literal["draft", "ready", "final"]


class ClaimRequest(Body, frozen=True, kw_only=True):
    """An agent asks for a task."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    # Whether the task's input and brief come with the claim, as they do with claim-next.
    with_task: bool = False
    idempotency_key: IdempotencyKey | None = None


class ClaimNextRequest(Body, frozen=True, kw_only=True):
    """An agent asks for the next tasks of a queue that it may claim."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    count: Annotated[int, Meta(ge=1, le=100)] | None = None
    wait: Wait = 0
    idempotency_key: IdempotencyKey | None = None


class Assignment(Reply, frozen=True, kw_only=True):
    """The work that comes with a claim: what never changes about a task, so that the same claim is told alike."""

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
    parent_task_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    # Of a plan's task: what it works from, what it must hand back, what the run was given, what an approver said.
    expected_inputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    upstream: tuple[Upstream, ...] = ()
    results: tuple[UpstreamResult, ...] = ()
    workflow_input: Any = None
    note: str = ""
    # The notes that those left who did the tasks before this one; not who they are.
    prior_context: tuple[str, ...] = ()
    # What lifted the task's last block, when it came with an answer.
    answer: str = ""
    erased: bool = False


class Claimed(Reply, frozen=True, kw_only=True, tag_field="status", tag="claimed"):
    """The task is this agent's until the lease expires. `task` comes when asked for, and always with claim-next;
    without it, `upstream` and `results` are what the tasks before this one brought."""

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
    """Another claim won. Do not try the same task again at once; ask for the next one."""

    status: ClassVar[str] = "missed"
    task_id: str
    agent_id: str
    reason: str
    winning_claim_id: str
    winning_agent_id: str
    event_id: str
    next: NextStep


class Rejected(Reply, frozen=True, kw_only=True, tag_field="status", tag="rejected"):
    """The agent may not claim this. A claim-next that is rejected names no task and writes no event; nor does the claim
    of a task that the agent has completed itself (`completed_by_you`, `detail` is its claim)."""

    status: ClassVar[str] = "rejected"
    task_id: str = ""
    agent_id: str
    reason: str
    detail: str = ""
    event_id: str = ""
    next: NextStep


class NoTasks(Reply, frozen=True, kw_only=True, tag_field="status", tag="no_tasks"):
    """Nothing in the queue that this agent may claim now."""

    status: ClassVar[str] = "no_tasks"
    agent_id: str
    queue_id: str
    next: NextStep


ClaimOutcome: TypeAlias = Claimed | Missed | Rejected
ClaimNextOutcome: TypeAlias = Claimed | Missed | Rejected | NoTasks


class ClaimChanged(Reply, frozen=True, kw_only=True):
    """What became of a claim."""

    status: Annotated[str, one_of("started", "released", "blocked", "planned", "completed", "failed")]
    task_id: str
    claim_id: str
    event_id: str


class ClaimEnded(ClaimChanged, frozen=True, kw_only=True):
    """A claim that has ended; `next` is the claim that was asked for with it."""

    # After a failure: whether another attempt follows.
    retry: bool | None = None
    gate_id: str = ""
    next: ClaimNextOutcome | None = None


class HolderActivity(Body, frozen=True, kw_only=True):
    """What a process that keeps a claim without a handler says of its holder; a running handler counts as activity."""

    # From the `idleSeconds` of its queue on, the hold is not extended: it stalls, and others may claim the task.
    idle_seconds: Annotated[int, Meta(ge=0, le=31_536_000, description="For how long the holder has done nothing.")] = 0


class Heartbeat(Reply, frozen=True, kw_only=True):
    """Whether the claim still holds its task, and until when. A stalled hold goes on with its holder's next act. After
    its end, the state of the task that this claim was the last to hold."""

    state: Annotated[str, one_of("held", "stalled", "lease_lost", "completed", "failed", "cancelled")]
    lease_expires_at: str | None = None
    event_id: str = ""


class ClaimNext(Body, frozen=True):
    """The claim that a busy worker asks for together with the end of the one before."""

    queue_id: Name
    lease_seconds: LeaseSeconds | None = None


class NewArtifact(Body, frozen=True, kw_only=True):
    """A durable output, in one of three ways: its content, content put before by hash, or a URI with the hash."""

    name: Slug
    # Text, or JSON.
    content: Any | UnsetType = UNSET
    content_base64: str | None = None
    uri: Annotated[str, Meta(pattern="^[!-~]+$", min_length=1, max_length=2048)] | None = None
    sha256: Sha256 | None = None
    bytes: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    media_type: MediaType | None = None
    readiness: Readiness = "ready"
    # A new version of this artifact of the same attempt.
    artifact_id: ArtifactId | None = None
    derived_from: Annotated[tuple[ArtifactId, ...], Meta(max_length=4)] = ()


class Completion(Body, frozen=True, kw_only=True):
    """What was done. Required outputs must have ready artifacts; the server checks that itself, and names them beside
    those in `artifactIds`. Without `artifactIds` every ready artifact is named; more than four go by a manifest.
    `artifacts` are added with the completion. A required output without one is taken from the field of its name in
    `output`."""

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
    """What became of one claim of a batch: it was completed, or there is a problem with it."""

    claim: ClaimEnded | None = None
    problem: Problem | None = None


class ClaimResults(Reply, frozen=True, kw_only=True):
    """What became of each claim, in the order of the request."""

    items: tuple[ClaimResult, ...]


class FailureReport(Body, frozen=True, kw_only=True):
    """Why it could not be done."""

    reason: Annotated[str, Meta(min_length=1, max_length=65536, description="Why it could not be done.")]
    kind: Annotated[FailureKind, Meta(description="What kind of failure it is.")] = "error"
    claim_next: ClaimNext | None = None


class BlockReport(Body, frozen=True, kw_only=True):
    """What stands in the way, and who or what could lift it."""

    reason: Annotated[str, Meta(min_length=1, max_length=65536, description="What stands in the way.")]
    blocker_type: Annotated[BlockerType, Meta(description="What kind of block it is.")]
    suggested_resolution: Annotated[Text, Meta(description="What would lift it.")] = ""
    depends_on: Annotated[tuple[TaskId, ...], Meta(max_length=4, description="A task that must complete first.")] = ()


class HolderPlan(Body, frozen=True, kw_only=True):
    """How the holder means to go about it."""

    plan: dict[str, Any] | list[Any]


class ModelUsage(Body, frozen=True, kw_only=True):
    """What calls of one model used; without `model`, of one that is not named."""

    model: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$", max_length=96)] = ""
    cost_usd: Annotated[float, Meta(ge=0, le=1_000_000)] = 0
    input_tokens: Annotated[int, Meta(ge=0, le=10**12)] = 0
    output_tokens: Annotated[int, Meta(ge=0, le=10**12)] = 0


class NewUsage(Body, frozen=True, kw_only=True):
    """What was used since the last report; an empty one asks what the caps leave."""

    usage: Annotated[tuple[ModelUsage, ...], Meta(max_length=16)]


class ClaimSpending(Reply, frozen=True, kw_only=True):
    """What the task has cost so far, and what the caps of the workspace leave. Stop when a cap is reached."""

    task_id: str
    claim_id: str
    cost_usd: float
    # Null without caps; `cap` is the one that leaves the least: task, workflow, agent or day.
    left_usd: float | None
    cap: str = ""
    event_id: str = ""


class NewProgress(Body, frozen=True, kw_only=True):
    """How far the work has come: a sentence, a percentage, or both."""

    text: Annotated[str, Meta(max_length=2000, description="How the work goes, in one sentence.")] = ""
    percent: Annotated[int, Meta(ge=0, le=100, description="How much of it is done.")] | None = None


class ProgressReported(Reply, frozen=True, kw_only=True):
    """Whether the report was recorded: a claim has one record each second at most. The last report is what counts."""

    task_id: str
    claim_id: str
    recorded: bool
    # Why it was not: too_often, or rules_too_old where the workspace records no progress.
    reason: str = ""
    # After too_often: when the same report would be recorded.
    retry_after_seconds: float | None = None
    event_id: str = ""


class ArtifactAdded(Reply, frozen=True, kw_only=True):
    """Where the artifact stands."""

    artifact_id: str
    event_id: str
    task_id: str
    name: Slug
    version: int
    sha256: str
    # The bytes are elsewhere: the hash is the caller's word.
    unverified: bool = False


_CLAIM_ID = "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ"
_STALE = {409: "The claim holds nothing any more (lease_lost), or its task has ended (already_terminal)."}
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
    summary="Claim the next task of a queue, at once or as soon as there is one.",
    description="Claim the next task of a queue, waiting for one if asked to; it comes with its input and brief.",
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
    reply=ClaimChanged,
    summary="Say that the work has begun.",
    replies=_STALE,
    method_name="claims.start",
    command="claim start CLAIM",
)
RELEASE_CLAIM = Operation(
    "release_claim",
    "POST",
    "/claims/{claim_id}/release",
    AGENT,
    reply=ClaimChanged,
    summary="Give a task back.",
    description="Give the task back: others may claim it at once.",
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
    summary="Keep the lease, and learn whether it holds.",
    description="Keep the lease, and learn whether the task is still held.",
    replies={409: "The agent is deactivated; it may only release what it holds."},
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
    summary="Say that the work cannot go on. Those who can lift the block get a message.",
    description="Say that the work cannot go on, and let those know who can lift the block.",
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
    summary="Add an artifact: inline, as content put before, or elsewhere by URI and hash.",
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
    summary="Tell how the holder means to go about it.",
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
    # What is left changes with what others spend, so a repeated report gets the reply of the first.
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
    summary="Say how far the work has come.",
    description=(
        "Say how far the work has come, for those who watch the task. A claim has one record each second at most: "
        "what comes sooner is not recorded, and the reply says when it would be."
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
    description="Complete a task, and ask for the next one in the same request if there is more to do.",
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
    summary="Say that a task could not be done.",
    description="Say that a task could not be done; another attempt follows when its policy has one left.",
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
