"""Events of the ledger: one by one, by what they are about, by query, and live."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

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
    """What happened, to whom, at which place in the workspace's order."""

    event_id: str
    type: str
    sequence: int
    timestamp: str
    actor: Party
    subject: Party


class Event(EventHead, frozen=True, kw_only=True):
    """What happened, to whom, at which place in the workspace's order; `data` is the payload of its wire."""

    data: dict[str, Any]


class EventQuery(PageQuery, frozen=True, kw_only=True):
    """Which events of a thing: types with commas between, in the order of the ledger or newest first."""

    type: Types = ""
    order: Order = "asc"


class LedgerQuery(EventQuery, frozen=True, kw_only=True):
    """Which events: all conditions that are given must hold. `from` is included, `to` is not."""

    # Named again for their places: callers of the SDK send the parameters in this order.
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
    """What to follow: event types with commas between, one agent, one workflow, one queue; and after which place."""

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
    description="Events by type, by what they speak of, by time. A page may be short of its limit and still have a "
    "next.",
    reply_example={"items": [EXAMPLE], "next": "55291"},
    method_name="ledger.query",
)
GET_EVENT = Operation(
    "get_event",
    "GET",
    "/events/{event_id}",
    READ,
    reply=Event,
    summary="One event.",
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
    summary="What happened to a task, with the attempts to claim it.",
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
    summary="What happened to a claim.",
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
    summary="What an agent did and what happened to it, such as claims it missed; live with Accept: text/event-stream.",
    description="What an agent did and what happened to it; as a live stream when text/event-stream is asked for.",
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
    summary="What happened in a run; live with Accept: text/event-stream.",
    description="What happened in a run; as a live stream when text/event-stream is asked for.",
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
