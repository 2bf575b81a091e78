"""The core of the bus: a decision is committed, then published to feeds, mailboxes and connections.

`state` decides, `commits` writes, `feed` and `deliveries` publish. This class joins them and reloads the state from
the log when a commit fails. The operations on sessions, agents and messages are built on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from redkey.bus.commits import CommitQueue, Done
from redkey.bus.deliveries import Deliveries
from redkey.bus.envelope import BUS, Envelope
from redkey.bus.feed import Follower, SessionFeed
from redkey.bus.known_ids import KnownIds
from redkey.bus.limits import BusLimits
from redkey.bus.log import BusLog
from redkey.bus.mailbox import Outlet
from redkey.bus.model import MESSAGE, AgentState, Decided, Posted, SessionRecord, SessionState, Write
from redkey.bus.state import State
from redkey.errors import BusRefused, StoreError
from redkey.wire.times import write_time

_log = structlog.get_logger("redkey.bus")
_decode_envelope = msgspec.json.Decoder(Envelope).decode
# At most this many record ids are read at the start; a million take about half a second.
_COVERED_RECORDS = 1_000_000
# A row that is committed together with a decision.
Also = Callable[[Decided], Write] | None


class AgentConnection(Outlet, Protocol):
    """A connection that agents are bound to."""

    def tell(self, record: SessionRecord, agent_id: str) -> None:
        """Send an event to an agent of the session; a slow reader is sent the number of missed events later."""
        ...

    def part(self, session: SessionState) -> None:
        """Drop a session that has ended."""
        ...


class BusCore:
    """One bus on one log: its state, its commits, and who follows what."""

    def __init__(
        self,
        log: BusLog,
        limits: BusLimits,
        *,
        wall: Callable[[], int],
        ids: Callable[[], str],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self.log, self.limits = log, limits
        self._wall, self.new_id = wall, ids
        self._state = State(limits, ids)
        # The last formatted time, in milliseconds, as text and as bytes.
        self._millis, self._written, self._stamp = 0, "", b""
        self.commits = CommitQueue(log, on_failure=self._reload, on_fatal=on_fatal)
        self._deliveries = Deliveries(limits, taken=self._take, given_up=self._give_up)
        self._feeds: dict[str, SessionFeed] = {}
        self._members: dict[tuple[str, str], AgentConnection] = {}
        # Records that are decided but not yet durable, by session number and id.
        self._fresh: dict[tuple[int, str], Envelope] = {}
        self._known = KnownIds()
        # Followers of the sessions that are created and closed.
        self.watchers: set[Follower] = set()
        self._opened: list[Callable[[SessionState], None]] = []
        self._closed: list[Callable[[SessionState], None]] = []
        self._posted: list[Callable[[SessionState, SessionRecord], None]] = []

    def now(self) -> str:
        """Give the time as records store it: UTC, in milliseconds."""
        millis = self._wall() // 1_000_000
        if millis != self._millis:
            self._millis, self._written = millis, write_time(millis * 1_000_000)[:23] + "Z"
            self._stamp = self._written.encode()
        return self._written

    def stamp(self) -> bytes:
        """Give the time of `now` as bytes."""
        self.now()
        return self._stamp

    def _ago(self, seconds: float) -> str:
        return write_time(max(0, self._wall() - int(seconds * 1e9)))[:23] + "Z"

    def settled(self, done: Done) -> None:
        """Call back once everything decided so far is durable."""
        self.commits.add((), done)

    def feed(self, session: SessionState) -> SessionFeed:
        """The records of a session; those of a closed one are read from the log."""
        feed = self._feeds.get(session.key)
        return feed or SessionFeed(self.log, session.number, self.log.last_seq(session.number), closed=True)

    def _find(self, session: SessionState, message_id: str) -> Envelope | None:
        fresh = self._fresh.get((session.number, message_id))
        if fresh is not None:
            return fresh
        if not self._known.may_contain(session.number, message_id):
            return None
        record = self.log.find(session.number, message_id)
        return _decode_envelope(record.envelope) if record is not None else None

    def _commit(self, decided: Decided, done: Done, *, actor: AgentConnection | None = None, also: Also = None) -> None:
        session = decided.session
        for posted in decided.posted:
            self._fresh[session.number, posted.record.id] = posted.envelope
            self._known.add(session.number, posted.record.id)

        def durable(refused: BusRefused | None) -> None:
            for posted in decided.posted:
                self._fresh.pop((session.number, posted.record.id), None)
            if refused is None:
                self._publish(decided, actor, done)
            else:
                done(refused)

        self.commits.add([*decided.writes, also(decided)] if also is not None else decided.writes, durable)

    def _publish(self, decided: Decided, actor: AgentConnection | None, done: Done) -> None:
        session = decided.session
        feed = self._feeds.get(session.key)
        if feed is None:
            done(None)
            return
        for posted in decided.posted:
            feed.publish(posted.record)
        # Judge by this decision, not by the session: a later decision may have closed it already.
        kind = decided.posted[0].record.type if decided.posted else ""
        if kind == "session.created":
            for opened in self._opened:
                opened(session)
        elif kind == "session.closed":
            for closed in self._closed:
                closed(session)
        # The requester gets its reply first.
        done(None)
        for posted in decided.posted:
            self._publish_record(session, posted, actor)
        if decided.posted:
            feed.wake()
        if kind == "session.closed":
            self._end(session, feed)

    def _publish_record(self, session: SessionState, posted: Posted, actor: AgentConnection | None) -> None:
        record = posted.record
        if posted.receivers:
            self._deliveries.arrive(posted.receivers, record)
        if record.type != MESSAGE and not posted.receivers:
            heard: set[int] = set()
            for key in session.agents:
                member = self._members.get((session.key, key))
                # Several agents may share a connection, which gets the event once.
                if member is not None and member is not actor and id(member) not in heard:
                    heard.add(id(member))
                    member.tell(record, key)
        if record.type.startswith("session."):
            for watcher in tuple(self.watchers):
                watcher.wake()
        for on_post in self._posted:
            on_post(session, record)

    def _end(self, session: SessionState, feed: SessionFeed) -> None:
        feed.closed = True
        feed.wake()
        for agent in (*session.agents.values(), *([session.user] if session.user else [])):
            self._deliveries.close(agent)
            member = self._members.pop((session.key, agent.id), None)
            if member is not None:
                member.part(session)
        self._state.forget(session)
        self._known.forget(session.number)
        del self._feeds[session.key]

    def _take(self, agent: AgentState, seq: int) -> None:
        self._state.taken(agent)
        self.commits.add_taken(agent.number, seq)

    def _give_up(self, session: SessionState, agent: AgentState, message_id: str, deliveries: int) -> None:
        if session.status == "open":
            payload = {"message_id": message_id, "dst": agent.id, "deliveries": deliveries}
            noted = self._state.note(session, self.now(), "message.unacknowledged", BUS, payload)
            self._commit(noted, lambda _: None)

    def _load(self) -> None:
        sessions, session_numbers, agent_numbers = self.log.load()
        self._state.restore(sessions, session_numbers, agent_numbers)
        left = _COVERED_RECORDS
        for session in sessions:
            feed = self._feeds.get(session.key)
            if feed is None:
                feed = self._feeds[session.key] = SessionFeed(self.log, session.number, session.seq)
                left -= session.seq
                if left >= 0:
                    self._known.cover(session.number, self.log.record_ids(session.number))
            for agent in (*session.agents.values(), *([session.user] if session.user else [])):
                # Files of an older format do not store when an agent was last online.
                agent.seen_at = agent.seen_at or (None if agent.online else self.now())
                self._deliveries.open(session, agent, feed, self.log.pending(agent.number))

    def _reload(self, failure: StoreError) -> None:
        """Go back to the content of the log after a failed commit; the connections stay."""
        _log.error(
            "the bus could not write; it continues from its last commit", code=failure.code, reason=failure.message
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
