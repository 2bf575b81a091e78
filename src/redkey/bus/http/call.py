"""One request to the HTTP face: its caller, its path and body, and how it uses the bus.

Idempotency: a POST with an Idempotency-Key takes effect once. Its answer is committed together with its effect, so a
repeated request gets the same answer and changes nothing, even after a crash in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
import orjson

from redkey.bus.bridge import Bridge
from redkey.bus.bus import Bus
from redkey.bus.commits import Done
from redkey.bus.core import Also
from redkey.bus.envelope import ALL_AGENTS
from redkey.bus.model import MESSAGE, AgentState, Decided, SessionRecord, SessionState, Write
from redkey.bus.polls import Poll
from redkey.bus.runtime.weave1_fields import CARRIED
from redkey.errors import BusRefused
from redkey.http.exchange import Exchange
from redkey.services.caller import Caller

T = TypeVar("T")
Headers = Mapping[bytes, bytes]
_KEY_LIMIT = 255
_MANAGING = frozenset({"operator", "admin", "produce"})


class BusCaller(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a request: workspace, key, scopes and agent."""

    workspace: str = ""
    key_id: str = ""
    scopes: frozenset[str] = frozenset()
    # The agent of an agent's key; such a key may act for this agent only.
    agent_id: str = ""
    may_write: bool = True
    # Register a callback for the end of the key; returns the function that removes it.
    hold: Callable[[Callable[[], None]], Callable[[], None]] | None = None
    # The same caller for use cases; None if the bus runs without a server.
    ledger_caller: Caller | None = None

    @property
    def manages(self) -> bool:
        """May act on whole sessions: close them, order agents, bind ledgers. An agent's key may not."""
        return not self.agent_id or not _MANAGING.isdisjoint(self.scopes)

    @property
    def reads_all(self) -> bool:
        """May read messages between others. An agent's key may not, unless its agent leads the session."""
        return self.manages or "read" in self.scopes


class BusReply(msgspec.Struct, frozen=True):
    """A status and a body; None for an empty body."""

    status: int
    body: Any = None


class BusParts:
    """What all requests of a face share."""

    def __init__(self, bus: Bus, bridge: Bridge | None) -> None:
        """`bridge` is None if the bus has no ledger."""
        self.bus, self.bridge = bus, bridge
        # What waits or streams now; the face ends it when it stops.
        self.polls: set[Poll[Any]] = set()
        self.streams: set[Any] = set()


