"""Sessions and their agents by HTTP."""

from __future__ import annotations

from typing import Any

from redkey.bus.envelope import USER, agent_id, display_name
from redkey.bus.http.call import Answer, Call
from redkey.bus.http.shapes import BusAgentChange, BusAgentOrder, NewBusAgent, NewBusSession, SessionsQuery
from redkey.bus.state import Agent, Decided, Session
from redkey.errors import BusRefused

_PAGE = 1000


async def bus_sessions(call: Call) -> Answer:
    """The sessions of the workspace by id: the open ones, those of a `status`, or all; `after` gives the next page."""
    query: SessionsQuery = call.query
    status = None if query.status == "all" else query.status
    found = call.bus.sessions(call.caller.workspace, query.after, min(query.limit, _PAGE), status)
    return Answer(200, [one.as_json() for one in found])


async def bus_create_session(call: Call, body: NewBusSession) -> Answer:
    """A new session, or the one that has this id already."""
    if body.id is not None:
        if not body.id.strip():
            raise BusRefused("id must be non-empty", code="session_id_invalid", pointer="/id")
        known = call.bus.session_of_id(body.id, call.caller.workspace)
        if known is not None:
            await call.durable(call.bus.settled)
            return Answer(200, known.as_json())
    name = display_name(body.name, "/name")
    found = call.bus.open_session_named(name, call.caller.workspace) if body.reuse and body.id is None else None
    if found is not None:
        await call.durable(call.bus.settled)
        return Answer(200, found.as_json())

    def show(decided: Decided) -> Answer:
        return Answer(201, decided.session.as_json())

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
    return Answer(201, session.as_json())


async def bus_session(call: Call) -> Answer:
    """One session, open or closed."""
    return Answer(200, call.session.as_json())


async def bus_close_session(call: Call) -> Answer:
    """Close a session; one that is closed already stays so."""
    session = call.session
    call.check_manages(leads=True)
    if session.status == "closed":
        return Answer(200, session.as_json())
    also = call.answered(lambda decided: Answer(200, decided.session.as_json()))
    closed = await call.durable(lambda done: call.bus.close_session(session.key, USER, done, also=also))
    return Answer(200, closed.as_json())


async def bus_agents(call: Call) -> Answer:
    """The agents of a session, in its order."""
    return Answer(200, shown_agents(call, call.open_session))


async def bus_add_agent(call: Call, body: NewBusAgent) -> Answer:
    """A new agent, or the one that has this id already."""
    session = call.open_session
    key = body.id if body.id is not None else call.caller.agent_id or call.derived_id("agent") or call.bus.new_id()
    if not key.strip():
        raise BusRefused("id must be non-empty", code="agent_id_invalid", pointer="/id")
    agent_id(key, "/id")
    call.check_speaks_for(key)
    known = session.agents.get(key)
    if known is not None:
        return Answer(200, shown_agent(call, session, known))
    name = display_name(body.name, "/name")
    if body.lead:
        # Leads read and close the whole session; nobody makes itself one.
        call.check_manages()

    def show(decided: Decided) -> Answer:
        return Answer(201, shown_agent(call, session, session.agents[key]))

    agent = await call.durable(
        lambda done: call.bus.add_agent(
            session.key, key, name, done, lead=body.lead, status=body.status, also=call.answered(show)
        )
    )
    return Answer(201, shown_agent(call, session, agent))


async def bus_change_agent(call: Call, body: BusAgentChange) -> Answer:
    """Change an agent; a rename is an `agent.update` and reaches everybody as `agent.updated`."""
    session = call.open_session
    agent = call.agent(session)
    if body.lead:
        call.check_manages(leads=True)
    name = display_name(body.name, "/name")
    if body.name is not None and name is None:
        raise BusRefused("a name must not be blank", code="name_blank", pointer="/name")
    await call.durable(
        lambda done: call.bus.update_agent(
            session.key, agent.id, done, src=_actor(call, session, agent), name=name, lead=body.lead, status=body.status
        )
    )
    return Answer(200, shown_agent(call, session, agent))


async def bus_remove_agent(call: Call) -> Answer:
    """Remove an agent, and what waits for it."""
    session = call.open_session
    agent = call.agent(session)
    await call.durable(
        lambda done: call.bus.remove_agent(session.key, agent.id, done, src=_actor(call, session, agent))
    )
    return Answer(204)


async def bus_order_agents(call: Call, body: BusAgentOrder) -> Answer:
    """Put the agents of a session in another order."""
    session = call.open_session
    call.check_manages()
    also = call.answered(lambda decided: Answer(200, shown_agents(call, decided.session)))
    await call.durable(lambda done: call.bus.order_agents(session.key, USER, body.agent_ids, done, also=also))
    return Answer(200, shown_agents(call, session))


def _actor(call: Call, session: Session, agent: Agent) -> str | None:
    """Who changes an agent: the agent itself, or `user` when it speaks through a connection of its own."""
    own = bool(call.caller.agent_id) or call.bus.speaker(session, agent.id) is None
    return None if own else USER


def shown_agent(call: Call, session: Session, agent: Agent) -> dict[str, Any]:
    return call.bus.show_agent(session, agent)


def shown_agents(call: Call, session: Session) -> list[dict[str, Any]]:
    return [shown_agent(call, session, agent) for agent in session.agents.values()]
