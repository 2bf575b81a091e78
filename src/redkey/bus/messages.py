"""Messages: send them, confirm them, list those that wait and show their deliveries."""

from __future__ import annotations

from redkey.bus.agents import AgentOperations
from redkey.bus.commits import Done
from redkey.bus.core import AgentConnection, Also
from redkey.bus.envelope import BUS, USER, Envelope
from redkey.bus.guard import Guard
from redkey.bus.model import MESSAGE, AgentState, Decided, Route, SessionRecord, SessionState
from redkey.bus.runtime.conduct import Breach
from redkey.bus.runtime.events import Message
from redkey.errors import BusRefused

_USER_MAIL = 1_000


class MessageOperations(AgentOperations):
    """The operations on messages; both faces call these."""

    _guard: Guard
    _route: Route
    # Owners of conversations whose rows are not durable yet.
    _owned: dict[tuple[int, str], str]

    def send(self, session_id: str, envelope: Envelope, done: Done, *, also: Also = None) -> Decided:
        """Record a message for its receivers."""
        session = self._state.open(session_id)
        since = self._ago(self.limits.broadcast_seconds) if envelope.topic else ""
        if envelope.dst == USER and self._user(session).waiting >= _USER_MAIL:
            # A person need not confirm messages, so the oldest is dropped.
            self._deliveries.drop_oldest(self._user(session))
        decided = self._state.send(session, self.now(), envelope, since, self._find, self._route, self._guard)
        self._commit(decided, done, also=also)
        return decided

    def announce(
        self, session: SessionState, envelope: Envelope, done: Done, *, actor: AgentConnection | None = None
    ) -> None:
        """Record an event of an agent for all connected agents."""
        payload = envelope.payload if isinstance(envelope.payload, dict) else {}
        decided = self._state.note(session, self.now(), envelope.type, envelope.src, payload, envelope.meta)
        self._commit(decided, done, actor=actor)

    def own(self, session: SessionState, conversation_id: str, agent_id: str) -> None:
        """Make an agent the owner of a conversation; refuse it if there is another owner."""
        key = session.number, conversation_id
        owner = self._owned.get(key) or self.log.conversation_owner(*key)
        if owner is None:

            def durable(_: BusRefused | None) -> None:
                self._owned.pop(key, None)

            self._owned[key] = owner = agent_id
            self.commits.add([self._state.own(session, conversation_id, agent_id, self.now())], durable)
        if owner != agent_id:
            raise BusRefused(
                f"this conversation belongs to {owner}; only the owner may do this", code="not_owner", pointer="/src"
            )

    def waiting(self, session: SessionState, agent: AgentState, limit: int, after: int = 0) -> list[SessionRecord]:
        """The messages that wait for an agent, oldest first, within the limits."""
        feed, size = self.feed(session), self.limits.history_bytes
        records: list[SessionRecord] = []
        for seq in self._deliveries.places(agent):
            record = feed.record(seq) if seq > after else None
            if record is None:
                continue
            size -= len(record.envelope)
            if len(records) == limit or (size < 0 and records):
                break
            records.append(record)
        return records

    def confirm_from(self, member: AgentConnection, session_id: str, agent_id: str, message_id: str) -> bool:
        """Confirm a message for an agent of a connection; false if the agent is not bound to it."""
        if self._members.get((session_id, agent_id)) is not member:
            return False
        session = self._state.sessions[session_id]
        agent = session.agents[agent_id]
        if not self._deliveries.confirm_sent(agent, message_id):
            self._deliveries.confirm(agent, message_id, lambda key: self._seq_of(session, key))
        return True

    def confirm(self, session_id: str, agent_id: str, message_id: str) -> bool:
        """Confirm a message for an agent; false if it has no unconfirmed message with this id."""
        session = self._state.open(session_id)
        agent = self.agent(session, agent_id)
        return self._deliveries.confirm(agent, message_id, lambda key: self._seq_of(session, key))

    def deliveries(self, session: SessionState, record: SessionRecord, dst: str | None) -> list[dict[str, str]]:
        """The deliveries of a message: to its receiver, or to those of all agents that have not confirmed it."""
        if dst == USER and session.user is not None:
            agents = [session.user]
        else:
            agents = [session.agents[dst]] if dst in session.agents else [] if dst else list(session.agents.values())
        states = ((agent, self._deliveries.progress(agent, record.seq, record.id)) for agent in agents)
        shown = ((agent, state) for agent, state in states if dst or state != "acknowledged")
        return [{"agent_id": agent.id, "state": state} for agent, state in shown]

    def _seq_of(self, session: SessionState, message_id: str) -> int | None:
        record = self.log.find(session.number, message_id)
        return record.seq if record is not None else None

    def _find_message(self, session_id: str, message_id: str) -> Envelope | None:
        envelope = self._find(self._state.open(session_id), message_id)
        return envelope if envelope is not None and envelope.type == MESSAGE else None

    def _find_owner(self, session_id: str, conversation_id: str) -> str | None:
        return self.log.conversation_owner(self._state.open(session_id).number, conversation_id)

    def _report_refusal(self, session: SessionState, message: Message, breach: Breach) -> None:
        payload = {
            "message_id": message.id,
            "src": message.src,
            "dst": message.dst,
            "conversation_id": message.conversation_id,
            "code": breach.code,
            "reason": breach.message,
        }
        noted = self._state.note(session, self.now(), "message.refused", BUS, payload)
        self._commit(noted, lambda _: None)
