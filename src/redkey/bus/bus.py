"""The bus: sessions, agents and messages, each change durable before anybody is told of it.

Both faces (Unix sockets and HTTP) call the methods of this class and nothing below it, so they cannot differ. `state`
decides, `commits` makes durable, `feed` and `deliveries` tell. A method raises BusRefused, or calls `done` once the
change is durable (with None) or cannot become so (with why).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
import structlog

from redkey.bus.commits import Commits, Done
from redkey.bus.deliveries import Deliveries
from redkey.bus.envelope import BUS, USER, Envelope
from redkey.bus.feed import Feed, Follower
from redkey.bus.guarding import Guard
from redkey.bus.limits import BusLimits
from redkey.bus.log import Log
from redkey.bus.mailbox import Outlet
from redkey.bus.presence import Key, Presence
from redkey.bus.runtime.conduct import Breach
from redkey.bus.runtime.events import Message
from redkey.bus.state import (
    KEY_MARK,
    MESSAGE,
    Agent,
    Decided,
    Posted,
    Record,
    Route,
    Session,
    SessionPolicy,
    State,
    Write,
)
from redkey.errors import BusRefused, StoreError
from redkey.wire.times import write_time

_log = structlog.get_logger("redkey.bus")
_decode_envelope = msgspec.json.Decoder(Envelope).decode
_FORGET_AT_ONCE = 500
_USER_MAIL = 1_000
# A row that becomes durable together with what was decided.
Also = Callable[[Decided], Write] | None


class Member(Outlet, Protocol):
    """A connection that an agent speaks through."""

    def tell(self, line: bytes) -> None:
        """Something happened in a session; a reader that is too slow to hear it is told that it missed some."""
        ...

    def part(self, session: Session) -> None:
        """A session is over."""
        ...


class Bus:
    """One bus on one log."""

    def __init__(
        self,
        log: Log,
        limits: BusLimits,
        *,
        wall: Callable[[], int],
        ids: Callable[[], str],
        route: Route,
        on_fatal: Callable[[BaseException], None],
        home: str = "",
    ) -> None:
        """`home` is the workspace of this machine's owner, whose sessions have sockets under their ids."""
        self.log, self.limits, self._home = log, limits, home
        self._wall, self._route, self.new_id = wall, route, ids
        self._state = State(limits, ids)
        # The last time that was written out, and how.
        self._millis, self._written, self._stamp = 0, "", b""
        self.commits = Commits(log, on_failure=self._reload, on_fatal=on_fatal)
        self._deliveries = Deliveries(limits, taken=self._take, given_up=self._give_up)
        self._feeds: dict[str, Feed] = {}
        self._members: dict[tuple[str, str], Member] = {}
        # Owners of conversations whose rows may not be durable yet.
        self._owned: dict[tuple[int, str], str] = {}
        self._presence = Presence(limits, self._went_away)
        # Messages that are decided and not durable yet, by session number and id.
        self._fresh: dict[tuple[int, str], Envelope] = {}
        # Those who watch sessions come and go.
        self.watchers: set[Follower] = set()
        self._opened: list[Callable[[Session], None]] = []
        self._closed: list[Callable[[Session], None]] = []
        self._posted: list[Callable[[Session, Record], None]] = []
        self._guard = Guard(self._find_message, self._find_owner, self._tell_refusal)
        self._load()

    def on_session(self, opened: Callable[[Session], None], closed: Callable[[Session], None]) -> None:
        """Call these when a session has begun or is over, durably; `opened` at once for those that are there."""
        self._opened.append(opened)
        self._closed.append(closed)
        for session in self._state.sessions.values():
            opened(session)

    def on_post(self, heard: Callable[[Session, Record], None]) -> None:
        """Call this with every record once it is durable."""
        self._posted.append(heard)

    def watch_presence(self) -> None:
        """Agents that were here when the bus last stopped have a moment to come back."""
        for session in self._state.sessions.values():
            for agent in session.agents.values():
                if agent.online and (session.key, agent.id) not in self._members:
                    self._presence.went((session.key, agent.id))

    async def stop(self) -> None:
        """Make durable what was taken, then take nothing more."""
        self._presence.stop()
        self._deliveries.stop()
        await self.commits.stop()
        self.log.close()

    def now(self) -> str:
        """The time as records have it: UTC, to the millisecond."""
        millis = self._wall() // 1_000_000
        if millis != self._millis:
            self._millis, self._written = millis, write_time(millis * 1_000_000)[:23] + "Z"
            self._stamp = self._written.encode()
        return self._written

    def stamp(self) -> bytes:
        """The time as it stands on a line."""
        self.now()
        return self._stamp

    # Looking.

    def session(self, session_id: str) -> Session:
        """A session, open or closed."""
        found = self._state.sessions.get(session_id) or self.log.session(session_id)
        if found is None:
            raise BusRefused("session not found", code="session_not_found", pointer="/session")
        return found

    def open_sessions(self) -> Iterator[Session]:
        return (session for session in self._state.sessions.values() if session.status == "open")

    def open_session_named(self, name: str | None, workspace: str) -> Session | None:
        """The first open session of a workspace that has a name."""
        for session in self.open_sessions():
            if session.name == name and session.workspace == workspace:
                return session
        return None

    def key_of(self, session_id: str, workspace: str) -> str:
        """What the bus knows a session by: ids belong to workspaces, and two of them may use the same."""
        return session_id if workspace in ("", self._home) else f"{workspace}{KEY_MARK}{session_id}"

    def session_of_id(self, session_id: str, workspace: str) -> Session | None:
        """The session of a workspace that has an id already, open or closed."""
        # Sessions that are older than this rule are known by their id alone.
        for key in dict.fromkeys((self.key_of(session_id, workspace), session_id)):
            found = self._state.sessions.get(key) or self.log.session(key)
            if found is not None and found.workspace == workspace:
                return found
        return None

    def settled(self, done: Done) -> None:
        """Call back when everything that was decided so far is durable."""
        self.commits.add((), done)

    def open_session(self, session_id: str) -> Session:
        """A session in which something may happen."""
        found = self._state.sessions.get(session_id)
        if found is not None and found.status == "open":
            return found
        if self.session(session_id).status == "closed":
            raise BusRefused("the session is closed", code="session_closed", pointer="/session")
        return self._state.open(session_id)

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

    def feed(self, session: Session) -> Feed:
        """The records of a session; of a closed one, as the log has them."""
        found = self._feeds.get(session.key)
        return found or Feed(self.log, session.number, self.log.last_seq(session.number), closed=True)

    def waiting(self, session: Session, agent: Agent, limit: int, after: int = 0) -> list[Record]:
        """The messages that wait for an agent, oldest first, as many as are within the limits."""
        feed, size = self.feed(session), self.limits.history_bytes
        found: list[Record] = []
        for seq in self._deliveries.places(agent):
            record = feed.record(seq) if seq > after else None
            if record is None:
                continue
            size -= len(record.envelope)
            if len(found) == limit or (size < 0 and found):
                break
            found.append(record)
        return found

    def sessions(self, workspace: str, after: str, limit: int, status: str | None) -> list[Session]:
        """Sessions of a workspace by id, open and closed."""
        return self.log.sessions(workspace, self.key_of(after, workspace) if after else "", limit, status)

    # Sessions.

    def create_session(
        self,
        src: str,
        name: str | None,
        done: Done,
        *,
        session_id: str | None = None,
        workspace: str = "",
        policy: SessionPolicy = "open",
        also: Also = None,
    ) -> Session:
        key = self.key_of(session_id, workspace) if session_id is not None else ""
        if key and (key in self._state.sessions or self.log.session(key) is not None):
            raise BusRefused("there is a session of this id already", code="session_exists", pointer="/id")
        decided = self._state.create(self.now(), src, session_id, name, workspace, policy, self.key_of)
        self._feeds[decided.session.key] = Feed(self.log, decided.session.number, 0)
        self._commit(decided, done, also=also)
        return decided.session

    def close_session(self, session_id: str, src: str, done: Done, *, also: Also = None) -> Session:
        session = self._state.open(session_id)
        self._commit(self._state.close(session, self.now(), src), done, also=also)
        return session

    # Agents.

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
                # Somebody else has removed it: it is not among those who are told any more.
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

    def resume(self, session_id: str, agent_id: str) -> None:
        """A connection has room again."""
        session = self._state.sessions.get(session_id)
        agent = session.agents.get(agent_id) if session is not None else None
        if agent is not None:
            self._deliveries.pump(agent)

    # Messages.

    def send(self, session_id: str, envelope: Envelope, done: Done, *, also: Also = None) -> Decided:
        """Record a message for those that it goes to."""
        session = self._state.open(session_id)
        since = self._ago(self.limits.broadcast_seconds) if envelope.topic else ""
        if envelope.dst == USER and self._user(session).waiting >= _USER_MAIL:
            # A person need not confirm anything: the oldest goes.
            self._deliveries.drop_oldest(self._user(session))
        decided = self._state.send(session, self.now(), envelope, since, self._find, self._route, self._guard)
        self._commit(decided, done, also=also)
        return decided

    def announce(self, session: Session, envelope: Envelope, done: Done, *, actor: Member | None = None) -> None:
        """Record something that an agent tells everybody who is connected."""
        payload = envelope.payload if isinstance(envelope.payload, dict) else {}
        decided = self._state.note(session, self.now(), envelope.type, envelope.src, payload)
        self._commit(decided, done, actor=actor)

    def own(self, session: Session, conversation_id: str, agent_id: str) -> None:
        """Make an agent the owner of a conversation; refused when it has another one."""
        key = session.number, conversation_id
        owner = self._owned.get(key) or self.log.conversation_owner(*key)
        if owner is None:
            self._owned[key] = owner = agent_id
            self.commits.add([self._state.own(session, conversation_id, agent_id, self.now())], lambda _: None)
        if owner != agent_id:
            raise BusRefused(f"this conversation belongs to {owner}", code="not_owner", pointer="/src")

    def confirm_from(self, member: Member, session_id: str, agent_id: str, message_id: str) -> bool:
        """As `confirm`, for an agent that speaks through a connection; false when it does not."""
        if self._members.get((session_id, agent_id)) is not member:
            return False
        session = self._state.sessions[session_id]
        agent = session.agents[agent_id]
        if not self._deliveries.confirm_sent(agent, message_id):
            self._deliveries.confirm(agent, message_id, lambda key: self._seq_of(session, key))
        return True

    def confirm(self, session_id: str, agent_id: str, message_id: str) -> bool:
        """An agent has a message; false when none of this id waits for it (any more)."""
        session = self._state.open(session_id)
        agent = self.agent(session, agent_id)
        return self._deliveries.confirm(agent, message_id, lambda key: self._seq_of(session, key))

    def deliveries(self, session: Session, record: Record, dst: str | None) -> list[dict[str, str]]:
        """How far a message has come: to its receiver, or to those of everybody who have not confirmed it."""
        if dst == USER and session.user is not None:
            agents = [session.user]
        else:
            agents = [session.agents[dst]] if dst in session.agents else [] if dst else list(session.agents.values())
        states = ((agent, self._deliveries.progress(agent, record.seq, record.id)) for agent in agents)
        shown = ((agent, state) for agent, state in states if dst or state != "acknowledged")
        return [{"agent_id": agent.id, "state": state} for agent, state in shown]

    def remove_dead(self) -> None:
        """Remove agents that are away for long: they have crashed, or nobody starts them any more."""
        since, long_since = (self._ago(days * 86_400) for days in (self.limits.away_days, self.limits.retention_days))
        for session in tuple(self.open_sessions()):
            for agent in tuple(session.agents.values()):
                seen = agent.seen_at
                if not agent.online and seen is not None and seen < (long_since if agent.waiting else since):
                    self.remove_agent(session.key, agent.id, lambda _: None, src=BUS, reason="away")

    def _ago(self, seconds: float) -> str:
        return write_time(max(0, self._wall() - int(seconds * 1e9)))[:23] + "Z"

    async def forget_old(self) -> None:
        """Forget agents that died, records beyond the retention that wait for nobody, and answers older than a day."""
        self.remove_dead()
        moment = datetime.fromtimestamp(self._wall() / 1e9, UTC)
        old = _written(moment - timedelta(days=self.limits.retention_days))
        while await self.commits.aside(lambda: self.log.forget(old, _FORGET_AT_ONCE)):
            pass
        answers = _written(moment - timedelta(days=1))
        await self.commits.aside(lambda: self.log.forget_answers(answers))

    def _seq_of(self, session: Session, message_id: str) -> int | None:
        record = self.log.find(session.number, message_id)
        return record.seq if record is not None else None

    def _find(self, session: Session, message_id: str) -> Envelope | None:
        fresh = self._fresh.get((session.number, message_id))
        if fresh is not None:
            return fresh
        record = self.log.find(session.number, message_id)
        return _decode_envelope(record.envelope) if record is not None else None

    def _find_message(self, session_id: str, message_id: str) -> Envelope | None:
        found = self._find(self._state.open(session_id), message_id)
        return found if found is not None and found.type == MESSAGE else None

    def _find_owner(self, session_id: str, conversation_id: str) -> str | None:
        return self.log.conversation_owner(self._state.open(session_id).number, conversation_id)

    def _tell_refusal(self, session: Session, message: Message, breach: Breach) -> None:
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

    # From a decision to those who are told.

    def _commit(self, decided: Decided, done: Done, *, actor: Member | None = None, also: Also = None) -> None:
        session = decided.session
        for one in decided.posted:
            self._fresh[session.number, one.record.id] = one.envelope

        def durable(refused: BusRefused | None) -> None:
            for one in decided.posted:
                self._fresh.pop((session.number, one.record.id), None)
            if refused is None:
                self._publish(decided, actor, done)
            else:
                done(refused)

        self.commits.add([*decided.writes, also(decided)] if also is not None else decided.writes, durable)

    def _publish(self, decided: Decided, actor: Member | None, done: Done) -> None:
        session = decided.session
        feed = self._feeds.get(session.key)
        if feed is None:
            done(None)
            return
        for one in decided.posted:
            feed.publish(one.record)
        # What this decision did, not how the session stands: a later one may have closed it meanwhile.
        kind = decided.posted[0].record.type if decided.posted else ""
        if kind == "session.created":
            for opened in self._opened:
                opened(session)
        elif kind == "session.closed":
            for closed in self._closed:
                closed(session)
        # The one who asked learns it first.
        done(None)
        for one in decided.posted:
            self._tell(session, one, actor)
        if decided.posted:
            feed.wake()
        if kind == "session.closed":
            self._end(session, feed)

    def _tell(self, session: Session, posted: Posted, actor: Member | None) -> None:
        record = posted.record
        if posted.receivers:
            self._deliveries.arrive(posted.receivers, record)
        if record.type != MESSAGE and not posted.receivers:
            line = record.envelope + b"\n"
            present = (self._members.get((session.key, key)) for key in session.agents)
            for member in {id(one): one for one in present if one is not None and one is not actor}.values():
                member.tell(line)
        if record.type.startswith("session."):
            for watcher in tuple(self.watchers):
                watcher.wake()
        for heard in self._posted:
            heard(session, record)

    def _end(self, session: Session, feed: Feed) -> None:
        feed.closed = True
        feed.wake()
        for agent in (*session.agents.values(), *([session.user] if session.user else [])):
            self._deliveries.close(agent)
            member = self._members.pop((session.key, agent.id), None)
            if member is not None:
                member.part(session)
        self._state.forget(session)
        del self._feeds[session.key]

    def _take(self, session: Session, agent: Agent, seq: int) -> None:
        self._state.taken(agent)
        self.commits.add_taken(agent.number, seq)

    def _give_up(self, session: Session, agent: Agent, message_id: str, deliveries: int) -> None:
        if session.status == "open":
            payload = {"message_id": message_id, "dst": agent.id, "deliveries": deliveries}
            noted = self._state.note(session, self.now(), "message.unacknowledged", BUS, payload)
            self._commit(noted, lambda _: None)

    # Beginning, and beginning again.

    def _load(self) -> None:
        sessions, session_numbers, agent_numbers = self.log.load()
        self._state.restore(sessions, session_numbers, agent_numbers)
        for session in sessions:
            feed = self._feeds.get(session.key)
            if feed is None:
                feed = self._feeds[session.key] = Feed(self.log, session.number, session.seq)
            for agent in (*session.agents.values(), *([session.user] if session.user else [])):
                # An older file does not say when an agent was last here.
                agent.seen_at = agent.seen_at or (None if agent.online else self.now())
                self._deliveries.open(session, agent, feed, self.log.pending(agent.number))

    def _reload(self, failure: StoreError) -> None:
        """A commit failed: go back to what the log holds, and on from there with everybody who is connected."""
        _log.error(
            "the bus could not write; it goes on from its last commit", code=failure.code, reason=failure.message
        )
        self._fresh.clear()
        self._deliveries.forget()
        self._load()
        for session_id in self._feeds.keys() - self._state.sessions.keys():
            del self._feeds[session_id]
        for (session_id, agent_id), member in list(self._members.items()):
            session = self._state.sessions.get(session_id)
            agent = session.agents.get(agent_id) if session is not None else None
            if agent is None:
                del self._members[session_id, agent_id]
            else:
                self._deliveries.attach(agent, member)


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
