"""Queues: create, show and change them; list their tasks, and those that may be claimed now."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from redkey.shapes.fields import (
    Attempts,
    Extended,
    Identified,
    LeaseSeconds,
    Name,
    Page,
    PageQuery,
    Seconds,
    Text,
    Wait,
    Word,
    one_of,
)
from redkey.shapes.operation import PRODUCE, READ, Operation
from redkey.shapes.tasks import Priority, TaskState, TaskSummary


class QueueSettings(Extended, frozen=True, kw_only=True):
    """The settings that a queue applies to its tasks; those that are not given keep their values."""

    lease_seconds: LeaseSeconds | None = None
    max_attempts: Annotated[Attempts, Meta(description="How often a task is tried.")] | None = None
    priority: Annotated[Priority, Meta(description="Priority of tasks that have none of their own.")] | None = None
    paused: Annotated[bool, Meta(description="Whether it is paused: nothing is claimed from it.")] | None = None
    allow_secrets: (
        Annotated[bool, Meta(description="Whether its tasks may contain text that looks like a secret.")] | None
    ) = None
    max_live_claims: (
        Annotated[int, Meta(ge=1, le=1_000_000, description="How many claims one agent may hold.")] | None
    ) = None
    max_lease_losses: (
        Annotated[int, Meta(ge=1, le=999, description="How many leases of a task may expire before it fails.")] | None
    ) = None
    idle_seconds: (
        Annotated[Seconds, Meta(description="How long a hold without a handler may be idle before it stalls.")] | None
    ) = None

    def on_wire(self) -> dict[str, Any]:
        """The settings that are set, under their names on the ledger."""
        names = {"max_lease_losses": "lease_losses"}
        return {
            names.get(name, name): value
            for name in QueueSettings.__struct_fields__
            if name != "extensions" and (value := getattr(self, name)) is not None
        }


class NewQueue(QueueSettings, frozen=True, kw_only=True):
    """A queue; without an id, the id is derived from its name."""

    id: Annotated[Word, Meta(description="Its id [derived from its name].")] = ""
    name: Name
    description: Annotated[Text, Meta(description="What it is for.")] = ""


class QueuePatch(QueueSettings, frozen=True, kw_only=True):
    """What to change about a queue."""

    name: Annotated[Name, Meta(description="A name for people.")] | None = None
    description: Annotated[Text, Meta(description="What it is for.")] | None = None


class Queue(Identified, frozen=True, kw_only=True):
    """A queue with its settings."""

    SPECIFIC: ClassVar[str] = "queue_id"
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


class CreatedQueue(Identified, frozen=True, kw_only=True):
    """A new queue."""

    SPECIFIC: ClassVar[str] = "queue_id"
    queue_id: str
    name: str
    event_id: str


class QueueCounts(Identified, frozen=True, kw_only=True):
    """How many tasks a queue has."""

    SPECIFIC: ClassVar[str] = "queue_id"
    queue_id: str
    tasks: Annotated[dict[str, int], Meta(description="By state; a state without tasks has 0.")]


class TaskFilter(PageQuery, frozen=True, kw_only=True):
    """Which tasks of a queue."""

    state: TaskState


class AvailableFilter(PageQuery, frozen=True, kw_only=True):
    """What may be claimed: by any agent, or by one; `wait` waits if there is nothing."""

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
    description="Create a queue; without an id, the id is derived from its name.",
    replies={409: "The queue already exists."},
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
    description="List the queues of the workspace, by id.",
    method_name="queues.list",
)
GET_QUEUE = Operation(
    "get_queue",
    "GET",
    "/queues/{queue_id}",
    READ,
    reply=Queue,
    summary="Show a queue with its settings.",
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
    description="Change a queue: its settings, its limits, its name; pause or resume it.",
    example={"paused": True},
    method_name="queues.update",
    command="queue update QUEUE",
)
COUNT_TASKS = Operation(
    "count_tasks",
    "GET",
    "/queues/{queue_id}/counts",
    READ,
    reply=QueueCounts,
    summary="How many tasks of a queue are in which state.",
    description="How many tasks of a queue are in which state, however many there are.",
    method_name="queues.counts",
)
LIST_TASKS = Operation(
    "list_tasks",
    "GET",
    "/queues/{queue_id}/tasks",
    READ,
    query=TaskFilter,
    reply=Page[TaskSummary],
    summary="List the tasks of a queue in one state.",
    description="List the tasks of a queue in one state: by priority, then oldest first.",
    method_name="tasks.list",
)
LIST_AVAILABLE = Operation(
    "list_available",
    "GET",
    "/queues/{queue_id}/tasks/available",
    READ,
    query=AvailableFilter,
    reply=Page[TaskSummary],
    summary="List what may be claimed in a queue, now or as soon as there is something.",
    description="List what may be claimed in a queue now; with `wait`, as soon as there is something.",
    method_name="tasks.available",
)

OPERATIONS = (CREATE_QUEUE, LIST_QUEUES, GET_QUEUE, PATCH_QUEUE, COUNT_TASKS, LIST_TASKS, LIST_AVAILABLE)