class BusRequest:
    """One HTTP request and what its handler needs."""

    def __init__(
        self, parts: BusParts, caller: BusCaller, exchange: Exchange, names: Mapping[str, str], query: Any, data: bytes
    ) -> None:
        headers, method = exchange.headers, exchange.method
        self.bus, self.polls, self.streams, self._bridge = parts.bus, parts.polls, parts.streams, parts.bridge
        self.exchange, self.caller, self.names, self.query = exchange, caller, names, query
        self.headers, self.data = headers, data
        self.scope = f"{caller.workspace}\n{caller.key_id}\n{method} {exchange.path}"
        self.key = headers.get(b"idempotency-key", b"").decode("latin-1") if method == "POST" else ""
        if len(self.key) > _KEY_LIMIT or not (self.key.isascii() and self.key.isprintable()):
            message = f"an Idempotency-Key has at most {_KEY_LIMIT} printable ASCII characters"
            raise BusRefused(message, code="idempotency_key_invalid")

    @property
    def bridge(self) -> Bridge:
        """The bridge from the ledger; raise BusRefused if the bus runs without a server."""
        if self._bridge is None:
            raise _no_ledger()
        return self._bridge

    @property
    def ledger_caller(self) -> Caller:
        """The caller for use cases; raise BusRefused if the bus runs without a server."""
        if self.caller.ledger_caller is None:
            raise _no_ledger()
        return self.caller.ledger_caller

    # The request.

    @property
    def session(self) -> SessionState:
        """The session of the path, in the caller's workspace."""
        session = self.bus.session_of_id(self.names["session_id"], self.caller.workspace)
        if session is None:
            raise BusRefused("session not found", code="session_not_found", pointer="/session")
        return session

    @property
    def open_session(self) -> SessionState:
        """The session of the path, which must be open."""
        return self.bus.open_session(self.session.key)

    def agent(self, session: SessionState) -> AgentState:
        """The agent of the path, if the caller may act for it."""
        agent = self.bus.agent(session, self.names["agent_id"])
        self.check_speaks_for(agent.id)
        return agent

    def check_speaks_for(self, agent_id: str) -> None:
        """Refuse an agent's key that acts for another agent."""
        own = self.caller.agent_id
        if own and own != agent_id:
            message = f"this key may act for {own} only, not for {agent_id}"
            raise BusRefused(message, code="agent_forbidden", pointer="/agent_id")

    def check_manages(self, *, leads: bool = False) -> None:
        """Refuse an agent's key; with `leads`, accept the key of an agent that leads the session."""
        if not self.caller.manages and not (leads and self.leads):
            raise BusRefused("an agent's key may act for its agent only; use an admin key", code="insufficient_scope")

    @property
    def leads(self) -> bool:
        """True for the key of an agent that leads the session, and so may read and close all of it."""
        agent = self.session.agents.get(self.caller.agent_id)
        return agent is not None and agent.lead

    def sees(self, record: SessionRecord) -> bool:
        """Whether the caller may read a record: an agent's key reads events, and messages from and to its agent."""
        own = self.caller.agent_id
        if self.caller.reads_all or record.type.startswith(("session.", "agent.")) or self.leads:
            return True
        envelope = orjson.loads(record.envelope)
        if record.type in CARRIED and "dst" not in envelope and "topic" not in envelope:
            # A task event of Weave v1 that was sent to all agents.
            return True
        payload = envelope.get("payload")
        about = payload if record.type != MESSAGE and isinstance(payload, dict) else {}
        parties = (envelope.get("src"), envelope.get("dst"), about.get("src"), about.get("dst"))
        return own in parties or envelope.get("topic") == ALL_AGENTS

    # The effect and the answer.

    async def durable(self, act: Callable[[Done], T]) -> T:
        """Run an operation of the bus, and return its result once it is durable."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(refused: BusRefused | None) -> None:
            if future.done():
                return
            if refused is None:
                future.set_result(None)
            else:
                future.set_exception(refused)

        result = act(done)
        await future
        return result

    async def poll(
        self, session: SessionState, look: Callable[[], Sequence[SessionRecord]], seconds: float
    ) -> Sequence[SessionRecord]:
        """Wait for a result, at most this many seconds; stop when the caller disconnects."""
        future: asyncio.Future[Sequence[SessionRecord]] = asyncio.get_running_loop().create_future()

        def answer(records: Sequence[SessionRecord]) -> None:
            if not future.done():
                future.set_result(records)

        def end() -> None:
            if not future.done():
                future.set_exception(BusRefused("the key or token has expired or was revoked", code="unauthenticated"))

        poll = Poll(self.bus.feed(session), look, seconds, answer)
        self.polls.add(poll)
        release = self.caller.hold(end) if self.caller.hold is not None and seconds else None
        try:
            return await self.exchange.while_connected(future)
        finally:
            self.polls.discard(poll)
            poll.leave()
            if release is not None:
                release()

    def answered(self, show: Callable[[Decided], BusReply]) -> Also:
        """Give the row that stores the answer, to commit with the effect; None without an Idempotency-Key."""
        if not self.key:
            return None

        def row(decided: Decided) -> Write:
            answer = show(decided)
            body = orjson.dumps(answer.body) if answer.body is not None else b""
            return "put_answer", (self.scope, self.key, self.request, answer.status, body, self.bus.now())

        return row

    @cached_property
    def request(self) -> bytes:
        """The hash of the body."""
        return sha256(self.data).digest()

    def repeated(self) -> BusReply | None:
        """Find the stored answer to an earlier request with the same key."""
        stored = self.bus.log.answer(self.scope, self.key) if self.key else None
        if stored is None:
            return None
        request, status, body = stored
        if request != self.request:
            message = "this Idempotency-Key was used for another request; use a new key"
            raise BusRefused(message, code="idempotency_key_reused")
        return BusReply(status, orjson.loads(body) if body else None)

    def derived_id(self, *parts: str) -> str | None:
        """Derive an id from the Idempotency-Key; None without one."""
        if not self.key:
            return None
        digest = sha256("\n".join((self.scope, self.key, *parts)).encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _no_ledger() -> BusRefused:
    return BusRefused("this bus has no ledger; use the bus of redkey serve", code="no_ledger")
