"""What the bus knows, as a state machine: commands in, records and rows out. No I/O, no clock, no randomness.

A decision changes the state at once and says what has to become durable; nobody is told of it before it is. Who is
connected and what has been delivered is not state: it ends with the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import orjson

from redkey.bus.envelope import (
    EVERYBODY,
    USER,
    VERSION,
    Envelope,
    agent_id,
    inbox_of,
    settle_ack,
)
from redkey.bus.limits import BusLimits
from redkey.errors import BusRefused

# In a guarded session the bus keeps the rules of conduct; in an open one it carries what it is given.
SessionPolicy = Literal["guarded", "open"]
POLICIES: tuple[SessionPolicy, ...] = ("guarded", "open")
_SESSION_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
# Parts a workspace from the id of its session; no id has it.
KEY_MARK = ":"
MESSAGE = "message.send"
Write = tuple[str, tuple[Any, ...]]
# Rows of a message that goes to so many agents are written by one statement.
MANY = 8


class Agent(msgspec.Struct):
    """Somebody who takes part in a session, connected or not."""

    number: int
    id: str
    name: str | None = None
    lead: bool = False
    status: str | None = None
    place: int = 0
    # Whether others were told that it is here, and when it was last here if not.
    online: bool = False
    seen_at: str | None = None
    # Messages that wait for it, counted from the decision on.
    waiting: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "lead": self.lead, "status": self.status, "online": self.online}


class Session(msgspec.Struct):
    """A conversation's room: who is in it, and how far its records go."""

    number: int
    # What the bus knows it by: its id, after its workspace where that is not the bus's own.
    key: str
    name: str | None
    created_at: str
    updated_at: str
    workspace: str = ""
    policy: SessionPolicy = "open"
    status: Literal["open", "closed"] = "open"
    seq: int = 0
    agents: dict[str, Agent] = {}
    # The mailbox of the person at the machine, once somebody has written to it.
    user: Agent | None = None

    @property
    def id(self) -> str:
        """What its workspace knows it by."""
        return self.key.rpartition(KEY_MARK)[2]

    def as_json(self) -> dict[str, Any]:
        names = ("id", "name", "status", "policy", "created_at", "updated_at")
        return {name: getattr(self, name) for name in names}


class Record(msgspec.Struct, frozen=True, gc=False):
    """One envelope at its place in a session."""

    seq: int
    ts: str
    id: str
    type: str
    envelope: bytes

    @property
    def line(self) -> bytes:
        """The record as JSON."""
        return b'{"seq":%d,"ts":"%s","envelope":%s}' % (self.seq, self.ts.encode(), self.envelope)


class Posted(msgspec.Struct, frozen=True, gc=False):
    """A record and the agents that it goes to."""

    record: Record
    envelope: Envelope
    receivers: tuple[Agent, ...] = ()


class Decided(msgspec.Struct):
    """What a command made of a session: rows to be written together, and what to tell when they are durable."""

    session: Session
    posted: list[Posted] = []
    writes: list[Write] = []
    repeated: bool = False


Find = Callable[[Session, str], Envelope | None]
Route = Callable[[Session, Envelope], Sequence[Envelope]]
# Refuses a message that breaks a rule of its session; gives the rows to be written with one that does not.
Guard = Callable[[Session, Envelope], Sequence[Write]]


