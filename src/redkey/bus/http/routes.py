"""The routes of the HTTP face, declared once: requests are dispatched and OpenAPI is generated from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redkey.bus.http import events, messages, sessions, shapes
from redkey.http.route import Handler, Route
from redkey.shapes.events import EVENT_STREAM
from redkey.shapes.operation import PRODUCE, READ, Operation

PREFIX = "/api"
_SESSION, _AGENT, _MESSAGE = "/sessions/{session_id}", "/agents/{agent_id}", "/messages/{message_id}"
_WRITE = ("produce", "agent", "runner")
_REFUSED = {
    404: "No such session, agent or message in this workspace.",
    409: "The state does not allow it, or a rule of conduct forbids it.",
}


async def bus_health(call: Any) -> None:
    """Show that the bus answers; needs no key."""


def bus_route(method: str, path: str, handler: Handler, scopes: Sequence[str], summary: str, **more: Any) -> Route:
    """Create a route of the bus; its errors are `{error, code}`."""
    replies = {**(_REFUSED if "{" in path else {}), **more.pop("replies", {})}
    operation = Operation(
        handler.__name__,
        method,
        PREFIX + path,
        tuple(scopes),
        summary=summary,
        description=" ".join((handler.__doc__ or "").split()),
        failure=shapes.BusError,
        fails_alike=True,
        replies=replies,
        **more,
    )
    return Route(operation, handler)


HEALTH = bus_route("GET", "/health", bus_health, (), "Show that the bus answers.", reply=shapes.BusHealth)
ROUTES = [
    bus_route(
        "GET",
        "/sessions",
        sessions.bus_sessions,
        READ,
        "List the sessions of the workspace.",
        query=shapes.SessionsQuery,
        reply=list[shapes.BusSession],
    ),
    bus_route(
        "POST",
        "/sessions",
        sessions.bus_create_session,
        _WRITE,
        "Create a session, or get the one that has this id.",
        body=shapes.NewBusSession,
        reply=shapes.BusSession,
        status=201,
        replies={200: "The session exists already."},
        example={"name": "release", "policy": "guarded", "reuse": True},
    ),
    bus_route(
        "GET",
        "/sessions/stream",
        events.bus_watch_sessions,
        READ,
        "Follow the sessions that are created and closed, as server-sent events.",
        query=shapes.BusStreamQuery,
        event=shapes.BusSessionEvent,
        media=(EVENT_STREAM,),
        streamed=True,
    ),
    bus_route("GET", _SESSION, sessions.bus_session, READ, "Show a session.", reply=shapes.BusSession),
    bus_route(
        "POST",
        f"{_SESSION}/close",
        sessions.bus_close_session,
        PRODUCE,
        "Close a session; its agents are disconnected.",
        reply=shapes.BusSession,
    ),
    bus_route("GET", f"{_SESSION}/agents", sessions.bus_agents, READ, "List the agents.", reply=list[shapes.BusAgent]),
    bus_route(
        "POST",
        f"{_SESSION}/agents",
        sessions.bus_add_agent,
        _WRITE,
        "Add an agent, or get the one that has this id.",
        body=shapes.NewBusAgent,
        reply=shapes.BusAgent,
        status=201,
        replies={200: "The agent exists already."},
        example={"id": "worker", "name": "Worker"},
    ),
    bus_route(
        "POST",
        f"{_SESSION}/agents/order",
        sessions.bus_order_agents,
        PRODUCE,
        "Put the agents in another order.",
        body=shapes.BusAgentOrder,
        reply=list[shapes.BusAgent],
        example={"agent_ids": ["worker", "lead"]},
    ),
    bus_route(
        "PATCH",
        f"{_SESSION}{_AGENT}",
        sessions.bus_change_agent,
        _WRITE,
        "Change the name, the status or the lead of an agent.",
        body=shapes.BusAgentChange,
        reply=shapes.BusAgent,
        idempotent=False,
        example={"name": "Worker", "status": "testing"},
    ),
    bus_route(
        "DELETE",
        f"{_SESSION}{_AGENT}",
        sessions.bus_remove_agent,
        _WRITE,
        "Remove an agent and the messages that wait for it.",
        status=204,
        media=(),
        idempotent=False,
    ),
    bus_route(
        "GET",
        f"{_SESSION}{_AGENT}/messages",
        messages.bus_mail,
        READ,
        "List the messages that wait for an agent.",
        query=shapes.MailQuery,
        reply=list[shapes.BusMessage],
    ),
    bus_route(
        "POST",
        f"{_SESSION}/messages",
        messages.bus_send,
        _WRITE,
        "Send a message to agents; it is durable when this answers.",
        body=shapes.NewBusMessage,
        reply=list[shapes.BusMessage],
        status=202,
        example={"text": "Is the build green?", "agent_ids": ["worker"]},
    ),
    bus_route(
        "GET",
        f"{_SESSION}{_MESSAGE}",
        messages.bus_message,
        READ,
        "Show a message and the state of its deliveries.",
        reply=shapes.BusMessage,
    ),
    bus_route(
        "POST",
        f"{_SESSION}{_MESSAGE}/ack",
        messages.bus_acknowledge,
        _WRITE,
        "Confirm a message for an agent.",
        body=shapes.BusMessageTaken,
        status=204,
        media=(),
        example={"agent_id": "worker"},
    ),
    bus_route(
        "GET",
        f"{_SESSION}/events",
        events.bus_events,
        READ,
        "List the events of a session.",
        query=shapes.EventsQuery,
        reply=list[shapes.BusEvent],
    ),
    bus_route(
        "GET",
        f"{_SESSION}/events/stream",
        events.bus_follow,
        READ,
        "Follow the events of a session, as server-sent events.",
        query=shapes.BusStreamQuery,
        event=shapes.BusEvent,
        media=(EVENT_STREAM,),
        streamed=True,
    ),
]
