"""Queues: created, shown, changed; their tasks, and which of them may be claimed now."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import get_args

import msgspec

from redkey.commands.decision import not_found, wrong
from redkey.commands.registry import CreateQueue, UpdateQueue
from redkey.ledger.ports import Content
from redkey.readmodel.available import available
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import task_list
from redkey.readmodel.task_view import first_created, queue_view, summary_view
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending, Result
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.subscriptions import Filter
from redkey.services.use_case import use_case
from redkey.services.use_cases.new_id import new_id
from redkey.services.use_cases.pages import page_by_key, page_by_place, place_after, read_entity
from redkey.services.use_cases.texts import keep
from redkey.shapes import queues
from redkey.shapes.fields import Page, PageQuery, set_fields
from redkey.shapes.queues import (
    AvailableFilter,
    CreatedQueue,
    NewQueue,
    Queue,
    QueueCounts,
    QueuePatch,
    TaskFilter,
)
from redkey.shapes.tasks import TaskState, TaskSummary
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import queue_id

# Events that make a task claimable.
_OFFERS = frozenset(
    {"task.available", "task.released", "task.unblocked", "task.lease_expired", "task.stalled", "queue.updated"}
)


@use_case(queues.CREATE_QUEUE)
def create_queue(caller: Caller, new: NewQueue) -> Pending[CreatedQueue]:
    """Create a queue."""
    named = new_id("queue", new.id, new.name)
    ref, content = keep(caller, set_fields(new, "name", "description"))
    return Pending(CreateQueue(named, new.on_wire(), ref), _created, (content,))


def _created(outcome: Outcome, place: Place) -> CreatedQueue:
    wire = outcome.records[0].wire
    document = place.document(wire["payload"]["name_ref"]["sha256"]) or {}
    return CreatedQueue(
        queue_id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=document.get("name", ""),
        event_id=event_id(wire["wire_id"]),
    )


def read_queue(caller: Caller, name: str) -> entities.Queue:
    """Return the queue with any of its names; not found if the workspace has none."""
    return read_entity(caller, entities.Queue, queue_id(name))


def _show(caller: Caller, queue: entities.Queue) -> Queue:
    return queue_view(queue, read_document(caller.means.store, caller.topic, queue.content_sha256))


@use_case(queues.LIST_QUEUES)
def list_queues(caller: Caller, asked: PageQuery) -> Page[Queue]:
    """List the queues of the workspace, by id."""
    return page_by_key(caller, "queue", asked, lambda queue: _show(caller, queue))


@use_case(queues.GET_QUEUE)
def get_queue(caller: Caller, name: str) -> Queue:
    """Show one queue."""
    return _show(caller, read_queue(caller, name))


@use_case(queues.PATCH_QUEUE)
def patch_queue(caller: Caller, name: str, patch: QueuePatch) -> Pending[Queue]:
    """Change a queue: its settings, its limits, its name; pause or resume it."""
    queue = read_queue(caller, name)
    settings = patch.on_wire()
    contents: tuple[Content, ...] = ()
    ref = None
    if patch.name is not None or patch.description is not None:
        before = read_document(caller.means.store, caller.topic, queue.content_sha256) or {}
        ref, content = keep(caller, {**before, **set_fields(patch, "name", "description")})
        contents = (content,)
    elif not settings:
        raise wrong("nothing_to_change", "", "name at least one field to change")

    def reply(outcome: Outcome, place: Place) -> Queue:
        changed = place.world.queues[queue.queue_id]
        return queue_view(changed, place.document(changed.content_sha256))

    return Pending(UpdateQueue(queue.queue_id, settings, ref), reply, contents)


def _summary(caller: Caller, task: entities.Task) -> TaskSummary:
    store, topic = caller.means.store, caller.topic
    read = partial(read_document, store, topic)
    shown = summary_view(task, task_document(store, topic, task), read)
    return msgspec.structs.replace(shown, created_at=first_created(store, topic, task))


@use_case(queues.COUNT_TASKS)
async def count_tasks(caller: Caller, name: str) -> QueueCounts:
    """Count the tasks of a queue by state."""
    store, topic, found = caller.means.store, caller.topic, read_queue(caller, name).queue_id

    def count() -> dict[str, int]:
        return {state: store.count_rows(topic, "task", task_list(found, state)) for state in get_args(TaskState)}

    # Beside the event loop: queues may have a million ended tasks.
    return QueueCounts(queue_id=found, tasks=await caller.in_thread(count))


@use_case(queues.LIST_TASKS)
def list_tasks(caller: Caller, name: str, asked: TaskFilter) -> Page[TaskSummary]:
    """List the tasks of a queue in one state: by priority, then oldest first."""
    queue = read_queue(caller, name)
    return page_by_place(
        caller, "task", task_list(queue.queue_id, asked.state), asked, lambda task: _summary(caller, task)
    )


@use_case(queues.LIST_AVAILABLE)
def list_available(caller: Caller, name: str, asked: AvailableFilter) -> Result[Page[TaskSummary]]:
    """List what may be claimed in a queue now; with `wait`, as soon as there is something."""
    queue = read_queue(caller, name)
    if asked.agent_id is not None and caller.means.store.row(caller.topic, "agent", asked.agent_id) is None:
        raise not_found("agent")
    page = _available(caller, queue.queue_id, asked)
    if page.items or page.next or not asked.wait:
        return page
    return caller.while_here(_next_available(caller, queue.queue_id, asked))


def _available(caller: Caller, queue_name: str, asked: AvailableFilter) -> Page[TaskSummary]:
    world = caller.means.coordinator.peek(caller.topic)
    tasks, following = available(
        caller.means.store, caller.topic, world, queue_name, asked.agent_id, place_after(asked), asked.limit
    )
    items = tuple(_summary(caller, task) for task in tasks)
    return Page(items, f"{following[0]}.{following[1]}" if following else None)


async def _next_available(caller: Caller, queue_name: str, asked: AvailableFilter) -> Page[TaskSummary]:
    """Look again whenever something may have become claimable, until the time is over."""
    loop, coordinator = asyncio.get_running_loop(), caller.means.coordinator
    deadline = loop.time() + asked.wait
    following = caller.means.subscriptions.open(caller.topic, None, Filter(types=_OFFERS))
    try:
        while True:
            page = _available(caller, queue_name, asked)
            left = deadline - loop.time()
            if page.items or page.next or left <= 0 or coordinator.stopping:
                return page
            while not following.take() and left > 0 and not coordinator.stopping:
                await following.wait(left)
                left = deadline - loop.time()
    finally:
        following.leave()
