"""Tasks: create, show (now or at any sequence), explain, cancel, retry and discuss them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import (
    BATCH_LIMIT,
    VISIBLE,
    Attempts,
    Backoff,
    Body,
    DelaySeconds,
    Extended,
    Id,
    Identified,
    Jitter,
    LeaseSeconds,
    Name,
    Page,
    PageQuery,
    Reply,
    Seconds,
    Sentence,
    Slug,
    Stateful,
    TaskId,
    Text,
    Word,
)
from redkey.shapes.operation import AGENT, PRODUCE, READ, Operation
from redkey.shapes.problem import NextStep, Problem

Priority = Literal["urgent", "high", "normal", "low"]
# A completed task whose gate is open awaits approval.
TaskState = Literal[
    "created",
    "available",
    "claimed",
    "working",
    "blocked",
    "awaiting_approval",
    "completed",
    "failed",
    "cancelled",
]
Names = Annotated[tuple[Word, ...], Meta(max_length=32)]
ContextId = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,15}:[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=40)]


class Retry(Body, frozen=True):
    """How often a task is tried, what follows a failure (another attempt, the end, or waiting for a person), and the
    pause before another attempt. Fields without a value follow the queue or the workspace."""

    max_attempts: Attempts | None = None
    on_failure: Literal["reopen", "fail", "block"] = "reopen"
    delay_seconds: DelaySeconds | None = None
    backoff: Backoff = 2
    jitter: Jitter = 0
    longest_delay_seconds: DelaySeconds = 3600


class ApprovalGate(Body, frozen=True):
    """Who may approve a completion, besides admins: keys, agents or roles; never the worker."""

    approvers: Annotated[tuple[Word, ...], Meta(max_length=16)] = ()
    deadline_seconds: Seconds | None = None
    on_deadline: Literal["reject", "hold"] = "hold"


class NewTask(Extended, frozen=True, kw_only=True):
    """A simple task. Any active agent with its required roles and capabilities may claim it."""

    title: Annotated[str, Meta(pattern=VISIBLE, max_length=500)]
    description: Text = ""
    queue_id: Name | None = None
    required_roles: Names = ()
    required_capabilities: Names = ()
    depends_on: Annotated[tuple[TaskId, ...], Meta(max_length=100)] = ()
    priority: Literal["urgent", "high", "normal", "low"] | None = None
    input: Any = None
    # A Brief Wire 1.0 (seed 000).
    brief: dict[str, Any] | None = None
    workflow_id: Id | None = None
    context_id: ContextId = ""
    parent_task_id: TaskId | None = None
    correlation_id: ContextId = ""
    reference_task_ids: Annotated[tuple[TaskId, ...], Meta(max_length=100)] = ()
    outputs: Annotated[tuple[Slug, ...], Meta(max_length=32)] = ()
    completion_criteria: Annotated[tuple[Sentence, ...], Meta(max_length=64)] = ()
    retry: Retry | None = None
    lease_seconds: LeaseSeconds | None = None
    deadline_seconds: Seconds | None = None
    approval_gate: bool | ApprovalGate = False


class Advice(Reply, frozen=True, kw_only=True):
    """Something that is allowed but probably a mistake."""

    code: str
    pointer: str
    message: str


class CreatedTask(Stateful, frozen=True, kw_only=True):
    """A new task and its state."""

    SPECIFIC: ClassVar[str] = "task_id"
    task_id: str
    queue_id: str
    event_id: str
    warnings: tuple[Advice, ...] = ()


MediaType = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:; ?[A-Za-z0-9_-]+=[A-Za-z0-9._\"-]+)*$", max_length=127
    ),
]


class _Part(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
):
    """One part of a message, named as in `part.schema.json`: in requests, in replies and in storage."""

    media_type: MediaType | None = None
    name: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class TextPart(_Part, frozen=True, kw_only=True, tag="text"):
    """Text."""

    text: Annotated[str, Meta(max_length=65536)]


class ArtifactPart(_Part, frozen=True, kw_only=True, tag="artifact_ref"):
    """An artifact, by its id."""

    artifact_id: Annotated[str, Meta(pattern="^art_[0-9A-Za-z]{1,26}$", max_length=30)]


class DataPart(_Part, frozen=True, kw_only=True, tag="data"):
    """Small JSON."""

    data: Any


class FilePart(_Part, frozen=True, kw_only=True, tag="file_ref"):
    """A file elsewhere, with the hash of its bytes if known."""

    uri: Annotated[str, Meta(pattern="^[!-~]+$", min_length=1, max_length=2048)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", min_length=64, max_length=64)] | None = None


Part = TextPart | ArtifactPart | DataPart | FilePart


class TaskMessage(Identified, frozen=True, kw_only=True):
    """One message about a task."""

    SPECIFIC: ClassVar[str] = "message_id"
    message_id: str
    role: str
    sender: str
    parts: tuple[Part, ...]
    metadata: dict[str, str | int | float | bool | None] | None = None
    at: str
    event_id: str
    sequence: int
    erased: bool = False


class TaskHold(Reply, frozen=True, kw_only=True):
    """Who holds a task, and until when."""

    claim_id: str
    agent_id: str
    claimed_at: str | None
    started_at: str | None = None
    lease_expires_at: str | None


class Blocker(Reply, frozen=True, kw_only=True):
    """Why a task is blocked, as its holder reported."""

    blocker_type: str
    reason: str = ""
    suggested_resolution: str = ""
    depends_on: tuple[str, ...] = ()
    erased: bool = False


class Failure(Reply, frozen=True, kw_only=True):
    """How a task failed."""

    kind: str
    reason: str = ""


class Artifact(Identified, frozen=True, kw_only=True):
    """An artifact of the current attempt; `sha256` is that of its bytes."""

    SPECIFIC: ClassVar[str] = "artifact_id"
    artifact_id: str
    name: str
    version: int
    readiness: str
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False
    # RedKey has not seen the bytes: the producer reported the hash.
    unverified: bool = False


class Upstream(Identified, frozen=True, kw_only=True):
    """An artifact of a task that this one depends on; `sha256` is that of its bytes."""

    SPECIFIC: ClassVar[str] = "artifact_id"
    name: str
    artifact_id: str
    task_id: str
    plan_task_id: str = ""
    version: int
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False


class UpstreamResult(Reply, frozen=True, kw_only=True):
    """The result of a task that this one depends on."""

    task_id: str
    plan_task_id: str = ""
    output: Any = None
    summary: str = ""


class Progress(Reply, frozen=True, kw_only=True):
    """The last progress report of the holder."""

    text: str = ""
    percent: int | None = None
    at: str
    erased: bool = False


class TaskSummary(Identified, frozen=True, kw_only=True):
    """A task in a list."""

    SPECIFIC: ClassVar[str] = "task_id"
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
    # The last report of the last holder; none while the task waits for its next claim.
    progress: Progress | None = None
    created_at: str
    updated_at: str
    erased: bool = False


class Task(TaskSummary, frozen=True, kw_only=True):
    """A task in full: its request, its state and its result."""

    context_id: str
    # What it is grouped by, if not by its context.
    correlation_id: str = ""
    parent_task_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    # The extensions of the request that created it.
    extensions: dict[str, Any] | None = None
    description: str = ""
    input: Any = None
    brief: dict[str, Any] | None = None
    completion_criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    depends_on: tuple[str, ...]
    # The dependencies that have not completed yet.
    waits_for: tuple[str, ...] = ()
    # The artifacts and results of its dependencies.
    upstream: tuple[Upstream, ...] = ()
    results: tuple[UpstreamResult, ...] = ()
    max_attempts: int
    # When an attempt that waits for the end of its pause becomes available.
    opens_at: str | None = None
    lease_seconds: int | None = None
    deadline_at: str | None = None
    claim: TaskHold | None = None
    blocker: Blocker | None = None
    failure: Failure | None = None
    cancelled_because: str = ""
    gate_id: str = ""
    # The note of the approver who rejected the last attempt, and the answer that ended the last block.
    note: str = ""
    answer: str = ""
    artifacts: tuple[Artifact, ...] = ()
    output: Any = None
    summary: str = ""
    notes: str = ""
    completed_by: str = ""
    lease_losses: int = 0
    # The reported cost of all attempts, and how long the last holder worked.
    cost_usd: float = 0
    duration_seconds: int | None = None
    ended_at: str | None = None
    # The sequence at which the task looked like this, if one was requested.
    sequence: int | None = None


class Reason(Reply, frozen=True, kw_only=True):
    """One thing that keeps a task from running."""

    code: str
    message: str
    next: NextStep


class Explanation(Identified, frozen=True, kw_only=True):
    """Why a task is in its state, and what would change it."""

    SPECIFIC: ClassVar[str] = "task_id"
    task_id: str
    state: str
    running: bool
    reasons: tuple[Reason, ...]


class ContextState(Reply, frozen=True, kw_only=True):
    """The states of the tasks of a context, with the field names of the seed's project fold."""

    context_id: str
    task_count: int
    # State -> ids of the tasks in it.
    tasks: dict[str, tuple[str, ...]]
    blocked: bool
    blocked_task_ids: tuple[str, ...]
    artifact_count: int
    artifact_ids: tuple[str, ...]
    terminal: bool
    # False if the context has more tasks than were read.
    complete: bool


