"""One request to the HTTP face: who asks, for what, and the way from it to the bus.

Idempotency: a POST with an Idempotency-Key is answered once. Its answer becomes durable together with what it did, so
that a repeated request gets the same answer and does nothing, even when the bus died in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
import orjson

from redkey.bus.bridge import Bridge
from redkey.bus.bus import Bus
from redkey.bus.commits import Done
from redkey.bus.core import Also
from redkey.bus.envelope import EVERYBODY
from redkey.bus.polls import Poll
from redkey.bus.state import MESSAGE, Agent, Decided, Record, Session, Write
from redkey.bus.weave1 import CARRIED
from redkey.errors import BusRefused
from redkey.http.exchange import Exchange
from redkey.services.caller import Caller

T = TypeVar("T")
Headers = Mapping[bytes, bytes]
_KEY_LIMIT = 255
_MANAGING = frozenset({"operator", "admin", "produce"})


class BusCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: in which workspace, by which key, and as whom."""

    workspace: str = ""
    key_id: str = ""
    scopes: frozenset[str] = frozenset()
    # A key of one agent speaks for that agent alone.
    agent_id: str = ""
    may_write: bool = True
    # Calls what it is given when the authority of the caller ends; gives what to call when it is over.
    hold: Callable[[Callable[[], None]], Callable[[], None]] | None = None
    # The same as use cases know it; None where the bus stands alone.
    ledger_caller: Caller | None = None

    @property
    def manages(self) -> bool:
        """May act for everybody: close sessions, order agents, bind ledgers. An agent's own key may not."""
        return not self.agent_id or not _MANAGING.isdisjoint(self.scopes)

    @property
    def reads_all(self) -> bool:
        """May read what is said between others. An agent's own key may not, unless its agent leads the session."""
        return self.manages or "read" in self.scopes


class Answer(msgspec.Struct, frozen=True):
    """A status and a body; None means an empty one."""

    status: int
    body: Any = None


