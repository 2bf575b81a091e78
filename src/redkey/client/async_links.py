"""The links of the async client: its open connections for plain requests, on the caller's event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from redkey.client.flow import Answer, Broken, Send
from redkey.client.idle import Idle, give_up
from redkey.client.plain import Address, Reader, Writer
from redkey.client.policy import CONNECT_SECONDS
from redkey.client.settings import Settings

# Seconds to wait for a host's first address before the next one is tried in parallel.
_HEAD_START_SECONDS = 0.25


class AsyncLinks:
    """Sends plain requests to one address, each on its own link."""

    def __init__(self, address: Address, settings: Settings) -> None:
        self._address, self._writer = address, Writer(address, settings)
        self._idle: Idle[AsyncLink] = Idle()

    async def send(self, sending: Send, body: bytes) -> Answer | Broken:
        data = self._writer.write(sending, body)
        link = self._idle.take()
        try:
            if link is None:
                link = await _connect(self._address, min(CONNECT_SECONDS, sending.silence_seconds))
            answer = await link.exchange(data, sending.silence_seconds)
        except BaseException as failure:
            return give_up(link, failure)
        self._idle.give(link)
        return answer

    async def close(self) -> None:
        self._idle.close()
        # The event loop closes sockets in its next turn.
        await asyncio.sleep(0)


class AsyncLink(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self._loop, self._reader = asyncio.get_running_loop(), Reader()
        self._transport: Any = None
        self._answer: asyncio.Future[Answer] | None = None
        self._silence_seconds = 0.0
        self._patience: asyncio.TimerHandle | None = None

    async def exchange(self, data: bytes, silence_seconds: float) -> Answer:
        """Send a request and read the answer; OSError if there is none."""
        if self._transport.is_closing():
            raise ConnectionError("the connection ended before the request")
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answer = answer
        self._silence_seconds = silence_seconds
        self._transport.write(data)
        self._be_patient()
        try:
            return await answer
        finally:
            self._answer = None
            self._stop_waiting()

    @property
    def keeps_open(self) -> bool:
        return self._reader.keeps_open

    def is_alive(self) -> bool:
        """Whether the server has left the connection open."""
        return not self._transport.is_closing()

    def close(self) -> None:
        # All our bytes have been sent, so there is nothing to wait for.
        self._transport.abort()

    def _be_patient(self) -> None:
        self._patience = self._loop.call_later(self._silence_seconds, self._fail, TimeoutError())

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _fail(self, failure: OSError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(failure)

    # The callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            # The server sent bytes without a request: do not use this connection again.
            self.close()
            return
        try:
            answer = self._reader.feed(data)
        except ConnectionError as failure:
            self._fail(failure)
            return
        if answer is not None:
            self._answer.set_result(answer)
        else:
            self._stop_waiting()
            self._be_patient()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is None or self._answer.done():
            return
        if exc is not None:
            self._fail(exc if isinstance(exc, OSError) else ConnectionError(str(exc)))
            return
        try:
            self._answer.set_result(self._reader.end())
        except ConnectionError as failure:
            self._fail(failure)


async def _connect(address: Address, seconds: float) -> AsyncLink:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds):
        if address.uds is not None:
            return (await loop.create_unix_connection(AsyncLink, address.uds))[1]
        options: dict[str, Any] = {}
        if address.tls is not None:
            options = {"ssl": address.tls, "server_hostname": address.host}
        if isinstance(loop, asyncio.BaseEventLoop):
            # Only asyncio's own event loops have this option.
            options["happy_eyeballs_delay"] = _HEAD_START_SECONDS
        return (await loop.create_connection(AsyncLink, address.host, address.port, **options))[1]
