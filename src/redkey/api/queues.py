"""Queues: made, seen, set; what lies in them, and what of it may be claimed now."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import (
    Attempts,
    Body,
    LeaseSeconds,
    Listed,
    Name,
    Page,
    Text,
    Wait,
    Word,
    given,
    place_after,
    wrong,
)
from redkey.api.texts import keep
from redkey.commands.decision import not_found
from redkey.commands.registry import CreateQueue, UpdateQueue
from redkey.http.route import PRODUCE, READ, Route
from redkey.ledger.ports import Content
from redkey.readmodel.available import available
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import ENDED_STATES, LIVE_STATES, entity, task_list
from redkey.readmodel.task_view import QueueView, TaskSummary, queue_view, summary_view
from redkey.readmodel.view import View, read_document
from redkey.reducers.entities import Queue, Task
from redkey.services.outcome import Outcome
from redkey.services.subscriptions import Filter
from redkey.wire.a2a_card import slug
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import QUEUE_ID, queue_id

Priority = Literal["urgent", "high", "normal", "low"]
# What makes a task claimable that was not.
_OFFERS = frozenset({"task.available", "task.released", "task.unblocked", "task.lease_expired", "queue.updated"})


class QueueSettings(Body, frozen=True, kw_only=True):
    """What a queue decides for its tasks; what is not given keeps its value."""

    lease_seconds: LeaseSeconds | None = None
    max_attempts: Attempts | None = None
    priority: Priority | None = None
    paused: bool | None = None
    # Whether text that looks like a secret may be put into this queue's tasks.
    allow_secrets: bool | None = None
    max_live_claims: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    max_lease_losses: Annotated[int, Meta(ge=1, le=999)] | None = None

    def on_wire(self) -> dict[str, Any]:
        """The given settings under their names on the ledger."""
        names = {"max_lease_losses": "lease_losses"}
        return {
            names.get(name, name): value
            for name in QueueSettings.__struct_fields__
            if (value := getattr(self, name)) is not None
        }


class NewQueue(QueueSettings, frozen=True, kw_only=True):
    """A queue; without an id it is named after its name."""

    id: Word = ""
    name: Name
    description: Text = ""


class QueuePatch(QueueSettings, frozen=True, kw_only=True):
    """What to change about a queue."""

    name: Name | None = None
    description: Text | None = None


class CreatedQueue(View, frozen=True, kw_only=True):
    """A new queue."""

    queue_id: str
    name: str
    event_id: str


class TaskFilter(Page, frozen=True, kw_only=True):
    """Which tasks of a queue."""

    state: Literal["created", "available", "claimed", "working", "blocked", "completed", "failed", "cancelled"]


class AvailableFilter(Page, frozen=True, kw_only=True):
    """What may be claimed: by anybody, or by one agent; wait for something when there is nothing."""

    agent_id: Word | None = None
    wait: Wait = 0


async def create_queue(call: Call, body: NewQueue) -> CreatedQueue:
    """Create a queue."""
    named = queue_id(body.id or slug(body.name))
    if not QUEUE_ID.fullmatch(named):
        text = "an id has 1 to 26 letters, digits, dots, dashes and underscores and begins with a letter or digit"
        raise wrong("queue_invalid", "/id" if body.id else "/name", text)
    ref, content = keep(call, given(body, "name", "description"))
    return _created(call, await call.submit(CreateQueue(named, body.on_wire(), ref), (content,)))


def _created(call: Call, outcome: Outcome) -> CreatedQueue:
    wire = outcome.records[0].wire
    document = read_document(call.services.store, call.topic, wire["payload"]["name_ref"]["sha256"]) or {}
    return CreatedQueue(
        queue_id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=document.get("name", ""),
        event_id=event_id(wire["wire_id"]),
    )


def read_queue(call: Call, name: str) -> Queue:
    """The queue with any of its names; not found when there is none in the workspace."""
    row = call.services.store.row(call.topic, "queue", queue_id(name))
    if row is None:
        raise not_found("queue")
    queue: Queue = entity(row)
    return queue


def _show(call: Call, queue: Queue) -> QueueView:
    return queue_view(queue, read_document(call.services.store, call.topic, queue.content_sha256))


async def list_queues(call: Call) -> Listed[QueueView]:
    """The queues of the workspace, by id."""
    asked: Page = call.query
    rows = call.services.store.rows(call.topic, "queue", None, (0, place_after(asked)[1]), asked.limit)
    following = f"0.{rows[-1].key}" if len(rows) == asked.limit else None
    return Listed([_show(call, entity(row)) for row in rows], following)


async def get_queue(call: Call) -> QueueView:
    """One queue."""
    return _show(call, read_queue(call, call.path["queue_id"]))


async def patch_queue(call: Call, body: QueuePatch) -> QueueView:
    """Change a queue: its settings, its limits, its name; pause it or let it go on."""
    queue = read_queue(call, call.path["queue_id"])
    settings = body.on_wire()
    contents: tuple[Content, ...] = ()
    ref = None
    if body.name is not None or body.description is not None:
        before = read_document(call.services.store, call.topic, queue.content_sha256) or {}
        ref, content = keep(call, {**before, **given(body, "name", "description")})
        contents = (content,)
    elif not settings:
        raise wrong("nothing_to_change", "", "name at least one field to change")
    await call.submit(UpdateQueue(queue.queue_id, settings, ref), contents)
    return _show(call, read_queue(call, queue.queue_id))


def _summaries(call: Call, tasks: list[Task]) -> list[TaskSummary]:
    store, topic = call.services.store, call.topic
    return [summary_view(task, task_document(store, topic, task)) for task in tasks]


async def list_tasks(call: Call) -> Listed[TaskSummary]:
    """The tasks of a queue in one state: by priority, then oldest first."""
    asked: TaskFilter = call.query
    queue = read_queue(call, call.path["queue_id"])
    listed = task_list(queue.queue_id, asked.state)
    rows = call.services.store.rows(call.topic, "task", listed, place_after(asked), asked.limit)
    following = f"{rows[-1].position}.{rows[-1].key}" if len(rows) == asked.limit else None
    return Listed(_summaries(call, [entity(row) for row in rows]), following)


async def list_available(call: Call) -> Listed[TaskSummary]:
    """What may be claimed in a queue now; with `wait`, as soon as there is something."""
    asked: AvailableFilter = call.query
    queue = read_queue(call, call.path["queue_id"])
    if asked.agent_id is not None and call.services.store.row(call.topic, "agent", asked.agent_id) is None:
        raise not_found("agent")
    page = _available(call, queue.queue_id, asked)
    if page.items or page.next or not asked.wait:
        return page
    return await call.exchange.while_connected(_next_available(call, queue.queue_id, asked))


def _available(call: Call, queue_name: str, asked: AvailableFilter) -> Listed[TaskSummary]:
    world = call.services.coordinator.peek(call.topic)
    tasks, following = available(
        call.services.store, call.topic, world, queue_name, asked.agent_id, place_after(asked), asked.limit
    )
    return Listed(_summaries(call, tasks), f"{following[0]}.{following[1]}" if following else None)


async def _next_available(call: Call, queue_name: str, asked: AvailableFilter) -> Listed[TaskSummary]:
    """Look again whenever something may have become claimable, until the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + asked.wait
    following = call.services.subscriptions.open(call.topic, None, Filter(types=_OFFERS))
    try:
        while True:
            page = _available(call, queue_name, asked)
            left = deadline - loop.time()
            if page.items or page.next or left <= 0 or call.services.coordinator.stopping:
                return page
            while not following.take() and left > 0 and not call.services.coordinator.stopping:
                await following.wait(left)
                left = deadline - loop.time()
    finally:
        following.leave()


