"""Sessions and their agents by HTTP."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from redkey.bus.envelope import USER, agent_id, display_name
from redkey.bus.http.call import Answer, Call
from redkey.bus.state import Agent, Decided, Session, SessionPolicy
from redkey.errors import BusRefused

_PAGE = 1000
Status = Annotated[str, msgspec.Meta(max_length=100)]


class NewSession(msgspec.Struct, frozen=True):
    """What a session may be given."""

    id: str | None = None
    name: str | None = None
    policy: SessionPolicy = "open"
    # Give the open session of this name, if there is one.
    reuse: bool = False


class NewAgent(msgspec.Struct, frozen=True):
    """What an agent may be given."""

    id: str | None = None
    name: str | None = None
    lead: bool = False
    status: Status | None = None


class AgentChange(msgspec.Struct, frozen=True):
    """What may be changed of an agent; what is absent stays."""

    name: str | None = None
    lead: bool | None = None
    status: Status | None = None


class Order(msgspec.Struct, frozen=True):
    """All agents of a session, each once."""

    agent_ids: list[str]


async def list_sessions(call: Call) -> Answer:
    """Every session of the workspace by id, open and closed; `status` and `after` narrow it."""
    wanted, after = call.query.get("status"), call.query.get("after", "")
    if wanted not in (None, "open", "closed"):
        raise BusRefused("status is open or closed", code="query_invalid", pointer="/status")
    found = call.bus.log.sessions(call.caller.workspace, after, call.number("limit", _PAGE, _PAGE))
    return Answer(200, [one.as_json() for one in found if wanted in (None, one.status)])


async def create_session(call: Call, body: NewSession) -> Answer:
    """A new session, or the one that has this id already."""
    if body.id is not None:
        if not body.id.strip():
            raise BusRefused("id must be non-empty", code="session_id_invalid", pointer="/id")
        known = call.bus.log.session(body.id)
        if known is not None:
            if known.workspace != call.caller.workspace:
                raise BusRefused("this id cannot be used", code="session_id_invalid", pointer="/id")
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


async def read_session(call: Call) -> Answer:
    return Answer(200, call.session.as_json())


async def close_session(call: Call) -> Answer:
    """Close a session; one that is closed already stays so."""
    session = call.session
    if session.status == "closed":
        return Answer(200, session.as_json())
    also = call.answered(lambda decided: Answer(200, decided.session.as_json()))
    closed = await call.durable(lambda done: call.bus.close_session(session.id, USER, done, also=also))
    return Answer(200, closed.as_json())


async def list_agents(call: Call) -> Answer:
    return Answer(200, shown_agents(call, call.open_session))


async def create_agent(call: Call, body: NewAgent) -> Answer:
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

    def show(decided: Decided) -> Answer:
        return Answer(201, shown_agent(call, session, session.agents[key]))

    agent = await call.durable(
        lambda done: call.bus.add_agent(
            session.id, key, name, done, lead=body.lead, status=body.status, also=call.answered(show)
        )
    )
    return Answer(201, shown_agent(call, session, agent))


async def change_agent(call: Call, body: AgentChange) -> Answer:
    """Change an agent; a rename is an `agent.update` and reaches everybody as `agent.updated`."""
    session = call.open_session
    agent = call.agent(session)
    name = display_name(body.name, "/name")
    if body.name is not None and name is None:
        raise BusRefused("a name must not be blank", code="name_blank", pointer="/name")
    await call.durable(
        lambda done: call.bus.update_agent(
            session.id, agent.id, done, src=_actor(call, session, agent), name=name, lead=body.lead, status=body.status
        )
    )
    return Answer(200, shown_agent(call, session, agent))


async def delete_agent(call: Call) -> Answer:
    session = call.open_session
    agent = call.agent(session)
    await call.durable(lambda done: call.bus.remove_agent(session.id, agent.id, done, src=_actor(call, session, agent)))
    return Answer(204)


async def order_agents(call: Call, body: Order) -> Answer:
    session = call.open_session
    also = call.answered(lambda decided: Answer(200, shown_agents(call, decided.session)))
    await call.durable(lambda done: call.bus.order_agents(session.id, USER, body.agent_ids, done, also=also))
    return Answer(200, shown_agents(call, session))


def _actor(call: Call, session: Session, agent: Agent) -> str | None:
    """Who changes an agent: the agent itself, or `user` when it speaks through a connection of its own."""
    own = bool(call.caller.agent_id) or call.bus.speaker(session, agent.id) is None
    return None if own else USER


def shown_agent(call: Call, session: Session, agent: Agent) -> dict[str, Any]:
    return call.bus.show_agent(session, agent)


def shown_agents(call: Call, session: Session) -> list[dict[str, Any]]:
    return [shown_agent(call, session, agent) for agent in session.agents.values()]
