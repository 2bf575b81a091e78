"""The connection of the async client: does what flows ask for, by links and a carrier, on the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, TypeVar

from redkey.client.async_links import AsyncLinks
from redkey.client.connection import find_certificates
from redkey.client.flow import Answer, Broken, Emit, Ended, Flow, Flowing, Open, Pause, Send, Steps, advance, call, take
from redkey.client.operation import AsyncPages
from redkey.client.plain import find_address, plain_body
from redkey.client.policy import Policy
from redkey.client.request import Request
from redkey.client.settings import Settings

if TYPE_CHECKING:
    import httpx2

    from redkey.client.async_carrier import AsyncCarrier

T = TypeVar("T")


class AsyncConnection:
    """Sends, waits and reads for one async client."""

    def __init__(self, settings: Settings, policy: Policy, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.settings, self._policy, self._tls = settings, policy, find_certificates(settings)
        self._is_closed = False
        self._carrier: AsyncCarrier | None = None
        self._links: AsyncLinks | None = None
        if transport is not None:
            # The caller has chosen how everything goes.
            self._carrier = self._new_carrier(transport)
        elif (address := find_address(settings, self._tls)) is not None:
            self._links = AsyncLinks(address, settings.api_key)

    async def close(self) -> None:
        self._is_closed = True
        if self._carrier is not None:
            await self._carrier.close()
        if self._links is not None:
            await self._links.close()

    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow asks for until it has its result."""
        told: Any = None
        while not isinstance(effect := advance(flow, told), Ended):
            if isinstance(effect, Pause):
                await asyncio.sleep(effect.seconds)
                told = None
            else:
                told = await self._send(effect)
        result: T = effect.value
        return result

    async def emit(self, flow: Flow[None]) -> AsyncGenerator[Any, None]:
        """What a flow hands on; the stream is closed when the caller has enough."""
        from redkey.client.async_carrier import AsyncOpened

        opened, told = AsyncOpened(), None
        try:
            while True:
                effect, told = advance(flow, told), None
                if isinstance(effect, Ended):
                    return
                if isinstance(effect, Emit):
                    yield effect.value
                elif isinstance(effect, Pause):
                    await opened.close()
                    await asyncio.sleep(effect.seconds)
                elif isinstance(effect, Open):
                    told = await self._get_carrier().open(effect.sending, opened)
                else:
                    told = await opened.read()
        finally:
            await opened.close()

    async def _send(self, sending: Send) -> Answer | Broken:
        if self._links is not None and (body := plain_body(sending)) is not None:
            return await self._links.send(sending, body)
        return await self._get_carrier().send(sending)

    def _get_carrier(self) -> AsyncCarrier:
        if self._carrier is None:
            if self._is_closed:
                raise RuntimeError("the client has been closed")
            self._carrier = self._new_carrier(None)
        return self._carrier

    def _new_carrier(self, transport: httpx2.AsyncBaseTransport | None) -> AsyncCarrier:
        from redkey.client.async_carrier import AsyncCarrier

        return AsyncCarrier(self.settings, self._policy, self._tls, transport)


class AsyncSender:
    """Sends what resources build, by one policy, when it is awaited."""

    def __init__(self, connection: AsyncConnection, policy: Policy) -> None:
        self.connection, self.policy = connection, policy

    async def send(self, request: Request[T]) -> T:
        return await self.connection.run(call(request, self.policy))

    async def take(self, steps: Steps[T]) -> T:
        return await self.connection.run(take(steps, self.policy))

    def pages(self, request: Request[Any]) -> AsyncPages[Any]:
        return AsyncPages(self.send, request)

    def stream(self, flowing: Flowing[T]) -> AsyncGenerator[T, None]:
        return self.connection.emit(flowing.begin(self.policy))
