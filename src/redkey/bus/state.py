"""What the bus knows, as a state machine: commands in, records and rows out. No I/O, no clock, no randomness.

A decision changes the state at once and lists what must become durable; nothing is published before that. Connections
and deliveries are not part of the state: they end with the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from redkey.bus.addressing import message_envelope, same_content
from redkey.bus.envelope import ALL_AGENTS, USER, VERSION, Envelope, agent_id
from redkey.bus.limits import BusLimits
from redkey.bus.model import (
    MANY,
    AgentState,
    Decided,
    Find,
    Guard,
    Posted,
    Route,
    SessionPolicy,
    SessionRecord,
    SessionState,
    Write,
)
from redkey.errors import BusRefused

Fields = dict[str, Any]
_SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


class State:
    """All open sessions."""

    def __init__(self, limits: BusLimits, ids: Callable[[], str]) -> None:
        self._limits, self._ids = limits, ids
        self.sessions: dict[str, SessionState] = {}
        self.pending = self._session_numbers = self._agent_numbers = 0

    def restore(self, sessions: Sequence[SessionState], session_numbers: int, agent_numbers: int) -> None:
        """Take over the content of the log."""
        self.sessions = {session.key: session for session in sessions}
        self.pending = sum(agent.waiting for session in sessions for agent in session.agents.values())
        self._session_numbers, self._agent_numbers = session_numbers, agent_numbers

    def open(self, session_id: str) -> SessionState:
        """Find an open session; refuse a closed or unknown one."""
        session = self.sessions.get(session_id)
        if session is None:
            raise BusRefused("session not found", code="session_not_found", pointer="/session")
        if session.status == "closed":
            raise BusRefused("the session is closed", code="session_closed", pointer="/session")
        return session

    # Sessions.

    def create(
        self,
        now: str,
        src: str,
        session_id: str | None,
        name: str | None,
        workspace: str,
        policy: SessionPolicy,
        key_of: Callable[[str, str], str],
    ) -> Decided:
        if len(self.sessions) >= self._limits.sessions:
            raise BusRefused("the bus has reached its limit of open sessions; close some", code="too_many_sessions")
        if session_id is None:
            session_id = self._ids()
        elif not _SESSION_ID.fullmatch(session_id):
            message = "a session id has 1 to 64 letters, digits, dots, dashes or underscores, and begins with no dot"
            raise BusRefused(message, code="session_id_invalid", pointer="/id")
        self._session_numbers += 1
        key = key_of(session_id, workspace)
        session = SessionState(self._session_numbers, key, name, now, now, workspace, policy)
        self.sessions[key] = session
        decided = Decided(session)
        decided.writes.append(("insert_session", (session.number, key, name, now, now, workspace, policy)))
        self._event(decided, now, "session.created", src, {"id": session_id, "name": name, "policy": policy})
        return decided

    def close(self, session: SessionState, now: str, src: str) -> Decided:
        session.status, session.updated_at = "closed", now
        decided = Decided(session)
        for agent in (*session.agents.values(), *([session.user] if session.user else [])):
            self._forget_waiting(agent, decided)
        decided.writes.append(("close_session", (now, session.number)))
        self._event(decided, now, "session.closed", src, {"status": "closed"})
        return decided

    def forget(self, session: SessionState) -> None:
        """Drop a session once its closing is durable; the log keeps it."""
        self.sessions.pop(session.key, None)

    # Agents.

    def add(
        self, session: SessionState, now: str, key: str, name: str | None, lead: bool, status: str | None, online: bool
    ) -> Decided:
        """Add an agent; a known one keeps its fields, except for a new name or status."""
        known = session.agents.get(key)
        if known is not None:
            decided = self.update(session, now, known, name or known.name, known.lead, status or known.status)
            if online and not known.online:
                self._set_presence(decided, now, known, online=True)
            return decided
        if len(session.agents) >= self._limits.agents:
            raise BusRefused("the session has reached its limit of agents; remove some", code="too_many_agents")
        self._agent_numbers += 1
        place = max((agent.place for agent in session.agents.values()), default=0) + 1
        agent = AgentState(
            self._agent_numbers, agent_id(key), name, lead, status, place, online, None if online else now
        )
        session.agents[key] = agent
        decided = Decided(session)
        self._put_agent(decided, agent)
        self._event(decided, now, "agent.created", key, agent.as_json())
        return decided

    def update(
        self,
        session: SessionState,
        now: str,
        agent: AgentState,
        name: str | None,
        lead: bool,
        status: str | None,
        src: str | None = None,
    ) -> Decided:
        """Change an agent; `src` is who makes the change, if not the agent itself."""
        decided = Decided(session)
        if (agent.name, agent.lead, agent.status) == (name, lead, status):
            return decided
        agent.name, agent.lead, agent.status = name, lead, status
        self._put_agent(decided, agent)
        self._event(decided, now, "agent.updated", src or agent.id, agent.as_json())
        return decided

    def present(self, session: SessionState, now: str, agent: AgentState, *, online: bool) -> Decided:
        """Mark an agent as online or away."""
        decided = Decided(session)
        if agent.online != online:
            self._set_presence(decided, now, agent, online=online)
        return decided

    def _set_presence(self, decided: Decided, now: str, agent: AgentState, *, online: bool) -> None:
        agent.online, agent.seen_at = online, None if online else now
        self._put_agent(decided, agent)
        self._event(decided, now, "agent.online" if online else "agent.away", agent.id, agent.as_json())

    def remove(
        self, session: SessionState, now: str, agent: AgentState, src: str | None = None, reason: str | None = None
    ) -> Decided:
        """Remove an agent and the messages that wait for it."""
        del session.agents[agent.id]
        decided = Decided(session)
        self._forget_waiting(agent, decided)
        decided.writes.append(("delete_agent", (agent.number,)))
        payload = {"id": agent.id, "ok": True, **({"reason": reason} if reason else {})}
        self._event(decided, now, "agent.deleted", src or agent.id, payload)
        return decided

    def order(self, session: SessionState, now: str, src: str, keys: Sequence[str]) -> Decided:
        if sorted(keys) != sorted(session.agents):
            message = "agent_ids must include each existing agent once"
            raise BusRefused(message, code="agent_order_invalid", pointer="/agent_ids")
        decided = Decided(session)
        session.agents = {key: session.agents[key] for key in keys}
        for place, agent in enumerate(session.agents.values(), start=1):
            if agent.place != place:
                agent.place = place
                self._put_agent(decided, agent)
        self._event(decided, now, "agent.reordered", src, {"agent_ids": list(keys)})
        return decided

    # Messages.

    def send(
        self, session: SessionState, now: str, request: Envelope, since: str, find: Find, route: Route, guard: Guard
    ) -> Decided:
        """Record a message for its receivers; the same message again changes nothing.

        A message to all agents goes to those that were online since the time `since`, so that dead agents collect none.
        """
        envelope = message_envelope(session, request)
        before = find(session, envelope.id)
        if before is not None:
            if not same_content(before, envelope):
                raise BusRefused(
                    "another message of this session has this id; use a new id", code="id_reused", pointer="/id"
                )
            return Decided(session, repeated=True)
        receivers = self._receivers(session, envelope, since)
        relayed = () if receivers or envelope.dst or envelope.topic else route(session, envelope)
        if not receivers and not relayed:
            raise BusRefused(
                "no agent can receive this message; add an agent, or a lead for messages without dst",
                code="no_destination",
                pointer="/dst",
            )
        posts, everybody = [(envelope, receivers)], receivers
        if relayed:
            posts += [(copy, self._receivers(session, copy, since)) for copy in relayed]
            everybody = tuple(agent for _, some in posts for agent in some)
        self._check_room(everybody)
        decided = Decided(session, writes=list(guard(session, envelope)))
        self._take_room(everybody)
        for posted, some in posts:
            self._post(decided, now, posted, some)
        return decided

    def open_user(self, session: SessionState, now: str) -> tuple[AgentState, Write]:
        """Open the mailbox of the person at the machine, and give its row."""
        self._agent_numbers += 1
        agent = session.user = AgentState(self._agent_numbers, USER, seen_at=now)
        decided = Decided(session)
        self._put_agent(decided, agent)
        return agent, decided.writes[0]

    def taken(self, agent: AgentState) -> None:
        """Count a confirmed message of an agent."""
        if agent.waiting:
            agent.waiting -= 1
            self.pending -= 1

    def own(self, session: SessionState, conversation_id: str, owner: str, now: str) -> Write:
        """The row of a conversation's owner."""
        return "put_conversation", (session.number, conversation_id, owner, now)

    def note(self, session: SessionState, now: str, event: str, src: str, payload: Fields, meta: Any = None) -> Decided:
        """Record an event of the bus or of an agent."""
        decided = Decided(session)
        self._event(decided, now, event, src, payload, meta)
        return decided

    def _receivers(self, session: SessionState, envelope: Envelope, since: str) -> tuple[AgentState, ...]:
        if envelope.topic == ALL_AGENTS:
            src, agents = envelope.src, session.agents.values()
            recent = (agent for agent in agents if agent.online or (agent.seen_at or since) >= since)
            return tuple(agent for agent in recent if agent.id != src)
        if envelope.dst is None:
            return ()
        receiver = session.agents.get(envelope.dst) if envelope.dst != USER else session.user
        if receiver is None:
            raise BusRefused("agent not found", code="agent_not_found", pointer="/dst")
        return (receiver,)

    def _check_room(self, receivers: Sequence[AgentState]) -> None:
        room = self._limits.mailbox
        for agent in receivers:
            if agent.waiting >= room and agent.id != USER:
                message = f"{agent.waiting:,} messages wait for {agent.id}; retry when it has confirmed some"
                raise BusRefused(message, code="mailbox_full", pointer="/dst")
        if self.pending + len(receivers) > self._limits.pending:
            raise BusRefused(
                "the bus has reached its limit of waiting messages; retry when agents have confirmed some",
                code="bus_full",
            )

    def _take_room(self, receivers: Sequence[AgentState]) -> None:
        for agent in receivers:
            agent.waiting += 1
        self.pending += len(receivers)

    def _forget_waiting(self, agent: AgentState, decided: Decided) -> None:
        self.pending -= agent.waiting
        agent.waiting = 0
        decided.writes.append(("delete_mailbox", (agent.number,)))

    @staticmethod
    def _put_agent(decided: Decided, agent: AgentState) -> None:
        row = (agent.number, decided.session.number, agent.id, agent.name, agent.lead, agent.status, agent.place)
        decided.writes.append(("put_agent", (*row, agent.online, agent.seen_at)))

    def _event(self, decided: Decided, now: str, event: str, src: str, payload: Fields, meta: Any = None) -> None:
        about = {"session": decided.session.id, "payload": payload, "meta": meta}
        envelope = Envelope(v=VERSION, type=event, id=self._ids(), ts=now, src=src, **about)
        self._post(decided, now, envelope, ())

    def _post(self, decided: Decided, now: str, envelope: Envelope, receivers: tuple[AgentState, ...]) -> None:
        session = decided.session
        session.seq += 1
        record = SessionRecord(session.seq, now, envelope.id, envelope.type, envelope.encode())
        decided.posted.append(Posted(record, envelope, receivers))
        row = (session.number << 40 | record.seq, session.number, now, record.id, record.type, record.envelope)
        decided.writes.append(("insert_record", row))
        if record.type.startswith("session."):
            decided.writes.append(("insert_session_record", (session.number << 40 | record.seq,)))
        if len(receivers) >= MANY:
            numbers = orjson.dumps([agent.number for agent in receivers]).decode()
            decided.writes.append(("insert_pending_of_message", (record.seq, numbers)))
        else:
            decided.writes.extend(("insert_pending", (agent.number, record.seq)) for agent in receivers)
