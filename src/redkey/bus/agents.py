"""Agents of a session: add, change, order and remove them, and follow their connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redkey.bus.commits import Done
from redkey.bus.core import AgentConnection, Also, BusCore
from redkey.bus.envelope import USER
from redkey.bus.model import AgentState, SessionState
from redkey.bus.presence import Key, Presence
from redkey.errors import BusRefused


class AgentOperations(BusCore):
    """The operations on agents; both faces call these."""

    _presence: Presence

    def agent(self, session: SessionState, agent_id: str) -> AgentState:
        """Find an agent of a session, or the mailbox of `user`."""
        agent = session.agents.get(agent_id) if agent_id != USER else self._user(session)
        if agent is None:
            raise BusRefused("agent not found", code="agent_not_found", pointer="/agent_id")
        return agent

    def _user(self, session: SessionState) -> AgentState:
        """Find the mailbox of the person at the machine; create it on first use."""
        if session.user is not None:
            return session.user
        agent, row = self._state.open_user(session, self.now())
        self.commits.add([row], lambda _: None)
        self._deliveries.open(session, agent, self._feeds[session.key])
        return agent

    def speaker(self, session: SessionState, agent_id: str) -> AgentConnection | None:
        """The connection of an agent; None while it is away."""
        return self._members.get((session.key, agent_id))

    def is_online(self, session: SessionState, agent_id: str) -> bool:
        """Whether an agent is connected, or recently asked something by HTTP."""
        key = session.key, agent_id
        return key in self._members or self._presence.is_asking(key)

    def show_agent(self, session: SessionState, agent: AgentState) -> dict[str, Any]:
        """Show an agent as JSON, the same on both faces."""
        return {**agent.as_json(), "online": self.is_online(session, agent.id)}

    def add_agent(
        self,
        session_id: str,
        agent_id: str,
        name: str | None,
        done: Done,
        *,
        member: AgentConnection | None = None,
        lead: bool = False,
        status: str | None = None,
        also: Also = None,
    ) -> AgentState:
        """Add an agent, or take it back. With a connection, the agent is bound to it until it ends."""
        session = self._state.open(session_id)
        holder = self._members.get((session_id, agent_id))
        if holder is not None and holder is not member:
            message = "an agent with this id is connected already; use another id"
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
        actor: AgentConnection | None = None,
        src: str | None = None,
        name: str | None = None,
        lead: bool | None = None,
        status: str | None = None,
    ) -> AgentState:
        """Change the fields that are not None. `src` is who makes the change, if not the agent itself."""
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
        actor: AgentConnection | None = None,
        src: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Remove an agent and the messages that wait for it."""
        session = self._state.open(session_id)
        agent = self.agent(session, agent_id)
        decided = self._state.remove(session, self.now(), agent, src, reason)
        self._presence.forget((session_id, agent_id))
        member = self._members.pop((session_id, agent_id), None)
        self._deliveries.close(agent)

        def durable(refused: BusRefused | None) -> None:
            done(refused)
            if refused is None and member is not None and member is not actor:
                # Another caller removed the agent: this is the last event that it gets.
                member.tell(decided.posted[0].record, agent_id)

        self._commit(decided, durable, actor=actor)

    def order_agents(
        self, session_id: str, src: str, agent_ids: Sequence[str], done: Done, *, also: Also = None
    ) -> SessionState:
        """Put the agents of a session in the given order."""
        session = self._state.open(session_id)
        self._commit(self._state.order(session, self.now(), src, agent_ids), done, also=also)
        return session

    def leave(self, member: AgentConnection, session_id: str, agent_id: str) -> None:
        """Unbind an agent from a closed connection: the agent stays, and its messages wait."""
        if self._members.get((session_id, agent_id)) is member:
            del self._members[session_id, agent_id]
            session = self._state.sessions.get(session_id)
            agent = session.agents.get(agent_id) if session is not None else None
            if agent is not None:
                self._deliveries.detach(agent, member)
                self._presence.went((session_id, agent_id))

    def resume(self, session_id: str, agent_id: str) -> None:
        """Continue deliveries to a connection that has room again."""
        session = self._state.sessions.get(session_id)
        agent = session.agents.get(agent_id) if session is not None else None
        if agent is not None:
            self._deliveries.pump(agent)

    def watch_presence(self) -> None:
        """Give agents that were online when the bus stopped a moment to reconnect."""
        for session in self._state.sessions.values():
            for agent in session.agents.values():
                if agent.online and (session.key, agent.id) not in self._members:
                    self._presence.went((session.key, agent.id))

    def seen(self, session: SessionState, agent: AgentState) -> None:
        """Mark an agent without a connection as online, because it just asked something by HTTP.

        The person at the machine (`user`) is no agent of the session and has no presence.
        """
        if agent is not session.user and (session.key, agent.id) not in self._members:
            self._presence.asked_by_http((session.key, agent.id))
            self._commit_presence(session, agent, online=True)

    def _went_away(self, key: Key) -> None:
        session = self._state.sessions.get(key[0])
        agent = session.agents.get(key[1]) if session is not None else None
        if session is not None and agent is not None and session.status == "open" and key not in self._members:
            self._commit_presence(session, agent, online=False)

    def _commit_presence(self, session: SessionState, agent: AgentState, *, online: bool) -> None:
        if agent.online != online and not self.commits.stopped:
            decided = self._state.present(session, self.now(), agent, online=online)
            self._commit(decided, lambda _: None)
