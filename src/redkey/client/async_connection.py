"""The connection of the async client: performs the effects of flows on the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from redkey.client.async_links import AsyncLinks
from redkey.client.connection import find_certificates
from redkey.client.flow import Answer, Broken, Emit, Ended, Flow, Flowing, Open, Pause, Send, Steps, advance, call, take
from redkey.client.operation import AsyncPages
from redkey.client.plain import find_address, plain_body
from redkey.client.policy import Policy
from redkey.client.request import Request
from redkey.client.settings import Settings
from redkey.shapes.tasks import Task

if TYPE_CHECKING:
    import httpx2

    from redkey.client.async_carrier import AsyncCarrier

T = TypeVar("T")


class AsyncConnection:
    """Performs the effects of flows for one async client."""

    def __init__(self, settings: Settings, policy: Policy, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.settings, self._policy, self._tls = settings, policy, find_certificates(settings)
        self._is_closed = False
        self._carrier: AsyncCarrier | None = None
        self._links: AsyncLinks | None = None
        if transport is not None:
            # The caller chose the transport of all requests.
            self._carrier = self._new_carrier(transport)
        elif (address := find_address(settings, self._tls)) is not None:
            self._links = AsyncLinks(address, settings)

    async def close(self) -> None:
        self._is_closed = True
        if self._carrier is not None:
            await self._carrier.close()
        if self._links is not None:
            await self._links.close()

    async def run(self, flow: Flow[T]) -> T:
        """Perform the effects of a flow until it has a result."""
        result_of_effect: Any = None
        while not isinstance(effect := advance(flow, result_of_effect), Ended):
            if isinstance(effect, Pause):
                await asyncio.sleep(effect.seconds)
                result_of_effect = None
            else:
                result_of_effect = await self._send(effect)
        result: T = effect.value
        return result

    async def emit(self, flow: Flow[None]) -> AsyncGenerator[Any, None]:
        """Yield the values that a flow emits; closes the stream when the caller leaves the loop."""
        from redkey.client.async_carrier import AsyncOpened

        opened, result_of_effect = AsyncOpened(), None
        try:
            while True:
                effect, result_of_effect = advance(flow, result_of_effect), None
                if isinstance(effect, Ended):
                    return
                if isinstance(effect, Emit):
                    yield effect.value
                elif isinstance(effect, Pause):
                    await opened.close()
                    await asyncio.sleep(effect.seconds)
                elif isinstance(effect, Open):
                    result_of_effect = await self._get_carrier().open(effect.sending, opened)
                elif isinstance(effect, Send):
                    result_of_effect = await self._send(effect)
                else:
                    result_of_effect = await opened.read()
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
    """Sends the requests that resources build, with one policy, when awaited."""

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

    async def wait(self, task_ids: Sequence[str], timeout: float | None) -> list[Task]:
        """Return the tasks once all of them have ended."""
        from redkey.client.endings import ended, in_order

        ended_tasks: list[Task] = []
        async with aclosing(self.stream(ended(task_ids))) as stream:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    async for task in stream:
                        ended_tasks.append(task)
        return in_order(task_ids, ended_tasks, timeout)

    async def result(self, task_id: str, timeout: float | None) -> Any:
        """Return the output of a task once the task has ended."""
        from redkey.client.endings import output_of

        return output_of((await self.wait([task_id], timeout))[0])
