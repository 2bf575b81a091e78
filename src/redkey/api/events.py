"""Events over HTTP: pages, and live streams of an agent or run with Accept: text/event-stream."""

from __future__ import annotations

from typing import Any

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.api.stream import EventStream, last_event_id
from redkey.http.route import Route
from redkey.services.use_case import UseCase
from redkey.services.use_cases import events as use_cases
from redkey.shapes.events import EVENT_STREAM


def listed_or_live(listed: UseCase[Any, Any], live: UseCase[Any, Any]) -> Route:
    """The route of a thing's events: a page, or a stream with Accept: text/event-stream."""
    [name] = listed.operation.path_names

    async def handler(call: Call) -> Any:
        if call.accepts(EVENT_STREAM.encode()):
            return EventStream(call, live(call, call.path[name], call.query, last_event_id(call)))
        return await listed(call, call.path[name], call.query)

    return bound(listed, handler)


ROUTES = [
    bound(use_cases.query_ledger),
    bound(use_cases.get_event),
    bound(use_cases.task_events),
    bound(use_cases.claim_events),
    listed_or_live(use_cases.agent_events, use_cases.follow_agent),
]
