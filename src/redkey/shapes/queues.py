"""Queues: made, seen, set; what lies in them, and what of it may be claimed now."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from redkey.shapes.fields import (
    Attempts,
    Body,
    LeaseSeconds,
    Name,
    Page,
    PageQuery,
    Reply,
    Seconds,
    Text,
    Wait,
    Word,
    one_of,
)
from redkey.shapes.operation import PRODUCE, READ, Operation
from redkey.shapes.tasks import Priority, TaskState, TaskSummary


class QueueSettings(Body, frozen=True, kw_only=True):
    """What a queue decides for its tasks; what is not given keeps its value."""

    lease_seconds: LeaseSeconds | None = None
    max_attempts: Annotated[Attempts, Meta(description="How often a task is tried.")] | None = None
    priority: Annotated[Priority, Meta(description="Of tasks that have none of their own.")] | None = None
    paused: Annotated[bool, Meta(description="Whether it is paused: nothing is claimed from it.")] | None = None
    allow_secrets: (
        Annotated[bool, Meta(description="Whether its tasks may hold text that looks like a secret.")] | None
    ) = None
    max_live_claims: (
        Annotated[int, Meta(ge=1, le=1_000_000, description="How many claims one agent may hold.")] | None
    ) = None
    max_lease_losses: (
        Annotated[int, Meta(ge=1, le=999, description="How many leases of a task may expire before it fails.")] | None
    ) = None
    idle_seconds: (
        Annotated[Seconds, Meta(description="How long a hold without a handler may do nothing before it stalls.")]
        | None
    ) = None

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

    id: Annotated[Word, Meta(description="Its id [derived from its name].")] = ""
    name: Name
    description: Annotated[Text, Meta(description="What it is for.")] = ""


class QueuePatch(QueueSettings, frozen=True, kw_only=True):
    """What to change about a queue."""

    name: Annotated[Name, Meta(description="A name for people.")] | None = None
    description: Annotated[Text, Meta(description="What it is for.")] | None = None


class Queue(Reply, frozen=True, kw_only=True):
    """A queue and what it decides for its tasks."""

    queue_id: str
    name: str = ""
    description: str = ""
    lease_seconds: int
    max_attempts: int
    priority: Annotated[str, one_of("urgent", "high", "normal", "low")]
    paused: bool
    allow_secrets: bool
    max_live_claims: int
    max_lease_losses: int
    idle_seconds: int
    created_at: str | None
    erased: bool = False


class CreatedQueue(Reply, frozen=True, kw_only=True):
    """A new queue."""

    queue_id: str
    name: str
    event_id: str


class TaskFilter(PageQuery, frozen=True, kw_only=True):
    """Which tasks of a queue."""

    state: TaskState


class AvailableFilter(PageQuery, frozen=True, kw_only=True):
    """What may be claimed: by anybody, or by one agent; wait for something when there is nothing."""

    agent_id: Word | None = None
    wait: Wait = 0


CREATE_QUEUE = Operation(
    "create_queue",
    "POST",
    "/queues",
    PRODUCE,
    body=NewQueue,
    reply=CreatedQueue,
    status=201,
    summary="Create a queue.",
    description="Create a queue; without an id it is named after its name.",
    replies={409: "The queue exists already."},
    example={"id": "queue_podcast", "name": "Podcast production", "leaseSeconds": 900},
    method_name="queues.create",
    positional=("name",),
    command="queue create NAME",
)
LIST_QUEUES = Operation(
    "list_queues",
    "GET",
    "/queues",
    READ,
    query=PageQuery,
    reply=Page[Queue],
    summary="List queues.",
    description="The queues of the workspace, by id.",
    method_name="queues.list",
)
GET_QUEUE = Operation(
    "get_queue",
    "GET",
    "/queues/{queue_id}",
    READ,
    reply=Queue,
    summary="One queue and its settings.",
    method_name="queues.get",
)
PATCH_QUEUE = Operation(
    "patch_queue",
    "PATCH",
    "/queues/{queue_id}",
    PRODUCE,
    body=QueuePatch,
    reply=Queue,
    repeats="bytes",
    summary="Change a queue's settings and limits.",
    description="Change a queue: its settings, its limits, its name; pause it or let it go on.",
    example={"paused": True},
    method_name="queues.update",
    command="queue update QUEUE",
)
LIST_TASKS = Operation(
    "list_tasks",
    "GET",
    "/queues/{queue_id}/tasks",
    READ,
    query=TaskFilter,
    reply=Page[TaskSummary],
    summary="The tasks of a queue in one state.",
    description="The tasks of a queue in one state: by priority, then oldest first.",
    method_name="tasks.list",
)
LIST_AVAILABLE = Operation(
    "list_available",
    "GET",
    "/queues/{queue_id}/tasks/available",
    READ,
    query=AvailableFilter,
    reply=Page[TaskSummary],
    summary="What may be claimed in a queue, at once or as soon as there is something.",
    description="What may be claimed in a queue now; with `wait`, as soon as there is something.",
    method_name="tasks.available",
)

OPERATIONS = (CREATE_QUEUE, LIST_QUEUES, GET_QUEUE, PATCH_QUEUE, LIST_TASKS, LIST_AVAILABLE)
