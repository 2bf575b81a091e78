"""A bus that runs in a thread of this process: real sockets, a real file, and access to its event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from redkey.bus.home_bus import HomeBus
from redkey.bus.limits import BusLimits
from redkey.bus.runtime.relay import RelayPolicy
from tests.harness.weave import Link, join

T = TypeVar("T")


class Running:
    """A bus in a home directory."""

    def __init__(self, home: Path, limits: BusLimits | None = None, policy: RelayPolicy | None = None) -> None:
        self.home, self._limits, self._policy = home, limits, policy
        self.failures: list[BaseException] = []
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Running:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.home_bus = HomeBus(self.home, self.failures.append, limits=self._limits, policy=self._policy)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.wait(self.home_bus.start())

    def start_and_clean(self) -> None:
        """Start a bus that is expected to fail, and leave no thread behind."""
        try:
            self.start()
        finally:
            if self._thread is not None:
                self._end()

    def stop(self) -> None:
        self.wait(self.home_bus.stop())
        self._end()

    def _end(self) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def inside(self, work: Callable[[], T]) -> T:
        """Run a function in the event loop of the bus."""

        async def run() -> T:
            return work()

        found: T = self.wait(run())
        return found

    def link(self, **options: Any) -> Link:
        return Link(self.home / "coord.sock", **options)

    def session(self, name: str = "talk") -> str:
        with self.link() as link:
            return str(link.ask("session.create", "codex-cli", payload={"name": name})["session"])

    def join(self, session: str, agent: str, name: str | None = None) -> Link:
        return join(self.home / "coord.sock", session, agent, name)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def wait(self, work: Any) -> Any:
        """Await a coroutine in the event loop of the bus."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