class Call:
    """A request."""

    def __init__(
        self,
        bus: Bus,
        caller: BusCaller,
        method: str,
        path: str,
        names: Mapping[str, str],
        query: Any,
        data: bytes,
        exchange: Exchange,
        polls: set[Poll[Any]],
        streams: set[Any],
        bridge: Bridge | None,
    ) -> None:
        """`polls` and `streams` are those of the face, which a stop answers and ends."""
        headers = exchange.headers
        self.exchange, self.polls, self.streams, self._bridge = exchange, polls, streams, bridge
        self.bus, self.caller, self.names, self.query = bus, caller, names, query
        self.headers, self.data = headers, data
        self.scope = f"{caller.workspace}\n{caller.key_id}\n{method} {path}"
        self.key = headers.get(b"idempotency-key", b"").decode("latin-1") if method == "POST" else ""
        if len(self.key) > _KEY_LIMIT or not (self.key.isascii() and self.key.isprintable()):
            message = f"an Idempotency-Key has at most {_KEY_LIMIT} printable ASCII characters"
            raise BusRefused(message, code="idempotency_key_invalid")

    @property
    def bridge(self) -> Bridge:
        """The way from the ledger, of a bus inside a server."""
        if self._bridge is None:
            raise _no_ledger()
        return self._bridge

    @property
    def ledger_caller(self) -> Caller:
        """Who asks, for use cases; of a bus inside a server."""
        if self.caller.ledger_caller is None:
            raise _no_ledger()
        return self.caller.ledger_caller

    # What was asked.

    @property
    def session(self) -> Session:
        """The session of the path, if it is one of the caller's workspace."""
        found = self.bus.session_of_id(self.names["session_id"], self.caller.workspace)
        if found is None:
            raise BusRefused("session not found", code="session_not_found", pointer="/session")
        return found

    @property
    def open_session(self) -> Session:
        return self.bus.open_session(self.session.key)

    def agent(self, session: Session) -> Agent:
        """The agent of the path, if the caller may speak for it."""
        agent = self.bus.agent(session, self.names["agent_id"])
        self.check_speaks_for(agent.id)
        return agent

    def check_speaks_for(self, agent_id: str) -> None:
        own = self.caller.agent_id
        if own and own != agent_id:
            message = f"this key speaks for {own} alone, not for {agent_id}"
            raise BusRefused(message, code="agent_forbidden", pointer="/agent_id")

    def check_manages(self, *, leads: bool = False) -> None:
        """Refuse an agent's own key; with `leads`, not that of an agent that leads the session."""
        if not self.caller.manages and not (leads and self.leads):
            raise BusRefused("an agent's key acts for its agent alone; use an admin key", code="insufficient_scope")

    @property
    def leads(self) -> bool:
        """True for the key of an agent that was made a lead of the session: so it is granted what concerns all."""
        agent = self.session.agents.get(self.caller.agent_id)
        return agent is not None and agent.lead

    def sees(self, record: Record) -> bool:
        """Whether the caller may read a record: an agent's own key sees events, and messages from and to its agent."""
        own = self.caller.agent_id
        if self.caller.reads_all or record.type.startswith(("session.", "agent.")) or self.leads:
            return True
        envelope = orjson.loads(record.envelope)
        if record.type in CARRIED and "dst" not in envelope and "topic" not in envelope:
            # A task event of Weave v1 that its sender told to everybody.
            return True
        payload = envelope.get("payload")
        told = payload if record.type != MESSAGE and isinstance(payload, dict) else {}
        parties = (envelope.get("src"), envelope.get("dst"), told.get("src"), told.get("dst"))
        return own in parties or envelope.get("topic") == EVERYBODY

    # What is done.

    async def durable(self, act: Callable[[Done], T]) -> T:
        """What an act of the bus gives, once it is durable."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(refused: BusRefused | None) -> None:
            if future.done():
                return
            if refused is None:
                future.set_result(None)
            else:
                future.set_exception(refused)

        found = act(done)
        await future
        return found

    async def poll(self, session: Session, look: Callable[[], Sequence[Record]], seconds: float) -> Sequence[Record]:
        """What there is to tell, as soon as there is something; given up when the caller disconnects."""
        future: asyncio.Future[Sequence[Record]] = asyncio.get_running_loop().create_future()

        def tell(found: Sequence[Record]) -> None:
            if not future.done():
                future.set_result(found)

        def end() -> None:
            if not future.done():
                future.set_exception(BusRefused("the key or token ended", code="unauthenticated"))

        poll = Poll(self.bus.feed(session), look, seconds, tell)
        self.polls.add(poll)
        release = self.caller.hold(end) if self.caller.hold is not None and seconds else None
        try:
            return await self.exchange.while_connected(future)
        finally:
            self.polls.discard(poll)
            poll.leave()
            if release is not None:
                release()

    def answered(self, show: Callable[[Decided], Answer]) -> Also:
        """The row that keeps the answer to this request, to be written with what it does; none without a key."""
        if not self.key:
            return None

        def row(decided: Decided) -> Write:
            answer = show(decided)
            body = orjson.dumps(answer.body) if answer.body is not None else b""
            return "put_answer", (self.scope, self.key, self.request, answer.status, body, self.bus.now())

        return row

    @property
    def request(self) -> bytes:
        return sha256(self.data).digest()

    def repeated(self) -> Answer | None:
        """What this request was answered before."""
        found = self.bus.log.answer(self.scope, self.key) if self.key else None
        if found is None:
            return None
        request, status, body = found
        if request != self.request:
            message = "this Idempotency-Key was used for another request"
            raise BusRefused(message, code="idempotency_key_reused")
        return Answer(status, orjson.loads(body) if body else None)

    def derived_id(self, *parts: str) -> str | None:
        """An id that the same key always gives; None without a key."""
        if not self.key:
            return None
        digest = sha256("\n".join((self.scope, self.key, *parts)).encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def _no_ledger() -> BusRefused:
    return BusRefused("this bus stands alone, without a ledger", code="no_ledger")
