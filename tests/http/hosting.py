"""Host an application in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

from redkey.config import Config, Limits
from redkey.http.exchange import Exchange
from redkey.http.host import Host, close, listen, url_of

Answer = Callable[[Exchange], Coroutine[Any, Any, None] | None]


class Application:
    """An application that is one function; `mounts` start and stop with it."""

    def __init__(self, answer: Answer, *mounts: Any) -> None:
        self._answer, self._mounts = answer, mounts

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        return self._answer(exchange)

    async def start(self) -> None:
        for mount in self._mounts:
            await mount.start()

    def begin_stop(self) -> None:
        """Do nothing: no request waits."""

    async def finish_stop(self) -> None:
        for mount in self._mounts:
            await mount.stop()


@contextmanager
def hosted(application: Any, limits: Limits | None = None) -> Iterator[str]:
    """Run a host for the block and return its URL; raise its errors here."""
    config = Config(port=0, limits=limits or Limits(stop_seconds=2))
    sockets = listen(config)
    ready, failures = threading.Event(), []
    host = Host(application, config, ready.set)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(host.serve(sockets))
        except BaseException as error:
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(30)
    try:
        if not failures:
            yield url_of(sockets[0])
    finally:
        host.stop()
        thread.join(30)
        close(sockets)
    if failures:
        raise failures[0]