class State:
    """Every open session."""

    def __init__(self, limits: BusLimits, ids: Callable[[], str]) -> None:
        self._limits, self._ids = limits, ids
        self.sessions: dict[str, Session] = {}
        self.pending = self._session_numbers = self._agent_numbers = 0

    def restore(self, sessions: Sequence[Session], session_numbers: int, agent_numbers: int) -> None:
        """Take over what the log holds."""
        self.sessions = {session.key: session for session in sessions}
        self.pending = sum(agent.waiting for session in sessions for agent in session.agents.values())
        self._session_numbers, self._agent_numbers = session_numbers, agent_numbers

    def open(self, session_id: str) -> Session:
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
            raise BusRefused("the bus has as many open sessions as it takes", code="too_many_sessions")
        if session_id is None:
            session_id = self._ids()
        elif not _SESSION_ID.fullmatch(session_id):
            message = "a session id has 1 to 64 letters, digits, dots, dashes or underscores, and no dot in front"
            raise BusRefused(message, code="session_id_invalid", pointer="/id")
        self._session_numbers += 1
        key = key_of(session_id, workspace)
        session = Session(self._session_numbers, key, name, now, now, workspace, policy)
        self.sessions[key] = session
        decided = Decided(session)
        decided.writes.append(("insert_session", (session.number, key, name, now, now, workspace, policy)))
        self._event(decided, now, "session.created", src, {"id": session_id, "name": name, "policy": policy})
        return decided

    def close(self, session: Session, now: str, src: str) -> Decided:
        session.status, session.updated_at = "closed", now
        decided = Decided(session)
        for agent in (*session.agents.values(), *([session.user] if session.user else [])):
            self._forget_waiting(agent, decided)
        decided.writes.append(("close_session", (now, session.number)))
        self._event(decided, now, "session.closed", src, {"status": "closed"})
        return decided

    def forget(self, session: Session) -> None:
        """A closed session is durable as such: it is in the log only."""
        self.sessions.pop(session.key, None)

    # Agents.

    def add(
        self, session: Session, now: str, key: str, name: str | None, lead: bool, status: str | None, online: bool
    ) -> Decided:
        """A new agent; one that comes back is as it was, but for the name and status it now gives."""
        known = session.agents.get(key)
        if known is not None:
            decided = self.update(session, now, known, name or known.name, known.lead, status or known.status)
            if online and not known.online:
                self._set_presence(decided, now, known, online=True)
            return decided
        if len(session.agents) >= self._limits.agents:
            raise BusRefused("the session has as many agents as it takes", code="too_many_agents")
        self._agent_numbers += 1
        place = max((agent.place for agent in session.agents.values()), default=0) + 1
        agent = Agent(self._agent_numbers, agent_id(key), name, lead, status, place, online, None if online else now)
        session.agents[key] = agent
        decided = Decided(session)
        self._put_agent(decided, agent)
        self._event(decided, now, "agent.created", key, agent.as_json())
        return decided

    def update(
        self,
        session: Session,
        now: str,
        agent: Agent,
        name: str | None,
        lead: bool,
        status: str | None,
        src: str | None = None,
    ) -> Decided:
        """Change an agent; `src` is who does it, if not the agent itself."""
        decided = Decided(session)
        if (agent.name, agent.lead, agent.status) == (name, lead, status):
            return decided
        agent.name, agent.lead, agent.status = name, lead, status
        self._put_agent(decided, agent)
        self._event(decided, now, "agent.updated", src or agent.id, agent.as_json())
        return decided

    def present(self, session: Session, now: str, agent: Agent, *, online: bool) -> Decided:
        """An agent is here, or away."""
        decided = Decided(session)
        if agent.online != online:
            self._set_presence(decided, now, agent, online=online)
        return decided

    def _set_presence(self, decided: Decided, now: str, agent: Agent, *, online: bool) -> None:
        agent.online, agent.seen_at = online, None if online else now
        self._put_agent(decided, agent)
        self._event(decided, now, "agent.online" if online else "agent.away", agent.id, agent.as_json())

    def remove(
        self, session: Session, now: str, agent: Agent, src: str | None = None, reason: str | None = None
    ) -> Decided:
        """The agent leaves for good, and what waits for it goes with it."""
        del session.agents[agent.id]
        decided = Decided(session)
        self._forget_waiting(agent, decided)
        decided.writes.append(("delete_agent", (agent.number,)))
        payload = {"id": agent.id, "ok": True, **({"reason": reason} if reason else {})}
        self._event(decided, now, "agent.deleted", src or agent.id, payload)
        return decided

    def order(self, session: Session, now: str, src: str, keys: Sequence[str]) -> Decided:
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
        self, session: Session, now: str, asked: Envelope, since: str, find: Find, route: Route, guard: Guard
    ) -> Decided:
        """Record a message for those that it goes to; the same message again changes nothing.

        What is for everybody goes to agents that were here `since` a time: nobody reads it for those that died.
        """
        envelope = message(session, asked)
        before = find(session, envelope.id)
        if before is not None:
            if _said(before) != _said(envelope):
                raise BusRefused("another message of this session has this id", code="id_reused", pointer="/id")
            return Decided(session, repeated=True)
        receivers = self._receivers(session, envelope, since)
        relayed = () if receivers or envelope.dst or envelope.topic else route(session, envelope)
        if not receivers and not relayed:
            raise BusRefused("nobody is there that this message could go to", code="no_destination", pointer="/dst")
        posts, everybody = [(envelope, receivers)], receivers
        if relayed:
            posts += [(one, self._receivers(session, one, since)) for one in relayed]
            everybody = tuple(agent for _, some in posts for agent in some)
        self._check_room(everybody)
        decided = Decided(session, writes=list(guard(session, envelope)))
        self._take_room(everybody)
        for one, some in posts:
            self._post(decided, now, one, some)
        return decided

    def open_user(self, session: Session, now: str) -> tuple[Agent, Write]:
        """Begin the mailbox of the person at the machine, and give its row."""
        self._agent_numbers += 1
        agent = session.user = Agent(self._agent_numbers, USER, seen_at=now)
        decided = Decided(session)
        self._put_agent(decided, agent)
        return agent, decided.writes[0]

    def taken(self, agent: Agent) -> None:
        """A message is off an agent's hands."""
        if agent.waiting:
            agent.waiting -= 1
            self.pending -= 1

    def own(self, session: Session, conversation_id: str, owner: str, now: str) -> Write:
        """The row of a conversation's owner."""
        return "put_conversation", (session.number, conversation_id, owner, now)

    def note(self, session: Session, now: str, event: str, src: str, payload: dict[str, Any]) -> Decided:
        """Record something that the bus itself has to say."""
        decided = Decided(session)
        self._event(decided, now, event, src, payload)
        return decided

    def _receivers(self, session: Session, envelope: Envelope, since: str) -> tuple[Agent, ...]:
        if envelope.topic == EVERYBODY:
            src, agents = envelope.src, session.agents.values()
            here = [one for one in agents if (one.online or (one.seen_at or since) >= since) and one.id != src]
            return tuple(here)
        if envelope.dst is None:
            return ()
        found = session.agents.get(envelope.dst) if envelope.dst != USER else session.user
        if found is None:
            raise BusRefused("agent not found", code="agent_not_found", pointer="/dst")
        return (found,)

    def _check_room(self, receivers: Sequence[Agent]) -> None:
        room = self._limits.mailbox
        for agent in receivers:
            if agent.waiting >= room and agent.id != USER:
                message = f"{agent.waiting:,} messages wait for {agent.id}; it must take some first"
                raise BusRefused(message, code="mailbox_full", pointer="/dst")
        if self.pending + len(receivers) > self._limits.pending:
            raise BusRefused("as many messages wait as the bus takes", code="bus_full")

    def _take_room(self, receivers: Sequence[Agent]) -> None:
        for agent in receivers:
            agent.waiting += 1
        self.pending += len(receivers)

    def _forget_waiting(self, agent: Agent, decided: Decided) -> None:
        self.pending -= agent.waiting
        agent.waiting = 0
        decided.writes.append(("delete_mailbox", (agent.number,)))

    @staticmethod
    def _put_agent(decided: Decided, agent: Agent) -> None:
        row = (agent.number, decided.session.number, agent.id, agent.name, agent.lead, agent.status, agent.place)
        decided.writes.append(("put_agent", (*row, agent.online, agent.seen_at)))

    def _event(self, decided: Decided, now: str, event: str, src: str, payload: dict[str, Any]) -> None:
        session = decided.session
        envelope = Envelope(v=VERSION, type=event, id=self._ids(), ts=now, src=src, session=session.id, payload=payload)
        self._post(decided, now, envelope, ())

    def _post(self, decided: Decided, now: str, envelope: Envelope, receivers: tuple[Agent, ...]) -> None:
        session = decided.session
        session.seq += 1
        record = Record(session.seq, now, envelope.id, envelope.type, envelope.encode())
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


