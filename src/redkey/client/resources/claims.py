"""Claims: how an attempt to get a task went, and everything that a holder does until its claim ends.

`rk.tasks.claim` and `rk.queues.claim_next` make claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Required, TypeAlias, TypedDict, Unpack

import msgspec
from msgspec import UNSET

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import NextStep, Page, Refusal, Reply
from redkey.client.request import Request, at, beat, given, post
from redkey.client.resources.ledger import Event, Order, events_at

BlockerType = Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"]
FailureKind = Literal["error", "timeout", "verification", "rejected"]
Readiness = Literal["draft", "ready", "final"]


class Upstream(Reply, frozen=True, kw_only=True):
    """An artifact of a task that this one depends on; `sha256` is that of its bytes."""

    name: str
    artifact_id: str
    task_id: str
    plan_task_id: str
    version: int
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False


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
    expected_inputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    upstream: tuple[Upstream, ...] = ()
    workflow_input: Any = None
    note: str = ""
    prior_context: tuple[str, ...] = ()
    erased: bool = False


class Claimed(Reply, frozen=True, kw_only=True, tag_field="status", tag="claimed"):
    """The task is this agent's until the lease expires. `task` comes when asked for, and always with claim-next."""

    status: ClassVar[str] = "claimed"
    task_id: str
    claim_id: str
    agent_id: str
    lease_expires_at: str
    event_id: str
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
    """The agent may not claim this. A claim-next that is rejected names no task and writes no event."""

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

    status: str
    task_id: str
    claim_id: str
    event_id: str


class ClaimEnded(ClaimChanged, frozen=True, kw_only=True):
    """A claim that has ended; `next` is the claim that was asked for with it."""

    retry: bool | None = None
    gate_id: str = ""
    next: ClaimNextOutcome | None = None


class ClaimResult(Reply, frozen=True, kw_only=True):
    """What became of one claim of a batch: it was completed, or there is a problem with it."""

    claim: ClaimEnded | None = None
    problem: Refusal | None = None


class ClaimResults(Reply, frozen=True, kw_only=True):
    """What became of each claim, in the order of the request."""

    items: tuple[ClaimResult, ...]


class Heartbeat(Reply, frozen=True, kw_only=True):
    """Whether the claim still holds its task, and until when."""

    state: str
    lease_expires_at: str | None = None
    event_id: str = ""


class ArtifactAdded(Reply, frozen=True, kw_only=True):
    """Where the artifact stands."""

    artifact_id: str
    event_id: str
    task_id: str
    name: str
    version: int
    sha256: str


class ClaimNext(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The claim to make together with the end of the one before: one request a cycle for a busy worker."""

    queue_id: str
    lease_seconds: int | None = None


class Completion(TypedDict, total=False):
    """What was done. Required outputs must have ready artifacts; the server checks that itself."""

    output: Any
    summary: str
    artifact_ids: Sequence[str]
    cost_usd: float
    duration_seconds: int
    semantic: Literal["pass", "fail", "skipped"]
    attempts: int
    notes: str
    claim_next: ClaimNext


class ClaimCompletion(Completion, total=False):
    """One completion of a batch."""

    claim_id: Required[str]


class Claims(Resource[Mode]):
    """What the holder of a task may do with it; every call names its claim, and only the current one may write."""

    @Operation
    def start(self, claim_id: str) -> Request[ClaimChanged]:
        """Say that work has begun."""
        return post(at("claims", claim_id, "start"), ClaimChanged)

    @Operation
    def heartbeat(self, claim_id: str) -> Request[Heartbeat]:
        """Extend the lease, and learn whether the task is still held: `held`, `lease_lost` or `cancelled`."""
        return beat(at("claims", claim_id, "heartbeat"), Heartbeat)

    @Operation
    def release(self, claim_id: str) -> Request[ClaimChanged]:
        """Give the task back for others."""
        return post(at("claims", claim_id, "release"), ClaimChanged)

    @Operation
    def complete(self, claim_id: str, **completion: Unpack[Completion]) -> Request[ClaimEnded]:
        """Say that the work is done."""
        return post(at("claims", claim_id, "complete"), ClaimEnded, **completion)

    @Operation
    def complete_many(self, completions: Sequence[ClaimCompletion]) -> Request[ClaimResults]:
        """Complete up to 500 claims, each with its own result."""
        return post("/claims/complete", ClaimResults, claims=[given(one) for one in completions])

    @Operation
    def fail(
        self,
        claim_id: str,
        reason: str,
        *,
        kind: FailureKind | None = None,
        claim_next: ClaimNext | None = None,
    ) -> Request[ClaimEnded]:
        """Say that the attempt failed; whether another follows is the task's retry policy."""
        return post(at("claims", claim_id, "fail"), ClaimEnded, reason=reason, kind=kind, claim_next=claim_next)

    @Operation
    def block(
        self,
        claim_id: str,
        reason: str,
        *,
        blocker_type: BlockerType,
        suggested_resolution: str | None = None,
        depends_on: Sequence[str] | None = None,
    ) -> Request[ClaimChanged]:
        """Say what stands in the way; whoever can lift it is told, and the claim ends."""
        return post(
            at("claims", claim_id, "block"),
            ClaimChanged,
            reason=reason,
            blocker_type=blocker_type,
            suggested_resolution=suggested_resolution,
            depends_on=depends_on,
        )

    @Operation
    def add_artifact(
        self,
        claim_id: str,
        name: str,
        *,
        content: Any = UNSET,
        content_base64: str | None = None,
        uri: str | None = None,
        sha256: str | None = None,
        bytes: int | None = None,
        media_type: str | None = None,
        readiness: Readiness | None = None,
        artifact_id: str | None = None,
        derived_from: Sequence[str] | None = None,
    ) -> Request[ArtifactAdded]:
        """Record an output: its content, content put before by hash, or a URI with the hash and size."""
        return post(
            at("claims", claim_id, "artifacts"),
            ArtifactAdded,
            name=name,
            content=content,
            content_base64=content_base64,
            uri=uri,
            sha256=sha256,
            bytes=bytes,
            media_type=media_type,
            readiness=readiness,
            artifact_id=artifact_id,
            derived_from=derived_from,
        )

    @Operation
    def plan(self, claim_id: str, plan: dict[str, Any] | Sequence[Any]) -> Request[ClaimChanged]:
        """Record the plan that the holder follows."""
        return post(at("claims", claim_id, "plan"), ClaimChanged, plan=plan)

    @Listing
    def events(
        self,
        claim_id: str,
        *,
        type: str | Sequence[str] | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What happened to a claim."""
        return events_at(at("claims", claim_id, "events"), type=type, order=order, limit=limit, after=after)
