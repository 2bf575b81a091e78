"""Agents of the bus: they come, change, go and come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redkey.bus.commits import Done
from redkey.bus.core import Also, Core, Member
from redkey.bus.envelope import USER
from redkey.bus.presence import Key, Presence
from redkey.bus.state import Agent, Session
from redkey.errors import BusRefused


class Agents(Core):
    """What both faces do with the agents of a session."""

    _presence: Presence

    def agent(self, session: Session, agent_id: str) -> Agent:
        found = session.agents.get(agent_id) if agent_id != USER else self._user(session)
        if found is None:
            raise BusRefused("agent not found", code="agent_not_found", pointer="/agent_id")
        return found

    def _user(self, session: Session) -> Agent:
        """The mailbox of the person at the machine; it begins when it is first needed."""
        if session.user is not None:
            return session.user
        agent, row = self._state.open_user(session, self.now())
        self.commits.add([row], lambda _: None)
        self._deliveries.open(session, agent, self._feeds[session.key])
        return agent

    def speaker(self, session: Session, agent_id: str) -> Member | None:
        """The connection that an agent speaks through; None while it is away."""
        return self._members.get((session.key, agent_id))

    def is_online(self, session: Session, agent_id: str) -> bool:
        key = session.key, agent_id
        return key in self._members or self._presence.is_asking(key)

    def show_agent(self, session: Session, agent: Agent) -> dict[str, Any]:
        """An agent as both faces show it."""
        return {**agent.as_json(), "online": self.is_online(session, agent.id)}

    def add_agent(
        self,
        session_id: str,
        agent_id: str,
        name: str | None,
        done: Done,
        *,
        member: Member | None = None,
        lead: bool = False,
        status: str | None = None,
        also: Also = None,
    ) -> Agent:
        """An agent comes, or comes back. With a connection it is bound to it until that ends."""
        session = self._state.open(session_id)
        holder = self._members.get((session_id, agent_id))
        if holder is not None and holder is not member:
            message = "an agent of this id speaks through another connection"
            raise BusRefused(message, code="agent_taken", pointer="/payload/id")
        known = agent_id in session.agents
        decided = self._state.add(session, self.now(), agent_id, name, lead, status, member is not None)
        agent = session.agents[agent_id]
        if not known:
            self._deliveries.open(session, agent, self._feeds[session_id])
        if member is not None:
            self._members[session_id, agent_id] = member
            self._presence.came((session_id, agent_id))

        def durable(refused: BusRefused | None) -> None:
            done(refused)
            if refused is None and member is not None and self._members.get((session_id, agent_id)) is member:
                self._deliveries.attach(agent, member)

        self._commit(decided, durable, actor=member, also=also)
        return agent

    def update_agent(
        self,
        session_id: str,
        agent_id: str,
        done: Done,
        *,
        actor: Member | None = None,
        src: str | None = None,
        name: str | None = None,
        lead: bool | None = None,
        status: str | None = None,
    ) -> Agent:
        """Change what is given of an agent. `src` is who does it, if not the agent itself."""
        session = self._state.open(session_id)
        agent = self.agent(session, agent_id)
        decided = self._state.update(
            session,
            self.now(),
            agent,
            agent.name if name is None else name,
            agent.lead if lead is None else lead,
            agent.status if status is None else status,
            src,
        )
        self._commit(decided, done, actor=actor)
        return agent

    def remove_agent(
        self,
        session_id: str,
        agent_id: str,
        done: Done,
        *,
        actor: Member | None = None,
        src: str | None = None,
        reason: str | None = None,
    ) -> None:
        session = self._state.open(session_id)
        agent = self.agent(session, agent_id)
        decided = self._state.remove(session, self.now(), agent, src, reason)
        self._presence.forget((session_id, agent_id))
        member = self._members.pop((session_id, agent_id), None)
        self._deliveries.close(agent)

        def durable(refused: BusRefused | None) -> None:
            done(refused)
            if refused is None and member is not None and member is not actor:
                # Another caller removed the agent: it gets no more events.
                member.tell(decided.posted[0].record.envelope + b"\n")

        self._commit(decided, durable, actor=actor)

    def order_agents(
        self, session_id: str, src: str, agent_ids: Sequence[str], done: Done, *, also: Also = None
    ) -> Session:
        session = self._state.open(session_id)
        self._commit(self._state.order(session, self.now(), src, agent_ids), done, also=also)
        return session

    def leave(self, member: Member, session_id: str, agent_id: str) -> None:
        """A connection is gone: its agent stays, and what comes for it waits."""
        if self._members.get((session_id, agent_id)) is member:
            del self._members[session_id, agent_id]
            session = self._state.sessions.get(session_id)
            agent = session.agents.get(agent_id) if session is not None else None
            if agent is not None:
                self._deliveries.detach(agent, member)
                self._presence.went((session_id, agent_id))

    def resume(self, session_id: str, agent_id: str) -> None:
        """A connection has room again."""
        session = self._state.sessions.get(session_id)
        agent = session.agents.get(agent_id) if session is not None else None
        if agent is not None:
            self._deliveries.pump(agent)

    def watch_presence(self) -> None:
        """Agents that were here when the bus last stopped have a moment to come back."""
        for session in self._state.sessions.values():
            for agent in session.agents.values():
                if agent.online and (session.key, agent.id) not in self._members:
                    self._presence.went((session.key, agent.id))

    def seen(self, session: Session, agent: Agent) -> None:
        """An agent without a connection has asked something by HTTP."""
        if (session.key, agent.id) not in self._members:
            self._presence.asked((session.key, agent.id))
            self._commit_presence(session, agent, online=True)

    def _went_away(self, key: Key) -> None:
        session = self._state.sessions.get(key[0])
        agent = session.agents.get(key[1]) if session is not None else None
        if session is not None and agent is not None and session.status == "open" and key not in self._members:
            self._commit_presence(session, agent, online=False)

    def _commit_presence(self, session: Session, agent: Agent, *, online: bool) -> None:
        if agent.online != online and not self.commits.stopped:
            decided = self._state.present(session, self.now(), agent, online=online)
            self._commit(decided, lambda _: None)
