"""A bus with both faces in a thread of this process, with limits of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redkey.bus.limits import BusLimits
from redkey.bus.standalone import StandaloneBus
from tests.http.hosting import hosted


class ServedBus(StandaloneBus):
    """A running bus, as its callers by HTTP find it."""

    url: str

    def __init__(self, home: Path, limits: BusLimits) -> None:
        self.failures: list[BaseException] = []
        super().__init__(home, self.failures.append, limits=limits)
        self.token = (home / "token").read_text().strip()

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await super().start()

    def forget_old(self) -> None:
        """Do what the bus does once an hour."""
        asyncio.run_coroutine_threadsafe(self.home_bus.bus.forget_old(), self._loop).result(60)


@contextmanager
def served_bus(home: Path, limits: BusLimits) -> Iterator[ServedBus]:
    """Serve a bus for the block."""
    bus = ServedBus(home, limits)
    with hosted(bus) as bus.url:
        yield bus
    assert bus.failures == []