class NewTasks(Body, frozen=True, kw_only=True):
    """Up to 500 tasks; each gets its own result."""

    tasks: Annotated[list[NewTask], Meta(min_length=1, max_length=BATCH_LIMIT)]


class TaskResult(Reply, frozen=True, kw_only=True):
    """The result for one task of a batch: it was created, or there is a problem with it."""

    task: CreatedTask | None = None
    problem: Problem | None = None


class TaskResults(Reply, frozen=True, kw_only=True):
    """The result for each task, in the order of the request."""

    items: tuple[TaskResult, ...]


class TaskChanged(Stateful, frozen=True, kw_only=True):
    """The task's state after the change."""

    SPECIFIC: ClassVar[str] = "task_id"
    task_id: str
    attempt: int
    event_id: str


class Answer(Extended, frozen=True, kw_only=True):
    """The answer that ends a block."""

    answer: Annotated[Text, Meta(description="The answer that ends the block; the next holder reads it.")] = ""


class NewMessage(Extended, frozen=True, kw_only=True):
    """A message about a task, as in `message.schema.json`. The server sets its id, and its role by the key; a role in
    the request must be the same."""

    own_id: Annotated[str, Meta(pattern="^msg_[0-9A-Za-z]{1,26}$", max_length=30)] | None = msgspec.field(
        default=None, name="message_id"
    )
    said_as: Literal["human", "agent", "system"] | None = msgspec.field(default=None, name="role")
    parts: Annotated[list[Part], Meta(min_length=1, max_length=64)]
    metadata: Annotated[dict[str, str | int | float | bool | None], Meta(max_length=32)] | None = None


