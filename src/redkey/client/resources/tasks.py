"""Tasks as their owners see them: made, seen, explained, stopped, tried again, spoken of, claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Required, TypeAlias, TypedDict, Unpack

import msgspec

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import NextStep, Page, Refusal, Remark, Reply
from redkey.client.request import Request, at, get, given, post
from redkey.client.resources.claims import ClaimOutcome
from redkey.client.resources.ledger import Event, Order, events_at
from redkey.client.resources.queues import Priority

TaskState = Literal["created", "available", "claimed", "working", "blocked", "completed", "failed", "cancelled"]


class TaskHold(Reply, frozen=True, kw_only=True):
    """Who holds a task now, and until when."""

    claim_id: str
    agent_id: str
    claimed_at: str | None
    started_at: str | None = None
    lease_expires_at: str | None


class Blocker(Reply, frozen=True, kw_only=True):
    """Why a task stands still, in the words of the agent that met it."""

    blocker_type: str
    reason: str = ""
    suggested_resolution: str = ""
    depends_on: tuple[str, ...] = ()
    erased: bool = False


class Failure(Reply, frozen=True, kw_only=True):
    """How a task failed."""

    kind: str
    reason: str = ""


class Artifact(Reply, frozen=True, kw_only=True):
    """An artifact of the current attempt; `sha256` is that of its bytes."""

    artifact_id: str
    name: str
    version: int
    readiness: str
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False


class TaskSummary(Reply, frozen=True, kw_only=True):
    """A task in a list."""

    task_id: str
    queue_id: str
    workflow_id: str = ""
    plan_task_id: str = ""
    title: str = ""
    state: str
    attempt: int
    priority: str
    required_roles: tuple[str, ...]
    required_capabilities: tuple[str, ...]
    agent_id: str = ""
    created_at: str
    updated_at: str
    erased: bool = False


class Task(TaskSummary, frozen=True, kw_only=True):
    """A task in full: what is asked, where it stands, how it went."""

    context_id: str
    parent_task_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    description: str = ""
    input: Any = None
    brief: dict[str, Any] | None = None
    completion_criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    depends_on: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    max_attempts: int
    lease_seconds: int | None = None
    deadline_at: str | None = None
    claim: TaskHold | None = None
    blocker: Blocker | None = None
    failure: Failure | None = None
    cancelled_because: str = ""
    gate_id: str = ""
    note: str = ""
    answer: str = ""
    artifacts: tuple[Artifact, ...] = ()
    output: Any = None
    summary: str = ""
    notes: str = ""
    completed_by: str = ""
    lease_losses: int = 0
    ended_at: str | None = None
    sequence: int | None = None


class CreatedTask(Reply, frozen=True, kw_only=True):
    """A new task and where it stands."""

    task_id: str
    queue_id: str
    status: str
    event_id: str
    warnings: tuple[Remark, ...] = ()


class TaskResult(Reply, frozen=True, kw_only=True):
    """What became of one task of a batch: it was created, or there is a problem with it."""

    task: CreatedTask | None = None
    problem: Refusal | None = None


class TaskResults(Reply, frozen=True, kw_only=True):
    """What became of each task, in the order of the request."""

    items: tuple[TaskResult, ...]


class TaskChanged(Reply, frozen=True, kw_only=True):
    """Where the task stands now."""

    task_id: str
    status: str
    attempt: int
    event_id: str


class MessageAdded(Reply, frozen=True, kw_only=True):
    """Where the message stands."""

    message_id: str
    task_id: str
    event_id: str


class TextPart(Reply, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """Words."""

    media_type: str | None = None
    name: str | None = None
    text: str


class ArtifactPart(Reply, frozen=True, kw_only=True, tag_field="kind", tag="artifact_ref"):
    """An artifact, by its id."""

    media_type: str | None = None
    name: str | None = None
    artifact_id: str


class DataPart(Reply, frozen=True, kw_only=True, tag_field="kind", tag="data"):
    """Small JSON."""

    media_type: str | None = None
    name: str | None = None
    data: Any


class FilePart(Reply, frozen=True, kw_only=True, tag_field="kind", tag="file_ref"):
    """A file elsewhere, and the hash of its bytes."""

    media_type: str | None = None
    name: str | None = None
    uri: str
    sha256: str


Part: TypeAlias = TextPart | ArtifactPart | DataPart | FilePart


class TaskMessage(Reply, frozen=True, kw_only=True):
    """One message about a task."""

    message_id: str
    role: str
    sender: str
    parts: tuple[Part, ...]
    metadata: dict[str, str | int | float | bool | None] | None = None
    at: str
    event_id: str
    sequence: int
    erased: bool = False


class Reason(Reply, frozen=True, kw_only=True):
    """One thing that stands between a task and its being done."""

    code: str
    message: str
    next: NextStep


class Explanation(Reply, frozen=True, kw_only=True):
    """Where a task stands, and what would move it."""

    task_id: str
    state: str
    running: bool
    reasons: tuple[Reason, ...]


class ContextState(Reply, frozen=True, kw_only=True):
    """Where the tasks of a context stand, in the words of the seed's project fold."""

    context_id: str
    task_count: int
    tasks: dict[str, tuple[str, ...]]
    blocked: bool
    blocked_task_ids: tuple[str, ...]
    artifact_count: int
    artifact_ids: tuple[str, ...]
    terminal: bool
    complete: bool


