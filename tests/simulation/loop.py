"""An event loop whose time is made up: when nothing is ready, it is the time of the next timer at once.

Work for other threads runs in the loop's own, a drawn while later. So one seed gives one run, and hours pass in the
time that the work itself takes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from random import Random
from typing import Any


class Standstill(AssertionError):
    """Nothing is ready and nothing ever will be: somebody waits for what cannot come."""


class _Jump(selectors.SelectSelector):
    """Waits for nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Standstill
        self.now += max(0.0, timeout)
        return []


class SimLoop(asyncio.SelectorEventLoop):
    """A loop of simulated time."""

    def __init__(self, random: Random) -> None:
        self._jump = _Jump()
        self._random = random
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as cause:
                future.set_exception(cause)

        self.call_later(self._random.uniform(0.0001, 0.05), run)
        return future
