"""The blocking client: for scripts, command lines and agents without an event loop."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from typing import Any, TypeVar

from redkey.bus.client import requests
from redkey.bus.client.core import ClientRequest, ClientState, Envelope
from redkey.bus.client.requests import MAIN
from redkey.bus.home import no_bus, socket_for
from redkey.bus.runtime.events import Kind, Message
from redkey.errors import BusLost

T = TypeVar("T")
_READ = 64 * 1024
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0


class BusClient(ClientState):
    """A connection to a bus, for an agent once it has joined a session.

    A lost connection is opened again within `reconnect_seconds`: the agent joins again, and unanswered requests are
    sent again with the same ids, so nothing takes effect twice.

        with BusClient() as bus:
            bus.join(bus.create_session("talk"), "ann")
            bus.send("bob", "hello")
            print(bus.receive())
    """

    _socket: socket.socket | None = None

    # Sessions and agents.

    def sessions(self) -> list[requests.SessionInfo]:
        return self._ask(requests.sessions())

    def create_session(self, name: str | None = None) -> str:
        return self._ask(requests.create_session(name))

    def open_session(self, name: str = MAIN) -> str:
        """Return the open session with a name; create it if there is none."""
        return self._ask(requests.open_session(name))

    def close_session(self, session: str) -> None:
        self._ask(requests.close_session(session))

    def agents(self, session: str | None = None) -> list[requests.AgentInfo]:
        return self._ask(requests.agents(session or self.session))

    def join(self, session: str, agent: str, name: str | None = None) -> None:
        """Join a session as an agent; its waiting messages arrive from now on."""
        # Set before the request, because waiting messages follow right after the reply.
        before, self._core.agent = self._core.agent, agent
        try:
            self._ask(requests.join(session, agent, name))
        except BaseException:
            self._core.agent = before
            raise
        self.session, self.name = session, name

    def rename(self, name: str) -> None:
        self._ask(requests.rename(self.session, self._core.agent, name))
        self.name = name

    def leave(self) -> None:
        """Leave the session for good; messages that wait are deleted."""
        self._ask(requests.leave(self.session, self._core.agent))
        self._core.agent = ""

    def remove(self, agent: str, session: str | None = None) -> None:
        """Remove any agent of a session, as the person at this machine; messages that wait for it are deleted."""
        self._ask(requests.remove(session or self.session, agent))

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

        Without a `kind`, a message in another agent's conversation is a reply, and any other a user message.
        """
        message = self._core.compose(self.session, self.name, dst, text, kind, reply_to, conversation, message_id)
        self._ask(requests.send(message, ack, to_all=to_all), key=message.id)
        return message

    def reply(self, message: Message, text: str) -> Message | None:
        """Answer a message in its conversation. Send nothing and return None if an answer would make a loop: to a
        reply, to a notice, at the end of a chain, or to a follow-up by another agent than the owner."""
        if not self._core.may_reply(message):
            return None
        return self.send(message.src, text, kind="reply", reply_to=message)

    def receive(self, timeout: float | None = None) -> Message | None:
        """Wait for the next message; None if none arrived in time."""
        deadline = time.monotonic() + timeout if timeout is not None else None
        while not self._core.messages:
            try:
                if not self._read(deadline):
                    return None
            except BusLost:
                self._reconnect_and_join()
        return self._core.messages.popleft()

    def progress(self, message: Message) -> list[requests.Delivery]:
        """The state of a message for each receiver: waiting, delivered or acknowledged."""
        return self._ask(requests.progress(message))

    def confirm(self, message: Message) -> None:
        """Confirm a message whose sender asked for a manual ack."""
        self._write(self._core.confirmation(message))

    # Events.

    def history(self, session: str | None = None, limit: int = 0) -> list[Envelope]:
        return self._ask(requests.history(session or self.session, limit))

    def follow(self, session: str | None = None, *, after: int = 0, follow: bool = True) -> Iterator[Envelope]:
        """Yield the records of a session from a position on; with `follow`, until the session is closed.

        It survives lost connections and restarts of the bus, if each is over within `reconnect_seconds`.
        """
        place = after
        while True:
            try:
                self._ask(requests.stream(session or self.session, follow=follow, after=place))
                while (envelope := self._next_record())["type"] != "events.end":
                    place = envelope["payload"]["seq"]
                    yield envelope["payload"]
                if not self._core.agent:
                    # The bus closes a connection that was used for this stream only.
                    self.close()
                return
            except BusLost:
                self._core.records.clear()
                self._reconnect_and_join()

    def _next_record(self) -> Envelope:
        while not self._core.records:
            self._read(None)
        return self._core.records.popleft()

    def fileno(self) -> int:
        """The file descriptor for select: readable when data has arrived."""
        return self._connected().fileno()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._core.forget_connection()

    def __enter__(self) -> BusClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The connection.

    def _ask(self, request: ClientRequest[T], *, key: str = "") -> T:
        key, src = key or self._core.new_id(), request.src or self._core.agent or requests.ANONYMOUS
        while True:
            try:
                self._write(self._core.encode(request, key, src))
                deadline = time.monotonic() + self._timeout
                while not self._core.answered(key):
                    if not self._read(deadline):
                        raise BusLost(f"the bus did not answer {request.type} within {self._timeout:g} seconds")
                return self._core.answer(key, request)
            except BusLost:
                if not request.again:
                    raise
                self._reconnect_and_join()

    def _write(self, data: bytes) -> None:
        try:
            self._connected().sendall(data)
        except OSError as cause:
            self.close()
            raise BusLost(f"the connection to the bus was lost: {cause.strerror or cause}") from cause

    def _read(self, deadline: float | None) -> bool:
        """Read what arrives next, and send the confirmations; false if nothing arrived in time."""
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
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(str(path))
            except OSError as cause:
                connection.close()
                raise no_bus(path, cause) from cause
            self._socket = connection
        return self._socket

    def _reconnect_and_join(self) -> None:
        """Reconnect and join again; raise BusLost if that takes too long."""
        deadline, wait = time.monotonic() + self._reconnect, _FIRST_WAIT
        agent = self._core.agent
        while True:
            try:
                self.close()
                if agent:
                    key, request = self._core.new_id(), requests.join(self.session, agent, None)
                    self._write(self._core.encode(request, key, agent))
                    while not self._core.answered(key):
                        if not self._read(time.monotonic() + self._timeout):
                            raise BusLost
                    self._core.answer(key, request)
                else:
                    self._connected()
                return
            except BusLost:
                if time.monotonic() + wait > deadline:
                    raise
                time.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