class NewConcern(Extended, frozen=True, kw_only=True):
    """A reviewer's concern about work in progress."""

    concern: Annotated[str, Meta(min_length=1, max_length=65536)]
    severity: Literal["info", "minor", "major", "blocking"] = "minor"


class MessageAdded(Identified, frozen=True, kw_only=True):
    """The message that was added."""

    SPECIFIC: ClassVar[str] = "message_id"
    message_id: str
    task_id: str
    event_id: str


class TaskQuery(Body, frozen=True, kw_only=True):
    """The sequence at which to show the task; without one, now."""

    at: Annotated[int, Meta(ge=1, lt=1 << 40)] | None = None


_TASK_ID = "task_01JTMX9A2B3C4D5E6F7G8H9JKP"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_EXAMPLE = {
    "title": "Research Piers Gorman",
    "requiredRoles": ["role_researcher"],
    "input": {"guestName": "Piers Gorman", "sourceHint": "TreviPay podcast planning doc"},
}
_TERMINAL = {409: "The task has ended."}

CREATE_TASK = Operation(
    "create_task",
    "POST",
    "/queues/{queue_id}/tasks",
    PRODUCE,
    body=NewTask,
    reply=CreatedTask,
    status=201,
    summary="Create a task in a queue.",
    replies={402: "The credits of the workspace are used up."},
    example=_EXAMPLE,
    reply_example={
        "id": _TASK_ID,
        "taskId": _TASK_ID,
        "queueId": "queue_podcast",
        "status": "available",
        "state": "available",
        "eventId": _EVENT_ID,
    },
    method_name="tasks.create",
)
CREATE_TASKS = Operation(
    "create_tasks",
    "POST",
    "/queues/{queue_id}/tasks/batch",
    PRODUCE,
    body=NewTasks,
    reply=TaskResults,
    summary="Create up to 500 tasks in a queue, each with its own result.",
    description="Create many tasks in a queue at once.",
    repeats="parts",
    example={"tasks": [_EXAMPLE]},
    method_name="tasks.create_many",
    positional=("tasks",),
)
GET_TASK = Operation(
    "get_task",
    "GET",
    "/tasks/{task_id}",
    READ,
    query=TaskQuery,
    reply=Task,
    summary="Show a task, now or at any sequence of the ledger.",
    description="Show a task in full, now or as it was at any sequence of the ledger.",
    method_name="tasks.get",
)
EXPLAIN_TASK = Operation(
    "explain_task",
    "GET",
    "/tasks/{task_id}/explain",
    READ,
    reply=Explanation,
    summary="Explain why a task is not running.",
    description="Explain why a task is not running, and what would change that.",
    method_name="tasks.explain",
)
CANCEL_TASK = Operation(
    "cancel_task",
    "POST",
    "/tasks/{task_id}/cancel",
    PRODUCE,
    body=Extended,
    reply=TaskChanged,
    summary="Cancel a task.",
    description="Cancel a task; its holder learns of it at its next call.",
    replies=_TERMINAL,
    method_name="tasks.cancel",
    command="task cancel TASK",
)
RETRY_TASK = Operation(
    "retry_task",
    "POST",
    "/tasks/{task_id}/retry",
    PRODUCE,
    body=Extended,
    reply=TaskChanged,
    summary="Retry a failed or cancelled task.",
    description="Retry a failed or cancelled task, as a new attempt.",
    replies={402: "The credits of the workspace are used up.", 409: "The task did not fail."},
    method_name="tasks.retry",
    command="task retry TASK",
)
UNBLOCK_TASK = Operation(
    "unblock_task",
    "POST",
    "/tasks/{task_id}/unblock",
    (*PRODUCE, *AGENT),
    body=Answer,
    reply=TaskChanged,
    summary="Answer a block.",
    description="Answer a block: the task may be claimed again, and its next holder reads the answer.",
    replies={409: "The task is not blocked."},
    example={"answer": "The spec is in the planning document."},
    method_name="tasks.unblock",
    positional=("answer",),
    command="task unblock TASK",
)
ADD_MESSAGE = Operation(
    "add_message",
    "POST",
    "/tasks/{task_id}/messages",
    (*PRODUCE, *AGENT),
    body=NewMessage,
    reply=MessageAdded,
    status=201,
    summary="Add a message to a task.",
    description="Add a message to a task that has not ended.",
    replies=_TERMINAL,
    example={"parts": [{"kind": "text", "text": "The guest moved to Thursday."}]},
    method_name="tasks.add_message",
)
LIST_MESSAGES = Operation(
    "list_messages",
    "GET",
    "/tasks/{task_id}/messages",
    READ,
    query=PageQuery,
    reply=Page[TaskMessage],
    summary="List the messages about a task.",
    description="List the messages about a task, in order.",
    method_name="tasks.messages",
)
RAISE_CONCERN = Operation(
    "raise_concern",
    "POST",
    "/tasks/{task_id}/concerns",
    (*PRODUCE, *AGENT),
    body=NewConcern,
    reply=MessageAdded,
    status=201,
    summary="Raise a concern about work in progress.",
    replies={409: "The task has ended, or no agent holds it."},
    example={"concern": "The second source is a press release.", "severity": "major"},
    method_name="tasks.raise_concern",
    positional=("concern",),
)
GET_CONTEXT_STATE = Operation(
    "get_context_state",
    "GET",
    "/contexts/{context_id}/state",
    READ,
    reply=ContextState,
    summary="Show the state of all tasks of a context.",
    description="Show the state of a context: of all tasks that share it.",
    method_name="tasks.context",
)

OPERATIONS = (
    CREATE_TASK,
    CREATE_TASKS,
    GET_TASK,
    EXPLAIN_TASK,
    CANCEL_TASK,
    RETRY_TASK,
    UNBLOCK_TASK,
    ADD_MESSAGE,
    LIST_MESSAGES,
    RAISE_CONCERN,
    GET_CONTEXT_STATE,
)
