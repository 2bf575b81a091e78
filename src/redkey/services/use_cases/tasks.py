"""Tasks for their owners: created, shown at any place of the ledger, explained, cancelled, retried, discussed."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from redkey.commands.decision import not_found, wrong
from redkey.commands.tasks import AddMessage, CancelTask, RaiseConcern, RetryTask, UnblockTask
from redkey.readmodel.context_view import context_state
from redkey.readmodel.explain import explain
from redkey.readmodel.task_at import task_at
from redkey.readmodel.task_messages import task_messages
from redkey.readmodel.task_view import first_created, task_view
from redkey.readmodel.upstream import results, upstream
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.message_documents import message_document
from redkey.services.use_cases.new_task import create
from redkey.services.use_cases.pages import read_entity, sequence_after
from redkey.services.use_cases.pieces import in_pieces
from redkey.services.use_cases.queues import read_queue
from redkey.services.use_cases.texts import keep, keep_then
from redkey.shapes import tasks
from redkey.shapes.fields import Page, PageQuery
from redkey.shapes.problem import Problem
from redkey.shapes.tasks import (
    Answer,
    ContextState,
    CreatedTask,
    Explanation,
    MessageAdded,
    NewConcern,
    NewMessage,
    NewTask,
    NewTasks,
    Task,
    TaskChanged,
    TaskMessage,
    TaskQuery,
    TaskResult,
    TaskResults,
)
from redkey.wire import events
from redkey.wire.ids import event_id, parse_stream


@use_case(tasks.CREATE_TASK)
def create_task(
    caller: Caller, queue: str, task: NewTask
) -> Pending[CreatedTask] | Coroutine[Any, Any, Pending[CreatedTask]]:
    """Put a task on a queue."""
    return create(caller, queue, task)


@use_case(tasks.CREATE_TASKS)
async def create_tasks(caller: Caller, queue: str, batch: NewTasks) -> TaskResults:
    """Put many tasks on a queue at once."""
    named = read_queue(caller, queue).queue_id

    def begin(index: int, task: NewTask) -> Pending[CreatedTask] | Coroutine[Any, Any, Pending[CreatedTask]]:
        return create(caller, named, task, part=str(index), under=f"/tasks/{index}")

    def show(task: CreatedTask | None, problem: Problem | None) -> TaskResult:
        return TaskResult(task=task, problem=problem)

    return TaskResults(items=await in_pieces(caller, batch.tasks, begin, show))


def read_task(caller: Caller, task_id: str) -> entities.Task:
    """Return the task with an id; not found if the workspace has none."""
    return read_entity(caller, entities.Task, task_id)


@use_case(tasks.GET_TASK)
def get_task(caller: Caller, task_id: str, asked: TaskQuery) -> Task:
    """Show one task in full, now or as it was at any place of the ledger."""
    task, store = read_task(caller, task_id), caller.means.store
    if asked.at is not None:
        if asked.at > store.head(caller.topic).sequence:
            raise wrong("sequence_ahead", "/at", "the ledger has not reached this sequence yet")
        found = task_at(store, caller.topic, task, asked.at)
        if found is None:
            raise not_found("task")
        task = found
    shown = task_view(task, lambda sha256: read_document(store, caller.topic, sha256), asked.at)
    shown = msgspec.structs.replace(shown, created_at=first_created(store, caller.topic, task))
    if asked.at is not None or not shown.depends_on:
        return shown
    world = caller.means.coordinator.peek(caller.topic)
    before = (store, caller.topic, world, task, {"dependsOn": shown.depends_on})
    return msgspec.structs.replace(shown, upstream=upstream(*before), results=results(*before))


@use_case(tasks.EXPLAIN_TASK)
def explain_task(caller: Caller, task_id: str) -> Explanation:
    """Explain why a task is not running, and what would change that."""
    world = caller.means.coordinator.peek(caller.topic)
    return explain(world, world.tasks.get(task_id) or read_task(caller, task_id))


def _changed(outcome: Outcome, event: str, status: str) -> TaskChanged:
    record = outcome.first(event)
    if record is None:
        raise AssertionError(f"no {event} among what was recorded")
    stream = parse_stream(record.event.stream.stream_id)
    return TaskChanged(
        task_id=stream.subject, status=status, attempt=stream.attempt, event_id=event_id(record.event.wire_id)
    )


@use_case(tasks.CANCEL_TASK)
def cancel_task(caller: Caller, task_id: str) -> Pending[TaskChanged]:
    """Cancel a task; its holder learns it with the next call."""
    return Pending(CancelTask(task_id), lambda outcome, _: _changed(outcome, "task.cancelled", "cancelled"))


@use_case(tasks.RETRY_TASK)
def retry_task(caller: Caller, task_id: str) -> Pending[TaskChanged]:
    """Retry a failed or cancelled task, as a new attempt."""

    def reply(outcome: Outcome, place: Place) -> TaskChanged:
        status = "available" if outcome.first("task.available") is not None else "created"
        return _changed(outcome, "task.created", status)

    return Pending(RetryTask(task_id), reply)


@use_case(tasks.UNBLOCK_TASK)
def unblock_task(caller: Caller, task_id: str, said: Answer) -> Pending[TaskChanged]:
    """Answer a block: the task may be claimed again, and its next holder reads the answer."""
    task = read_task(caller, task_id)

    def reply(outcome: Outcome, place: Place) -> TaskChanged:
        return _changed(outcome, "task.unblocked", "available")

    if not said.answer:
        return Pending(UnblockTask(task.task_id), reply)
    ref, content = keep(caller, {"answer": said.answer}, queue_id=task.queue_id)
    return Pending(UnblockTask(task.task_id, ref), reply, (content,))


@use_case(tasks.ADD_MESSAGE)
def add_message(
    caller: Caller, task_id: str, new: NewMessage
) -> Pending[MessageAdded] | Coroutine[Any, Any, Pending[MessageAdded]]:
    """Send a message about a task that has not ended."""
    task = read_task(caller, task_id)
    message_id, role = "msg_" + caller.means.ids.ulid(), "agent" if caller.actor.agent_id else "human"
    if new.said_as not in (None, role):
        raise wrong("role_mismatch", "/role", f"messages of this key have the role {role}")
    parts = [msgspec.to_builtins(part) for part in new.parts]
    return keep_then(
        caller,
        message_document(new.own_id or message_id, role, parts, new.metadata),
        lambda ref, content: Pending(AddMessage(task.task_id, message_id, role, ref), _added, (content,)),
        queue_id=task.queue_id,
    )


@use_case(tasks.RAISE_CONCERN)
def raise_concern(caller: Caller, task_id: str, new: NewConcern) -> Pending[MessageAdded]:
    """Raise a concern about work in progress."""
    task = read_task(caller, task_id)
    message_id = "msg_" + caller.means.ids.ulid()
    ref, content = keep(caller, {"concern": new.concern}, queue_id=task.queue_id)
    return Pending(RaiseConcern(task.task_id, message_id, new.severity, ref), _added, (content,))


def _added(outcome: Outcome, place: Place) -> MessageAdded:
    wire = outcome.records[0].event
    if not isinstance(wire.payload, events.MessageAdded | events.ReviewConcern):
        raise AssertionError("a message without a record")
    return MessageAdded(
        message_id=wire.payload.message_id,
        task_id=parse_stream(wire.stream.stream_id).subject,
        event_id=event_id(wire.wire_id),
    )


@use_case(tasks.LIST_MESSAGES)
def list_messages(caller: Caller, task_id: str, asked: PageQuery) -> Page[TaskMessage]:
    """List the messages about a task, in order."""
    task, store = read_task(caller, task_id), caller.means.store
    found, following = task_messages(store, caller.topic, task.task_id, sequence_after(asked), asked.limit)
    return Page(tuple(found), str(following) if following else None)


@use_case(tasks.GET_CONTEXT_STATE)
async def get_context_state(caller: Caller, context_id: str) -> ContextState:
    """Show the state of a context: all tasks that share it."""
    found = await caller.in_thread(lambda: context_state(caller.means.store, caller.topic, context_id))
    if found is None:
        raise not_found("context")
    return found
