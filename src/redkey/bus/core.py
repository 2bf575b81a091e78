"""The core of the bus: what was decided becomes durable, then everybody whom it concerns is told.

`state` decides, `commits` makes durable, `feed` and `deliveries` tell. This class joins them, and goes back to what the
log holds when a commit fails. Sessions, agents and messages are built on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from redkey.bus.commits import Commits, Done
from redkey.bus.deliveries import Deliveries
from redkey.bus.envelope import BUS, Envelope
from redkey.bus.feed import Feed, Follower
from redkey.bus.known_ids import KnownIds
from redkey.bus.limits import BusLimits
from redkey.bus.log import Log
from redkey.bus.mailbox import Outlet
from redkey.bus.state import MESSAGE, Agent, Decided, Posted, Record, Session, State, Write
from redkey.errors import BusRefused, StoreError
from redkey.wire.times import write_time

_log = structlog.get_logger("redkey.bus")
_decode_envelope = msgspec.json.Decoder(Envelope).decode
# Ids of so many records are read at the start; a million take about half a second.
_COVERED_RECORDS = 1_000_000
# A row that becomes durable together with what was decided.
Also = Callable[[Decided], Write] | None


class Member(Outlet, Protocol):
    """A connection that an agent speaks through."""

    def tell(self, line: bytes) -> None:
        """Send an event of a session; a reader that is too slow for it learns later how many it missed."""
        ...

    def part(self, session: Session) -> None:
        """A session is over."""
        ...


class Core:
    """One bus on one log."""

    def __init__(
        self,
        log: Log,
        limits: BusLimits,
        *,
        wall: Callable[[], int],
        ids: Callable[[], str],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self.log, self.limits = log, limits
        self._wall, self.new_id = wall, ids
        self._state = State(limits, ids)
        # The last time that was written out, and how.
        self._millis, self._written, self._stamp = 0, "", b""
        self.commits = Commits(log, on_failure=self._reload, on_fatal=on_fatal)
        self._deliveries = Deliveries(limits, taken=self._take, given_up=self._give_up)
        self._feeds: dict[str, Feed] = {}
        self._members: dict[tuple[str, str], Member] = {}
        # Records that are decided and not durable yet, by session number and id.
        self._fresh: dict[tuple[int, str], Envelope] = {}
        self._known = KnownIds()
        # Those who watch sessions come and go.
        self.watchers: set[Follower] = set()
        self._opened: list[Callable[[Session], None]] = []
        self._closed: list[Callable[[Session], None]] = []
        self._posted: list[Callable[[Session, Record], None]] = []

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

    def _ago(self, seconds: float) -> str:
        return write_time(max(0, self._wall() - int(seconds * 1e9)))[:23] + "Z"

    def settled(self, done: Done) -> None:
        """Call back when everything that was decided so far is durable."""
        self.commits.add((), done)

    def feed(self, session: Session) -> Feed:
        """The records of a session; of a closed one, as the log has them."""
        found = self._feeds.get(session.key)
        return found or Feed(self.log, session.number, self.log.last_seq(session.number), closed=True)

    def _find(self, session: Session, message_id: str) -> Envelope | None:
        fresh = self._fresh.get((session.number, message_id))
        if fresh is not None:
            return fresh
        if not self._known.may_hold(session.number, message_id):
            return None
        record = self.log.find(session.number, message_id)
        return _decode_envelope(record.envelope) if record is not None else None

    def _commit(self, decided: Decided, done: Done, *, actor: Member | None = None, also: Also = None) -> None:
        session = decided.session
        for one in decided.posted:
            self._fresh[session.number, one.record.id] = one.envelope
            self._known.add(session.number, one.record.id)

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
        self._known.forget(session.number)
        del self._feeds[session.key]

    def _take(self, agent: Agent, seq: int) -> None:
        self._state.taken(agent)
        self.commits.add_taken(agent.number, seq)

    def _give_up(self, session: Session, agent: Agent, message_id: str, deliveries: int) -> None:
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
                feed = self._feeds[session.key] = Feed(self.log, session.number, session.seq)
                left -= session.seq
                if left >= 0:
                    self._known.cover(session.number, self.log.record_ids(session.number))
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
