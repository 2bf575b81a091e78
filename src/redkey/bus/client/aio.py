"""The asynchronous client: the same requests and the same core as the blocking one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
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


class AsyncBusClient(ClientState):
    """The asynchronous `BusClient`; several tasks may use one client at once."""

    def __init__(
        self, home: Path | str | None = None, *, timeout: float = 30.0, reconnect_seconds: float = 30.0
    ) -> None:
        super().__init__(home, timeout=timeout, reconnect_seconds=reconnect_seconds)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._lock = asyncio.Lock()

    # Sessions and agents.

    async def sessions(self) -> list[requests.SessionInfo]:
        return await self._ask(requests.sessions())

    async def create_session(self, name: str | None = None) -> str:
        return await self._ask(requests.create_session(name))

    async def open_session(self, name: str = MAIN) -> str:
        """Return the open session with a name; create it if there is none."""
        return await self._ask(requests.open_session(name))

    async def close_session(self, session: str) -> None:
        await self._ask(requests.close_session(session))

    async def agents(self, session: str | None = None) -> list[requests.AgentInfo]:
        return await self._ask(requests.agents(session or self.session))

    async def join(self, session: str, agent: str, name: str | None = None) -> None:
        """Join a session as an agent; its waiting messages arrive from now on."""
        # Set before the request, because waiting messages follow right after the reply.
        before, self._core.agent = self._core.agent, agent
        try:
            await self._ask(requests.join(session, agent, name))
        except BaseException:
            self._core.agent = before
            raise
        self.session, self.name = session, name

    async def rename(self, name: str) -> None:
        await self._ask(requests.rename(self.session, self._core.agent, name))
        self.name = name

    async def leave(self) -> None:
        """Leave the session for good; messages that wait are deleted."""
        await self._ask(requests.leave(self.session, self._core.agent))
        self._core.agent = ""

    async def remove(self, agent: str, session: str | None = None) -> None:
        """Remove any agent of a session, as the person at this machine; messages that wait for it are deleted."""
        await self._ask(requests.remove(session or self.session, agent))

    # Messages.

    async def send(
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
        await self._ask(requests.send(message, ack, to_all=to_all), key=message.id)
        return message

    async def reply(self, message: Message, text: str) -> Message | None:
        """Answer a message in its conversation. Send nothing and return None if an answer would make a loop: to a
        reply, to a notice, at the end of a chain, or to a follow-up by another agent than the owner."""
        if not self._core.may_reply(message):
            return None
        return await self.send(message.src, text, kind="reply", reply_to=message)

    async def receive(self) -> Message:
        """Wait for the next message."""
        while not self._core.messages:
            await self._more()
        return self._core.messages.popleft()

    async def progress(self, message: Message) -> list[requests.Delivery]:
        """The state of a message for each receiver: waiting, delivered or acknowledged."""
        return await self._ask(requests.progress(message))

    async def confirm(self, message: Message) -> None:
        """Confirm a message whose sender asked for a manual ack."""
        await self._write(self._core.confirmation(message))

    async def event(self) -> Envelope:
        """Wait for the next event of the session other than a message."""
        while not self._core.events:
            await self._more()
        return self._core.events.popleft()

    # Events.

    async def history(self, session: str | None = None, limit: int = 0) -> list[Envelope]:
        return await self._ask(requests.history(session or self.session, limit))

    async def follow(
        self, session: str | None = None, *, after: int = 0, follow: bool = True
    ) -> AsyncIterator[Envelope]:
        """Yield the records of a session from a position on; with `follow`, until the session is closed.

        It survives lost connections and restarts of the bus, if each is over within `reconnect_seconds`.
        """
        place = after
        while True:
            try:
                await self._ask(requests.stream(session or self.session, follow=follow, after=place))
                while (envelope := await self._next_record())["type"] != "events.end":
                    place = envelope["payload"]["seq"]
                    yield envelope["payload"]
                if not self._core.agent:
                    # The bus closes a connection that was used for this stream only.
                    await self.close()
                return
            except BusLost:
                self._core.records.clear()
                await self._reconnect_and_join()

    async def _next_record(self) -> Envelope:
        while not self._core.records:
            await self._wait()
        return self._core.records.popleft()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await self._reading
            self._reading = None
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None
        self._core.forget_connection()

    async def __aenter__(self) -> AsyncBusClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # The connection.

    async def _ask(self, request: ClientRequest[T], *, key: str = "") -> T:
        key = key or self._core.new_id()
        src = request.src or self._core.agent or requests.ANONYMOUS
        while True:
            try:
                await self._write(self._core.encode(request, key, src))
                async with asyncio.timeout(self._timeout):
                    while not self._core.answered(key):
                        await self._wait()
                return self._core.answer(key, request)
            except TimeoutError:
                raise BusLost(f"the bus did not answer {request.type} within {self._timeout:g} seconds") from None
            except BusLost:
                if not request.again:
                    raise
                await self._reconnect_and_join()

    async def _write(self, data: bytes) -> None:
        writer = self._writer or await self._connect()
        try:
            writer.write(data)
            await writer.drain()
        except OSError as cause:
            await self.close()
            raise BusLost(f"the connection to the bus was lost: {cause.strerror or cause}") from cause

    async def _more(self) -> None:
        """Wait until data has arrived; reconnect as often as needed."""
        try:
            await self._wait()
        except BusLost:
            await self._reconnect_and_join()

    async def _wait(self) -> None:
        """Wait until data has arrived; raise BusLost if the connection ends before."""
        if self._reading is None:
            await self._connect()
        reading = self._reading
        if reading is None or reading.done():
            raise BusLost
        self._changed.clear()
        waiting = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((waiting, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if reading.done() and not self._changed.is_set():
            raise BusLost

    async def _connect(self) -> asyncio.StreamWriter:
        path = socket_for(self._home, self.session or None)
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError as cause:
            raise no_bus(path, cause) from cause
        self._writer = writer
        self._reading = asyncio.create_task(self._read(reader, writer))
        return writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_READ):
                self._core.feed(data)
                if self._core.outgoing:
                    writer.write(b"".join(self._core.outgoing))
                    self._core.outgoing.clear()
                self._changed.set()

    async def _reconnect_and_join(self) -> None:
        """Reconnect and join again; raise BusLost if that takes too long."""
        async with self._lock:
            if self._reading is not None and not self._reading.done():
                return
            loop = asyncio.get_running_loop()
            deadline, wait = loop.time() + self._reconnect, _FIRST_WAIT
            while True:
                try:
                    await self.close()
                    await self._connect()
                    if self._core.agent and self.session:
                        await self._rejoin()
                    return
                except BusLost:
                    if loop.time() + wait > deadline:
                        raise
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, _LONGEST_WAIT)

    async def _rejoin(self) -> None:
        key, request = self._core.new_id(), requests.join(self.session, self._core.agent, None)
        await self._write(self._core.encode(request, key, self._core.agent))
        while not self._core.answered(key):
            await self._wait()
        self._core.answer(key, request)
