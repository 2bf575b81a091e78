"""Sessions and their agents by HTTP."""

from __future__ import annotations

from typing import Any

from redkey.bus.envelope import USER, agent_id, display_name
from redkey.bus.http.call import BusReply, BusRequest
from redkey.bus.http.shapes import BusAgentChange, BusAgentOrder, NewBusAgent, NewBusSession, SessionsQuery
from redkey.bus.model import AgentState, Decided, SessionState
from redkey.errors import BusRefused

_PAGE = 1000


async def bus_sessions(call: BusRequest) -> BusReply:
    """List the workspace's sessions by id: the open ones, those of a `status`, or all; `after` gives the next page."""
    query: SessionsQuery = call.query
    status = None if query.status == "all" else query.status
    sessions = call.bus.sessions(call.caller.workspace, query.after, min(query.limit, _PAGE), status)
    return BusReply(200, [session.as_json() for session in sessions])


async def bus_create_session(call: BusRequest, body: NewBusSession) -> BusReply:
    """Create a session, or return the one with this id."""
    if body.id is not None:
        if not body.id.strip():
            raise BusRefused("id must be non-empty", code="session_id_invalid", pointer="/id")
        known = call.bus.session_of_id(body.id, call.caller.workspace)
        if known is not None:
            await call.durable(call.bus.settled)
            return BusReply(200, known.as_json())
    name = display_name(body.name, "/name")
    named = call.bus.open_session_named(name, call.caller.workspace) if body.reuse and body.id is None else None
    if named is not None:
        await call.durable(call.bus.settled)
        return BusReply(200, named.as_json())

    def show(decided: Decided) -> BusReply:
        return BusReply(201, decided.session.as_json())

    session = await call.durable(
        lambda done: call.bus.create_session(
            USER,
            name,
            done,
            session_id=body.id or call.derived_id("session"),
            workspace=call.caller.workspace,
            policy=body.policy,
            also=call.answered(show),
        )
    )
    return BusReply(201, session.as_json())


async def bus_session(call: BusRequest) -> BusReply:
    """Show one session, open or closed."""
    return BusReply(200, call.session.as_json())


async def bus_close_session(call: BusRequest) -> BusReply:
    """Close a session; closing it again changes nothing."""
    session = call.session
    call.check_manages(leads=True)
    if session.status == "closed":
        return BusReply(200, session.as_json())
    also = call.answered(lambda decided: BusReply(200, decided.session.as_json()))
    closed = await call.durable(lambda done: call.bus.close_session(session.key, USER, done, also=also))
    return BusReply(200, closed.as_json())


async def bus_agents(call: BusRequest) -> BusReply:
    """List the agents of a session in its order."""
    return BusReply(200, shown_agents(call, call.open_session))


async def bus_add_agent(call: BusRequest, body: NewBusAgent) -> BusReply:
    """Add an agent, or return the one with this id."""
    session = call.open_session
    key = body.id if body.id is not None else call.caller.agent_id or call.derived_id("agent") or call.bus.new_id()
    if not key.strip():
        raise BusRefused("id must be non-empty", code="agent_id_invalid", pointer="/id")
    agent_id(key, "/id")
    call.check_speaks_for(key)
    known = session.agents.get(key)
    if known is not None:
        return BusReply(200, shown_agent(call, session, known))
    name = display_name(body.name, "/name")
    if body.lead:
        # Leads may read and close the whole session, so an agent cannot make itself one.
        call.check_manages()

    def show(decided: Decided) -> BusReply:
        return BusReply(201, shown_agent(call, session, session.agents[key]))

    agent = await call.durable(
        lambda done: call.bus.add_agent(
            session.key, key, name, done, lead=body.lead, status=body.status, also=call.answered(show)
        )
    )
    return BusReply(201, shown_agent(call, session, agent))


async def bus_change_agent(call: BusRequest, body: BusAgentChange) -> BusReply:
    """Change an agent; all other connections and followers get `agent.updated`."""
    session = call.open_session
    agent = call.agent(session)
    if body.lead:
        call.check_manages(leads=True)
    name = display_name(body.name, "/name")
    if body.name is not None and name is None:
        raise BusRefused("name must not be blank", code="name_blank", pointer="/name")
    await call.durable(
        lambda done: call.bus.update_agent(
            session.key, agent.id, done, src=_actor(call, session, agent), name=name, lead=body.lead, status=body.status
        )
    )
    return BusReply(200, shown_agent(call, session, agent))


async def bus_remove_agent(call: BusRequest) -> BusReply:
    """Remove an agent and the messages that wait for it."""
    session = call.open_session
    agent = call.agent(session)
    await call.durable(
        lambda done: call.bus.remove_agent(session.key, agent.id, done, src=_actor(call, session, agent))
    )
    return BusReply(204)


async def bus_order_agents(call: BusRequest, body: BusAgentOrder) -> BusReply:
    """Put the agents of a session in the given order."""
    session = call.open_session
    call.check_manages()
    also = call.answered(lambda decided: BusReply(200, shown_agents(call, decided.session)))
    await call.durable(lambda done: call.bus.order_agents(session.key, USER, body.agent_ids, done, also=also))
    return BusReply(200, shown_agents(call, session))


def _actor(call: BusRequest, session: SessionState, agent: AgentState) -> str | None:
    """Who makes the change: the agent itself, or `user` if the agent is connected by a socket."""
    own = bool(call.caller.agent_id) or call.bus.speaker(session, agent.id) is None
    return None if own else USER


def shown_agent(call: BusRequest, session: SessionState, agent: AgentState) -> dict[str, Any]:
    """Show an agent as JSON."""
    return call.bus.show_agent(session, agent)


def shown_agents(call: BusRequest, session: SessionState) -> list[dict[str, Any]]:
    """Show the agents of a session as JSON."""
    return [shown_agent(call, session, agent) for agent in session.agents.values()]
