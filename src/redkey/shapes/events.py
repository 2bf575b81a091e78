"""Events of the ledger: one by id, those of one thing, by query, and live."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field, structs

from redkey.shapes.fields import SEVERAL, Body, Page, PageQuery, Reply
from redkey.shapes.operation import READ, Operation

EVENT_STREAM = "text/event-stream"
Filter = Annotated[str, Meta(max_length=64)]
Order = Literal["asc", "desc"]
Types = Annotated[str, Meta(max_length=1024), SEVERAL]


class Party(Reply, frozen=True, kw_only=True):
    """Who acted, or what was acted on."""

    type: str
    id: str


class EventHead(Reply, frozen=True, kw_only=True):
    """What happened, to what, and at which place in the workspace's order."""

    event_id: str
    type: str
    sequence: int
    timestamp: str
    actor: Party
    subject: Party


class Event(EventHead, frozen=True, kw_only=True):
    """What happened, to what, and at which place in the workspace's order; `data` is the payload of its wire."""

    # The same as `event_id`; every list item has an `id`.
    id: str = ""
    data: dict[str, Any]
    # The event that caused it, if known, and the correlation of its work if that is not its context.
    causation_id: str = ""
    correlation_id: str = ""
    # The extensions of the request.
    extensions: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.id:
            structs.force_setattr(self, "id", self.event_id)


class EventQuery(PageQuery, frozen=True, kw_only=True):
    """Which events of a thing: comma-separated types, in ledger order or newest first."""

    type: Types = ""
    order: Order = "asc"


class LedgerQuery(EventQuery, frozen=True, kw_only=True):
    """Which events: all conditions must hold. `from` is included, `to` is not."""

    # Repeated here for the order: SDK callers pass the parameters in this order.
    type: Types = ""
    agent_id: Filter = ""
    task_id: Filter = ""
    claim_id: Filter = ""
    workflow_id: Filter = ""
    queue_id: Filter = ""
    from_: Filter = field(default="", name="from")
    to: Filter = ""
    order: Order = "asc"


class StreamQuery(Body, frozen=True, kw_only=True):
    """What to follow: comma-separated event types, an agent, a workflow, a queue; and after which sequence.

    `types` is what `type` was called before; both are taken.
    """

    type: Types = ""
    types: str = ""
    agent_id: str = ""
    workflow_id: str = ""
    queue_id: str = ""
    after: int | None = None


EXAMPLE = {
    "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    "type": "task.claimed",
    "sequence": 55291,
    "timestamp": "2026-05-07T18:15:00.000000001Z",
    "actor": {"type": "agent", "id": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"},
    "subject": {"type": "task", "id": "task_01JTMX9A2B3C4D5E6F7G8H9JKP"},
    "data": {
        "taskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP",
        "attempt": 1,
        "agentId": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN",
        "claimId": "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ",
        "leaseExpiresAt": "2026-05-07T18:25:00.000000001Z",
    },
}
_PAGE_EXAMPLE = {"items": [EXAMPLE], "next": None}

QUERY_LEDGER = Operation(
    "query_ledger",
    "GET",
    "/ledger/query",
    READ,
    query=LedgerQuery,
    reply=Page[Event],
    summary="Query the ledger of the workspace.",
    description="Query events by type, subject and time. A page may be short of its limit and still have a `next`.",
    reply_example={"items": [EXAMPLE], "next": "55291"},
    method_name="ledger.query",
)
GET_EVENT = Operation(
    "get_event",
    "GET",
    "/events/{event_id}",
    READ,
    reply=Event,
    summary="Show an event.",
    reply_example=EXAMPLE,
    method_name="events.get",
)
TASK_EVENTS = Operation(
    "task_events",
    "GET",
    "/tasks/{task_id}/events",
    READ,
    query=EventQuery,
    reply=Page[Event],
    summary="List what happened to a task, including the attempts to claim it.",
    reply_example=_PAGE_EXAMPLE,
    method_name="tasks.events",
)
CLAIM_EVENTS = Operation(
    "claim_events",
    "GET",
    "/claims/{claim_id}/events",
    READ,
    query=EventQuery,
    reply=Page[Event],
    summary="List what happened to a claim.",
    reply_example=_PAGE_EXAMPLE,
    method_name="claims.events",
)
AGENT_EVENTS = Operation(
    "agent_events",
    "GET",
    "/agents/{agent_id}/events",
    READ,
    query=EventQuery,
    reply=Page[Event],
    event=Event,
    summary="List what an agent did and what happened to it, such as missed claims; live with text/event-stream.",
    description="List what an agent did and what happened to it; as a live stream with Accept: text/event-stream.",
    media=("application/json", EVENT_STREAM),
    reply_example=_PAGE_EXAMPLE,
    method_name="agents.events",
)
WORKFLOW_EVENTS = Operation(
    "workflow_events",
    "GET",
    "/workflows/{workflow_id}/events",
    READ,
    query=EventQuery,
    reply=Page[Event],
    event=Event,
    summary="List what happened in a run; live with Accept: text/event-stream.",
    description="List what happened in a run; as a live stream with Accept: text/event-stream.",
    media=("application/json", EVENT_STREAM),
    reply_example=_PAGE_EXAMPLE,
    method_name="workflows.events",
)
STREAM = Operation(
    "stream",
    "GET",
    "/stream",
    READ,
    query=StreamQuery,
    event=Event,
    summary="Follow the workspace's events as server-sent events.",
    description="Follow the events of the workspace.",
    media=(EVENT_STREAM,),
    streamed=True,
)

OPERATIONS = (QUERY_LEDGER, GET_EVENT, TASK_EVENTS, CLAIM_EVENTS, AGENT_EVENTS, WORKFLOW_EVENTS, STREAM)
