"""Tasks as their owners see them: made, seen at any place of the ledger, explained, stopped, tried again, spoken of."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redkey.api.call import Call, Pending
from redkey.api.fields import BATCH_LIMIT, Body, Listed, Page, Text, sequence_after, wrong
from redkey.api.new_task import NewTask, create
from redkey.api.pieces import in_pieces
from redkey.api.queues import read_queue
from redkey.api.texts import keep, keep_beside
from redkey.commands.decision import Refused, not_found
from redkey.commands.tasks import AddMessage, CancelTask, RaiseConcern, RetryTask, UnblockTask
from redkey.http.problems import Problem, describe
from redkey.http.route import AGENT, PRODUCE, READ, Route
from redkey.readmodel.context_view import ContextState, context_state
from redkey.readmodel.explain import Explanation, explain
from redkey.readmodel.replies import Created
from redkey.readmodel.rows import entity
from redkey.readmodel.task_at import task_at
from redkey.readmodel.task_messages import PartView, TaskMessage, task_messages
from redkey.readmodel.task_view import TaskView, task_view
from redkey.readmodel.view import View, read_document
from redkey.reducers.entities import Task
from redkey.services.outcome import Outcome
from redkey.wire.ids import event_id, parse_stream


class NewTasks(Body, frozen=True, kw_only=True):
    """Up to 500 tasks; each gets its own result."""

    tasks: Annotated[list[NewTask], Meta(min_length=1, max_length=BATCH_LIMIT)]


class TaskResult(View, frozen=True, kw_only=True):
    """What became of one task of a batch: it was created, or there is a problem with it."""

    task: Created | None = None
    problem: Problem | None = None


class TaskResults(View, frozen=True, kw_only=True):
    """What became of each task, in the order of the request."""

    items: tuple[TaskResult, ...]


class TaskChanged(View, frozen=True, kw_only=True):
    """Where the task stands now."""

    task_id: str
    status: str
    attempt: int
    event_id: str


class Answer(Body, frozen=True, kw_only=True):
    """What lifts a block."""

    answer: Text = ""


class NewMessage(Body, frozen=True, kw_only=True):
    """What is said about a task, in parts."""

    parts: Annotated[list[PartView], Meta(min_length=1, max_length=64)]
    metadata: Annotated[dict[str, str | int | float | bool | None], Meta(max_length=32)] | None = None


class NewConcern(Body, frozen=True, kw_only=True):
    """A reviewer's concern about work in progress."""

    concern: Annotated[str, Meta(min_length=1, max_length=65536)]
    severity: Literal["info", "minor", "major", "blocking"] = "minor"


class MessageAdded(View, frozen=True, kw_only=True):
    """Where the message stands."""

    message_id: str
    task_id: str
    event_id: str


class TaskQuery(Body, frozen=True, kw_only=True):
    """The place in the ledger at which to look at the task; its head when none is given."""

    at: Annotated[int, Meta(ge=1, lt=1 << 40)] | None = None


def create_task(call: Call, body: NewTask) -> Pending | Coroutine[Any, Any, Pending]:
    """Put a task on a queue."""
    return create(call, call.path["queue_id"], body)


async def create_tasks(call: Call, body: NewTasks) -> TaskResults:
    """Put many tasks on a queue at once."""
    queue = read_queue(call, call.path["queue_id"])

    async def one(index: int, task: NewTask) -> TaskResult:
        try:
            pending = create(call, queue.queue_id, task, part=str(index), under=f"/tasks/{index}")
            return TaskResult(task=await call.settled(pending if isinstance(pending, Pending) else await pending))
        except Refused as refused:
            call.answers_beside_records()
            return TaskResult(problem=describe(refused))

    return TaskResults(items=await in_pieces(call, body.tasks, one, TaskResult))


def read_task(call: Call, task_id: str) -> Task:
    """The task with an id; not found when there is none in the workspace."""
    row = call.services.store.row(call.topic, "task", task_id)
    if row is None:
        raise not_found("task")
    task: Task = entity(row)
    return task


