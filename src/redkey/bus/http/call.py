"""One request to the HTTP face: who asks, for what, and the way from it to the bus.

Idempotency: a POST with an Idempotency-Key is answered once. Its answer becomes durable together with what it did, so
that a repeated request gets the same answer and does nothing, even when the bus died in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec
import orjson

from redkey.bus.bus import Also, Bus
from redkey.bus.commits import Done
from redkey.bus.state import Agent, Decided, Session, Write
from redkey.errors import BusRefused

T = TypeVar("T")
Headers = Mapping[bytes, bytes]
_KEY_LIMIT = 255


class BusCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: in which workspace, by which key, and as whom."""

    workspace: str = ""
    key_id: str = ""
    scopes: frozenset[str] = frozenset()
    # A key of one agent speaks for that agent alone.
    agent_id: str = ""
    may_write: bool = True


class Caller(Protocol):
    """The other end of a connection."""

    @property
    def address(self) -> str: ...


class Exchange(Protocol):
    """A request and the way back, as whoever hosts the face brings it."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def query(self) -> bytes: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def connection(self) -> Caller:
        """Where it comes from."""
        ...

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body; after the last, the news that the caller is gone."""
        ...

    def reply(self, status: int, head: bytes, body: bytes) -> None:
        """Send a whole answer; `head` is its header lines but for the length of the body."""
        ...

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send the next part of an answer that writes itself."""
        ...


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
        query: Mapping[str, str],
        headers: Headers,
        data: bytes,
    ) -> None:
        self.bus, self.caller, self.names, self.query = bus, caller, names, query
        self.headers, self.data = headers, data
        self.scope = f"{caller.workspace}\n{caller.key_id}\n{method} {path}"
        self.key = headers.get(b"idempotency-key", b"").decode("latin-1") if method == "POST" else ""
        if len(self.key) > _KEY_LIMIT or not (self.key.isascii() and self.key.isprintable()):
            message = f"an Idempotency-Key has at most {_KEY_LIMIT} printable ASCII characters"
            raise BusRefused(message, code="idempotency_key_invalid")

    # What was asked.

    @property
    def session(self) -> Session:
        """The session of the path, if it is one of the caller's workspace."""
        found = self.bus.session(self.names["session_id"])
        if found.workspace != self.caller.workspace:
            raise BusRefused("there is no such session", code="session_not_found", pointer="/session")
        return found

    @property
    def open_session(self) -> Session:
        return self.bus.open_session(self.session.id)

    def agent(self, session: Session) -> Agent:
        """The agent of the path, if the caller may speak for it."""
        agent = self.bus.agent(session, self.names["agent_id"])
        self.check_speaks_for(agent.id)
        return agent

    def check_speaks_for(self, agent_id: str) -> None:
        own = self.caller.agent_id
        if own and own != agent_id:
            raise BusRefused("this key speaks for another agent", code="agent_forbidden", pointer="/agent_id")

    def number(self, name: str, default: int, most: int) -> int:
        text = self.query.get(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise BusRefused(f"{name} is a whole number", code="query_invalid", pointer=f"/{name}")
        return min(int(text), most)

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
