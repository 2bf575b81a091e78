"""Events by HTTP: pages, and those of an agent live with Accept: text/event-stream."""

from __future__ import annotations

from typing import Any

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.api.stream import EventStream, last_event_id
from redkey.services.use_cases import events as use_cases
from redkey.shapes.events import EVENT_STREAM


async def agent_events(call: Call) -> Any:
    """The events of an agent, as a page or live."""
    agent_id = call.path["agent_id"]
    if call.accepts(EVENT_STREAM.encode()):
        return EventStream(call, use_cases.follow_agent(call, agent_id, call.query, last_event_id(call)))
    return await use_cases.agent_events(call, agent_id, call.query)


ROUTES = [
    bound(use_cases.query_ledger),
    bound(use_cases.get_event),
    bound(use_cases.task_events),
    bound(use_cases.claim_events),
    bound(use_cases.agent_events, agent_events),
]