async def get_task(call: Call) -> TaskView:
    """One task in full, now or as it was at any place of the ledger."""
    task, store = read_task(call, call.path["task_id"]), call.services.store
    at: int | None = call.query.at
    if at is not None:
        if at > store.head(call.topic).sequence:
            raise wrong("sequence_ahead", "/at", "the ledger has not come to this sequence yet")
        found = task_at(store, call.topic, task, at)
        if found is None:
            raise not_found("task")
        task = found
    return task_view(task, lambda sha256: read_document(store, call.topic, sha256), at)


async def explain_task(call: Call) -> Explanation:
    """Why a task is not running, and what would move it."""
    world = call.services.coordinator.peek(call.topic)
    task_id = call.path["task_id"]
    return explain(world, world.tasks.get(task_id) or read_task(call, task_id))


def _changed(outcome: Outcome, event: str, status: str) -> TaskChanged:
    record = outcome.first(event)
    if record is None:
        raise AssertionError(f"no {event} among what was recorded")
    stream = parse_stream(record.event.stream.stream_id)
    return TaskChanged(
        task_id=stream.subject, status=status, attempt=stream.attempt, event_id=event_id(record.event.wire_id)
    )


async def cancel_task(call: Call) -> TaskChanged:
    """Cancel a task; its holder learns it at the next call."""
    return _changed(await call.submit(CancelTask(call.path["task_id"])), "task.cancelled", "cancelled")


async def retry_task(call: Call) -> TaskChanged:
    """Try a failed or cancelled task again, as a new attempt."""
    outcome = await call.submit(RetryTask(call.path["task_id"]))
    status = "available" if outcome.first("task.available") is not None else "created"
    return _changed(outcome, "task.created", status)


async def unblock_task(call: Call, body: Answer) -> TaskChanged:
    """Answer a block: the task may be claimed again, and its next holder reads the answer."""
    task = read_task(call, call.path["task_id"])
    if not body.answer:
        return _changed(await call.submit(UnblockTask(task.task_id)), "task.unblocked", "available")
    ref, content = keep(call, {"answer": body.answer}, queue_id=task.queue_id)
    outcome = await call.submit(UnblockTask(task.task_id, ref), (content,))
    return _changed(outcome, "task.unblocked", "available")


async def add_message(call: Call, body: NewMessage) -> MessageAdded:
    """Say something about a task that has not ended."""
    task = read_task(call, call.path["task_id"])
    message_id, role = "msg_" + call.services.ids.ulid(), "agent" if call.caller.agent_id else "human"
    parts = [msgspec.to_builtins(part) for part in body.parts]
    document = {"parts": parts, "metadata": body.metadata} if body.metadata else {"parts": parts}
    ref, content = await keep_beside(call, document, queue_id=task.queue_id)
    return _added(await call.submit(AddMessage(task.task_id, message_id, role, ref), (content,)))


async def raise_concern(call: Call, body: NewConcern) -> MessageAdded:
    """Raise a concern about work in progress."""
    task = read_task(call, call.path["task_id"])
    message_id = "msg_" + call.services.ids.ulid()
    ref, content = keep(call, {"concern": body.concern}, queue_id=task.queue_id)
    return _added(await call.submit(RaiseConcern(task.task_id, message_id, body.severity, ref), (content,)))


def _added(outcome: Outcome) -> MessageAdded:
    wire = outcome.records[0].wire
    return MessageAdded(
        message_id=wire["payload"]["message_id"],
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        event_id=event_id(wire["wire_id"]),
    )


async def list_messages(call: Call) -> Listed[TaskMessage]:
    """What was said about a task, in order."""
    task, asked = read_task(call, call.path["task_id"]), call.query
    found, following = task_messages(call.services.store, call.topic, task.task_id, sequence_after(asked), asked.limit)
    return Listed(found, str(following) if following else None)