STATES = (*LIVE_STATES, *ENDED_STATES)
_EXAMPLE = {"id": "queue_podcast", "name": "Podcast production", "leaseSeconds": 900}

ROUTES = [
    Route(
        "POST",
        "/queues",
        create_queue,
        PRODUCE,
        body=NewQueue,
        reply=CreatedQueue,
        status=201,
        summary="Create a queue.",
        replies={409: "The queue exists already."},
        idempotent=True,
        example=_EXAMPLE,
    ),
    Route("GET", "/queues", list_queues, READ, query=Page, reply=Listed[QueueView], summary="List queues."),
    Route("GET", "/queues/{queue_id}", get_queue, READ, reply=QueueView, summary="One queue and its settings."),
    Route(
        "PATCH",
        "/queues/{queue_id}",
        patch_queue,
        PRODUCE,
        body=QueuePatch,
        reply=QueueView,
        repeats="bytes",
        summary="Change a queue's settings and limits.",
        example={"paused": True},
    ),
    Route(
        "GET",
        "/queues/{queue_id}/tasks",
        list_tasks,
        READ,
        query=TaskFilter,
        reply=Listed[TaskSummary],
        summary="The tasks of a queue in one state.",
    ),
    Route(
        "GET",
        "/queues/{queue_id}/tasks/available",
        list_available,
        READ,
        query=AvailableFilter,
        reply=Listed[TaskSummary],
        summary="What may be claimed in a queue, at once or as soon as there is something.",
    ),
]