class Retry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many attempts a task has, and what follows when they are used up or one fails."""

    max_attempts: int
    on_failure: Literal["reopen", "fail", "block"] = "reopen"


class ApprovalGate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who approves what was done, by when, and what happens if nobody does."""

    approvers: tuple[str, ...] = ()
    deadline_seconds: int | None = None
    on_deadline: Literal["reject", "hold"] = "hold"


class NewTask(TypedDict, total=False):
    """A task to put on a queue; only its title is needed."""

    title: Required[str]
    description: str
    required_roles: Sequence[str]
    required_capabilities: Sequence[str]
    depends_on: Sequence[str]
    priority: Priority
    input: Any
    brief: dict[str, Any]
    workflow_id: str
    context_id: str
    parent_task_id: str
    reference_task_ids: Sequence[str]
    outputs: Sequence[str]
    completion_criteria: Sequence[str]
    retry: Retry
    lease_seconds: int
    deadline_seconds: int
    approval_gate: bool | ApprovalGate


class Tasks(Resource[Mode]):
    """Tasks of the workspace."""

    @Operation
    def create(self, queue: str, **task: Unpack[NewTask]) -> Request[CreatedTask]:
        """Put a task on a queue."""
        return post(at("queues", queue, "tasks"), CreatedTask, **task)

    @Operation
    def create_many(self, queue: str, tasks: Sequence[NewTask]) -> Request[TaskResults]:
        """Put up to 500 tasks on a queue, each with its own result."""
        return post(at("queues", queue, "tasks", "batch"), TaskResults, tasks=[given(one) for one in tasks])

    @Listing
    def list(
        self, queue: str, *, state: TaskState, limit: int | None = None, after: str | None = None
    ) -> Request[Page[TaskSummary]]:
        """The tasks of a queue in one state."""
        return get(at("queues", queue, "tasks"), Page[TaskSummary], state=state, limit=limit, after=after)

    @Listing
    def available(
        self,
        queue: str,
        *,
        agent_id: str | None = None,
        wait: float = 0,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[TaskSummary]]:
        """What may be claimed now, by anybody or by one agent; `wait` seconds for something when there is nothing."""
        return get(
            at("queues", queue, "tasks", "available"),
            Page[TaskSummary],
            wait_seconds=wait,
            agent_id=agent_id,
            wait=wait or None,
            limit=limit,
            after=after,
        )

    @Operation
    def get(self, task_id: str, *, at_sequence: int | None = None) -> Request[Task]:
        """One task, now or as it was at any place of the ledger."""
        return get(at("tasks", task_id), Task, at=at_sequence)

    @Operation
    def explain(self, task_id: str) -> Request[Explanation]:
        """Why a task is not running, and what would move it."""
        return get(at("tasks", task_id, "explain"), Explanation)

    @Operation
    def claim(
        self, task_id: str, agent_id: str, *, lease_seconds: int | None = None, with_task: bool | None = None
    ) -> Request[ClaimOutcome]:
        """Claim a task: exactly one agent wins, and every other learns who.

        A race that was lost is an answer, never an error. `with_task` asks for the task's input and brief too.
        """
        path = at("tasks", task_id, "claim")
        return post(path, ClaimOutcome, agent_id=agent_id, lease_seconds=lease_seconds, with_task=with_task)

    @Operation
    def cancel(self, task_id: str) -> Request[TaskChanged]:
        """Cancel a task; its holder learns it at the next call."""
        return post(at("tasks", task_id, "cancel"), TaskChanged)

    @Operation
    def retry(self, task_id: str) -> Request[TaskChanged]:
        """Try a failed or cancelled task again, as a new attempt."""
        return post(at("tasks", task_id, "retry"), TaskChanged)

    @Operation
    def unblock(self, task_id: str, answer: str | None = None) -> Request[TaskChanged]:
        """Answer a block: the task may be claimed again, and its next holder reads the answer."""
        return post(at("tasks", task_id, "unblock"), TaskChanged, answer=answer)

    @Operation
    def add_message(
        self,
        task_id: str,
        *parts: Part | str,
        metadata: dict[str, str | int | float | bool | None] | None = None,
    ) -> Request[MessageAdded]:
        """Say something about a task that has not ended, in parts; text may be given as it is."""
        said = [TextPart(text=part) if isinstance(part, str) else part for part in parts]
        return post(at("tasks", task_id, "messages"), MessageAdded, parts=said, metadata=metadata)

    @Listing
    def messages(
        self, task_id: str, *, limit: int | None = None, after: str | None = None
    ) -> Request[Page[TaskMessage]]:
        """What was said about a task, in order."""
        return get(at("tasks", task_id, "messages"), Page[TaskMessage], limit=limit, after=after)

    @Operation
    def raise_concern(
        self, task_id: str, concern: str, *, severity: Literal["info", "minor", "major", "blocking"] | None = None
    ) -> Request[MessageAdded]:
        """Raise a concern about work in progress."""
        return post(at("tasks", task_id, "concerns"), MessageAdded, concern=concern, severity=severity)

    @Listing
    def events(
        self,
        task_id: str,
        *,
        type: str | Sequence[str] | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What happened to a task, with the attempts to claim it."""
        return events_at(at("tasks", task_id, "events"), type=type, order=order, limit=limit, after=after)

    @Operation
    def context(self, context_id: str) -> Request[ContextState]:
        """The state of all tasks that share a context."""
        return get(at("contexts", context_id, "state"), ContextState)