def message(session: Session, asked: Envelope) -> Envelope:
    """A message as it is recorded and delivered: addressed by `dst` where it is for one agent, its ack settled."""
    dst, topic = asked.dst or None, asked.topic or None
    if topic is not None and topic != EVERYBODY:
        dst = dst or inbox_of(topic)
        if dst is None or inbox_of(topic) != dst:
            shape = f"a topic is agent.<id>.inbox of its destination, or {EVERYBODY}"
            raise BusRefused(shape, code="topic_invalid", pointer="/topic")
    elif topic is not None and dst is not None:
        raise BusRefused("give dst or the topic of all agents, and not both", code="topic_invalid", pointer="/topic")
    if dst is not None and dst == asked.src:
        raise BusRefused("an agent does not write to itself", code="self_addressed", pointer="/dst")
    if asked.payload is None:
        raise BusRefused("a message has a payload", code="payload_invalid", pointer="/payload")
    if asked.v:
        return _newer(session, asked, dst, topic)
    return Envelope(
        v=VERSION,
        type=MESSAGE,
        id=asked.id,
        ts=asked.ts,
        src=asked.src,
        dst=dst,
        topic=topic,
        session=session.id,
        corr=asked.corr,
        payload=asked.payload,
        ack=settle_ack(asked.ack),
    )


def _newer(session: Session, asked: Envelope, dst: str | None, topic: str | None) -> Envelope:
    """A message of v1 as it is recorded and delivered; its number is its connection's and goes no further."""
    return msgspec.structs.replace(
        asked, dst=dst, topic=topic, session=session.id, ack=settle_ack(asked.ack), seq=None, status=None, error=None
    )


def _said(envelope: Envelope) -> tuple[Any, ...]:
    return envelope.src, envelope.dst, envelope.topic, envelope.payload
