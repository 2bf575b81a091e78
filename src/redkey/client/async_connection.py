"""The connection of the async client: does what flows ask for, by links and httpx2, on the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from redkey.client.async_links import AsyncLinks
from redkey.client.connection import PIECE_BYTES, broken, client_options, plain_address, timeout
from redkey.client.flow import OPENED, Answer, Broken, Emit, Flow, Flowing, Open, Pause, Send, call
from redkey.client.operation import AsyncPages, Steps
from redkey.client.plain import plain_body
from redkey.client.policy import Policy
from redkey.client.request import Request
from redkey.client.settings import Settings
from redkey.errors import ClientError

T = TypeVar("T")


class AsyncConnection:
    """Sends, waits and reads for one async client."""

    def __init__(self, settings: Settings, policy: Policy, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        options = client_options(settings, policy)
        address = plain_address(settings, options, transport)
        self._links = AsyncLinks(address, settings.api_key) if address is not None else None
        if transport is None and settings.uds is not None:
            transport = httpx2.AsyncHTTPTransport(uds=settings.uds, verify=False, limits=options["limits"])
        self.settings = settings
        self._http = httpx2.AsyncClient(transport=transport, **options)
        self._key = {"authorization": f"Bearer {settings.api_key}"}

    async def close(self) -> None:
        await self._http.aclose()
        if self._links is not None:
            await self._links.close()

    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow asks for until it has its result."""
        told: Any = None
        while True:
            try:
                effect = flow.send(told)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(effect, Pause):
                await asyncio.sleep(effect.seconds)
                told = None
            else:
                told = await self._send(effect)

    async def emit(self, flow: Flow[None]) -> AsyncGenerator[Any, None]:
        """What a flow hands on; the stream is closed when the caller has enough."""
        opened, told = _Opened(), None
        try:
            while True:
                try:
                    effect = flow.send(told)
                except StopIteration:
                    return
                told = None
                if isinstance(effect, Emit):
                    yield effect.value
                elif isinstance(effect, Pause):
                    await opened.close()
                    await asyncio.sleep(effect.seconds)
                elif isinstance(effect, Open):
                    told = await self._open(effect.sending, opened)
                else:
                    told = await opened.read()
        finally:
            await opened.close()

    def _request(self, sending: Send) -> httpx2.Request:
        return self._http.build_request(
            sending.method,
            sending.path,
            params=sending.query,
            headers={**sending.headers, **({} if sending.public else self._key)},
            content=_pieces(sending.body) if isinstance(sending.body, Path) else sending.body,
            timeout=timeout(sending),
        )

    async def _send(self, sending: Send) -> Answer | Broken:
        if self._links is not None and (body := plain_body(sending)) is not None:
            return await self._links.send(sending, body)
        try:
            found = await self._http.send(self._request(sending))
        except (httpx2.TransportError, httpx2.DecodingError) as failure:
            return broken(failure)
        return Answer(found.status_code, found.headers, found.content)

    async def _open(self, sending: Send, opened: _Opened) -> Any:
        await opened.close()
        try:
            found = await self._http.send(self._request(sending), stream=True)
            if found.is_success:
                opened.take(found)
                return OPENED
            try:
                return Answer(found.status_code, found.headers, await found.aread())
            finally:
                await found.aclose()
        except (httpx2.TransportError, httpx2.DecodingError) as failure:
            return broken(failure)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece
    finally:
        file.close()


class _Opened:
    """The answer that is being read, if any."""

    def __init__(self) -> None:
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    def take(self, response: httpx2.Response) -> None:
        self._response, self._chunks = response, response.aiter_bytes()

    async def read(self) -> bytes | Broken:
        try:
            return await anext(self._chunks, b"") if self._chunks is not None else b""
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError) as failure:
            return broken(failure)

    async def close(self) -> None:
        if self._response is not None:
            await self._response.aclose()
        self._response = self._chunks = None


class AsyncSender:
    """Sends what resources build, by one policy, when it is awaited."""

    def __init__(self, connection: AsyncConnection, policy: Policy) -> None:
        self.connection, self.policy = connection, policy

    async def send(self, request: Request[T]) -> T:
        return await self.connection.run(call(request, self.policy))

    async def take(self, steps: Steps[T]) -> T:
        go_on: Callable[[], Request[Any]] = partial(next, steps)
        while True:
            try:
                request = go_on()
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                go_on = partial(steps.send, await self.send(request))
            except ClientError as error:
                go_on = partial(steps.throw, error)

    def pages(self, request: Request[Any]) -> AsyncPages[Any]:
        return AsyncPages(self.send, request)

    def stream(self, flowing: Flowing[T]) -> AsyncGenerator[T, None]:
        return self.connection.emit(flowing.begin(self.policy))
