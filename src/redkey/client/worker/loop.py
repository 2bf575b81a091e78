"""Async handlers: on the caller's event loop or on their own loop, and how their contexts call the server.

Only handlers run on the loop. Threads send claims, heartbeats and verdicts, so a handler that blocks the loop delays
only other handlers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from redkey.client.connection import SyncSender
from redkey.client.flow import Steps
from redkey.client.request import Request
from redkey.client.worker.declared import Handler
from redkey.client.worker.lease import Lease
from redkey.client.worker.verdict import Fail
from redkey.errors import WorkInterrupted

T = TypeVar("T")


class ThreadedSender:
    """Sends requests in a thread, awaited on a loop."""

    def __init__(self, sender: SyncSender, threads: concurrent.futures.Executor) -> None:
        self._sender, self._threads = sender, threads

    async def send(self, request: Request[T]) -> T:
        return await self._aside(lambda: self._sender.send(request))

    async def take(self, steps: Steps[T]) -> T:
        return await self._aside(lambda: self._sender.take(steps))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class HandlerLoop:
    """The loop of async handlers: the given loop, or a thread's own loop that starts with the first call."""

    def __init__(self, given: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = given
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def call(self, handler: Handler, context: Any, lease: Lease) -> Any:
        """Run a handler to its end, from another thread; cancel it when its hold ends."""
        loop = self._running()

        async def guarded() -> Any:
            task = asyncio.current_task()

            def cancel() -> None:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(task.cancel)  # type: ignore[union-attr]

            lease.watch(cancel)
            return await handler(context)

        try:
            return asyncio.run_coroutine_threadsafe(guarded(), loop).result()
        except concurrent.futures.CancelledError:
            if lease.end is None:
                raise Fail("The handler was cancelled from within.") from None
            raise WorkInterrupted("The handler was cancelled.", code=lease.end) from None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="redkey-handlers", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End the thread, if there is one, and everything on its loop."""
        if self._thread is None or self._loop is None:
            return
        with suppress(concurrent.futures.TimeoutError):
            asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop).result(1.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)
        if not self._thread.is_alive():
            self._loop.close()


async def _end_tasks() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
