"""A client that blocks: for scripts, command lines and agents without an event loop."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from redkey.bus.client import asks
from redkey.bus.client.asks import MAIN
from redkey.bus.client.core import Ask, ClientCore, Envelope
from redkey.bus.home import find_home, no_bus, socket_for
from redkey.bus.runtime.events import Kind, Message
from redkey.errors import BusLost

T = TypeVar("T")
_READ = 64 * 1024
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0


class BusClient:
    """A connection to a bus: of an agent once it has joined a session, of nobody before.

    A lost connection is made again within `reconnect_seconds`, the agent joins again, and what was under way is sent
    again: it has its id, so nothing happens twice.

        with BusClient() as bus:
            bus.join(bus.create_session("talk"), "ann")
            bus.send("bob", "hello")
            print(bus.receive())
    """

    def __init__(
        self, home: Path | str | None = None, *, timeout: float = 30.0, reconnect_seconds: float = 30.0
    ) -> None:
        self._home = Path(home) if home is not None else find_home(os.environ)
        self._timeout, self._reconnect = timeout, reconnect_seconds
        self._core = ClientCore()
        self._socket: socket.socket | None = None
        self.session: str = ""
        self.name: str | None = None

    # Sessions and agents.

    def sessions(self) -> list[asks.SessionInfo]:
        return self._ask(asks.sessions())

    def create_session(self, name: str | None = None) -> str:
        return self._ask(asks.create_session(name))

    def open_session(self, name: str = MAIN) -> str:
        """The open session of a name; it is created when there is none."""
        return self._ask(asks.open_session(name))

    def close_session(self, session: str) -> None:
        self._ask(asks.close_session(session))

    def agents(self, session: str | None = None) -> list[asks.AgentInfo]:
        return self._ask(asks.agents(session or self.session))

    def join(self, session: str, agent: str, name: str | None = None) -> None:
        """Become an agent of a session; what waits for it comes from now on."""
        # Known before it is asked for: what waits comes right behind the answer.
        before, self._core.agent = self._core.agent, agent
        try:
            self._ask(asks.join(session, agent, name))
        except BaseException:
            self._core.agent = before
            raise
        self.session, self.name = session, name

    def rename(self, name: str) -> None:
        self._ask(asks.rename(self.session, self._core.agent, name))
        self.name = name

    def leave(self) -> None:
        """Leave the session for good; what waits is not kept."""
        self._ask(asks.leave(self.session, self._core.agent))
        self._core.agent = ""

    def remove(self, agent: str, session: str | None = None) -> None:
        """Remove any agent of a session, as the person at this machine; what waits for it is not kept."""
        self._ask(asks.remove(session or self.session, agent))

    # Messages.

    def send(
        self,
        dst: str | None,
        text: str,
        *,
        kind: Kind | None = None,
        reply_to: Message | None = None,
        conversation: tuple[str, str] | None = None,
        ack: dict[str, Any] | None = None,
        to_all: bool = False,
        message_id: str | None = None,
    ) -> Message:
        """Send a message; it is durable when this returns. `conversation` is an id and its owner.

        Without a `kind`, an answer in somebody else's conversation is a reply, and anything else a user message.
        """
        message = self._core.compose(self.session, self.name, dst, text, kind, reply_to, conversation, message_id)
        self._ask(asks.send(message, ack, to_all=to_all), key=message.id)
        return message

    def reply(self, message: Message, text: str) -> Message | None:
        """Answer a message in its conversation. None, and nothing is sent, where an answer would only make a loop:
        to a reply, to a notice, at the end of a chain, or to a stranger in somebody else's conversation."""
        if not self._core.may_reply(message):
            return None
        return self.send(message.src, text, kind="reply", reply_to=message)

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when none came in time."""
        deadline = time.monotonic() + timeout if timeout is not None else None
        while not self._core.messages:
            try:
                if not self._read(deadline):
                    return None
            except BusLost:
                self._come_back()
        return self._core.messages.popleft()

    def progress(self, message: Message) -> list[asks.Delivery]:
        """How far a message has come: waiting, delivered or acknowledged, for each receiver."""
        return self._ask(asks.progress(message))

    def confirm(self, message: Message) -> None:
        """Confirm a message whose sender asked for a manual ack."""
        self._write(self._core.confirmation(message))

    # Events.

    def history(self, session: str | None = None, limit: int = 0) -> list[Envelope]:
        return self._ask(asks.history(session or self.session, limit))

    def follow(self, session: str | None = None, *, after: int = 0, follow: bool = True) -> Iterator[Envelope]:
        """The records of a session from a place on; with `follow` it goes on until the session is over.

        It goes on over lost connections and restarts of the bus, within `reconnect_seconds` each.
        """
        place = after
        while True:
            try:
                self._ask(asks.stream(session or self.session, follow=follow, after=place))
                while (envelope := self._next_record())["type"] != "events.end":
                    place = envelope["payload"]["seq"]
                    yield envelope["payload"]
                if not self._core.agent:
                    # The bus ends a connection that was there for this alone.
                    self.close()
                return
            except BusLost:
                self._core.records.clear()
                self._come_back()

    def _next_record(self) -> Envelope:
        while not self._core.records:
            self._read(None)
        return self._core.records.popleft()

    def fileno(self) -> int:
        """For select: readable when something has come."""
        return self._connected().fileno()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._core.forget_connection()

    def __enter__(self) -> BusClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The connection.

    def _ask(self, ask: Ask[T], *, key: str = "") -> T:
        key, src = key or self._core.new_id(), ask.src or self._core.agent or asks.ANONYMOUS
        while True:
            try:
                self._write(self._core.encode(ask, key, src))
                deadline = time.monotonic() + self._timeout
                while not self._core.answered(key):
                    if not self._read(deadline):
                        raise BusLost(f"the bus did not answer {ask.type} within {self._timeout:g} seconds")
                return self._core.answer(key, ask)
            except BusLost:
                if not ask.again:
                    raise
                self._come_back()

    def _write(self, data: bytes) -> None:
        try:
            self._connected().sendall(data)
        except OSError as cause:
            self.close()
            raise BusLost(f"the connection to the bus is gone: {cause.strerror or cause}") from cause

    def _read(self, deadline: float | None) -> bool:
        """Take in what comes next, and confirm what has to be; false when nothing came in time."""
        connected = self._connected()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([connected], [], [], left)[0]:
            return False
        try:
            data = connected.recv(_READ)
        except OSError:
            data = b""
        if not data:
            self.close()
            raise BusLost
        self._core.feed(data)
        if self._core.outgoing:
            self._write(b"".join(self._core.outgoing))
            self._core.outgoing.clear()
        return True

    def _connected(self) -> socket.socket:
        if self._socket is None:
            path = socket_for(self._home, self.session or None)
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                made.connect(str(path))
            except OSError as cause:
                made.close()
                raise no_bus(path, cause) from cause
            self._socket = made
        return self._socket

    def _come_back(self) -> None:
        """Connect again and join again; BusLost when that takes too long."""
        deadline, wait = time.monotonic() + self._reconnect, _FIRST_WAIT
        agent = self._core.agent
        while True:
            try:
                self.close()
                if agent:
                    key, ask = self._core.new_id(), asks.join(self.session, agent, None)
                    self._write(self._core.encode(ask, key, agent))
                    while not self._core.answered(key):
                        if not self._read(time.monotonic() + self._timeout):
                            raise BusLost
                    self._core.answer(key, ask)
                else:
                    self._connected()
                return
            except BusLost:
                if time.monotonic() + wait > deadline:
                    raise
                time.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