async def get_context_state(call: Call) -> ContextState:
    """The state of a context: all tasks that share it."""
    found = await call.in_thread(lambda: context_state(call.services.store, call.topic, call.path["context_id"]))
    if found is None:
        raise not_found("context")
    return found


_TASK_ID = "task_01JTMX9A2B3C4D5E6F7G8H9JKP"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_EXAMPLE = {
    "title": "Research Piers Gorman",
    "requiredRoles": ["role_researcher"],
    "input": {"guestName": "Piers Gorman", "sourceHint": "TreviPay podcast planning doc"},
}
_TERMINAL = {409: "The task has ended."}

ROUTES = [
    Route(
        "POST",
        "/queues/{queue_id}/tasks",
        create_task,
        PRODUCE,
        body=NewTask,
        reply=Created,
        status=201,
        summary="Put a task on a queue.",
        replies={402: "The credits of the workspace are used up."},
        idempotent=True,
        example=_EXAMPLE,
        reply_example={
            "taskId": _TASK_ID,
            "queueId": "queue_podcast",
            "status": "available",
            "eventId": _EVENT_ID,
        },
    ),
    Route(
        "POST",
        "/queues/{queue_id}/tasks/batch",
        create_tasks,
        PRODUCE,
        body=NewTasks,
        reply=TaskResults,
        repeats="parts",
        summary="Put up to 500 tasks on a queue, each with its own result.",
        idempotent=True,
        example={"tasks": [_EXAMPLE]},
    ),
    Route(
        "GET",
        "/tasks/{task_id}",
        get_task,
        READ,
        query=TaskQuery,
        reply=TaskView,
        summary="One task, now or at any place of the ledger.",
    ),
    Route(
        "GET", "/tasks/{task_id}/explain", explain_task, READ, reply=Explanation, summary="Why a task is not running."
    ),
    Route(
        "POST",
        "/tasks/{task_id}/cancel",
        cancel_task,
        PRODUCE,
        reply=TaskChanged,
        summary="Cancel a task.",
        replies=_TERMINAL,
        idempotent=True,
    ),
    Route(
        "POST",
        "/tasks/{task_id}/retry",
        retry_task,
        PRODUCE,
        reply=TaskChanged,
        summary="Try a failed or cancelled task again.",
        replies={402: "The credits of the workspace are used up.", 409: "The task did not fail."},
        idempotent=True,
    ),
    Route(
        "POST",
        "/tasks/{task_id}/unblock",
        unblock_task,
        (*PRODUCE, *AGENT),
        body=Answer,
        reply=TaskChanged,
        summary="Answer a block.",
        replies={409: "The task is not blocked."},
        idempotent=True,
        example={"answer": "The spec is in the planning document."},
    ),
    Route(
        "POST",
        "/tasks/{task_id}/messages",
        add_message,
        (*PRODUCE, *AGENT),
        body=NewMessage,
        reply=MessageAdded,
        status=201,
        summary="Say something about a task.",
        replies=_TERMINAL,
        idempotent=True,
        example={"parts": [{"kind": "text", "text": "The guest moved to Thursday."}]},
    ),
    Route(
        "GET",
        "/tasks/{task_id}/messages",
        list_messages,
        READ,
        query=Page,
        reply=Listed[TaskMessage],
        summary="What was said about a task.",
    ),
    Route(
        "POST",
        "/tasks/{task_id}/concerns",
        raise_concern,
        (*PRODUCE, *AGENT),
        body=NewConcern,
        reply=MessageAdded,
        status=201,
        summary="Raise a concern about work in progress.",
        replies={409: "The task has ended, or nobody holds it."},
        idempotent=True,
        example={"concern": "The second source is a press release.", "severity": "major"},
    ),
    Route(
        "GET",
        "/contexts/{context_id}/state",
        get_context_state,
        READ,
        reply=ContextState,
        summary="The state of all tasks that share a context.",
    ),
]
