"""An event loop whose time is made up: when nothing is ready, it is the time of the next timer at once.

Work for other threads runs in the loop's own, a drawn while later. So one seed gives one run, and hours pass in the
time that the work itself takes. Work for a pool of writer threads has a thread, because it may wait in the middle: it
and the loop take turns, so that only one of them runs at any time, and while it waits made-up time passes.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable
from functools import partial
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


class Ended(BaseException):
    """The run is over, and with it whatever still waits."""


class Fiber:
    """A thread that runs only while the loop waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        # How long it sleeps; None when it has ended.
        self.sleeps: float | None = 0.0
        self.result: Any = None
        self.cause: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Let it run until it sleeps or ends."""
        self._turn.release()
        self._back.acquire()

    def sleep(self, seconds: float) -> None:
        """Called in the thread: let the loop go on meanwhile."""
        self.sleeps = seconds
        self._back.release()
        self._turn.acquire()
        if self._over:
            raise Ended

    def end(self) -> None:
        """Let it unwind from where it sleeps."""
        self._over = True
        self.go_on()
        self._thread.join()

    @property
    def ident(self) -> int | None:
        return self._thread.ident

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self._over:
                self.result = self._work()
        except BaseException as cause:
            self.cause = cause
        self.sleeps = None
        self._back.release()


class SimLoop(asyncio.SelectorEventLoop):
    """A loop of simulated time."""

    def __init__(self, random: Random) -> None:
        self._jump = _Jump()
        self._random = random
        self._fibers: dict[int | None, Fiber] = {}
        super().__init__(self._jump)

    def sleep_in_thread(self, seconds: float) -> None:
        """Let made-up time pass for the thread that calls; on the loop itself nothing can wait."""
        fiber = self._fibers.get(threading.get_ident())
        if fiber is not None:
            fiber.sleep(seconds)

    def end_threads(self) -> None:
        """Let everything unwind that still waits in a thread."""
        for fiber in self._fibers.values():
            fiber.end()
        self._fibers.clear()

    def _resume(self, fiber: Fiber, future: asyncio.Future[Any]) -> None:
        if fiber.ident not in self._fibers:
            return
        fiber.go_on()
        if fiber.sleeps is not None:
            self.call_later(fiber.sleeps, self._resume, fiber, future)
            return
        del self._fibers[fiber.ident]
        if isinstance(fiber.cause, Exception):
            if not future.done():
                future.set_exception(fiber.cause)
        elif fiber.cause is not None:
            raise fiber.cause
        elif not future.done():
            future.set_result(fiber.result)

    def time(self) -> float:
        return self._jump.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.create_future()
        if executor is not None:
            fiber = Fiber(partial(func, *args))
            self._fibers[fiber.ident] = fiber
            self.call_later(self._random.uniform(0.0001, 0.005), self._resume, fiber, future)
            return future

        def run() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as cause:
                future.set_exception(cause)

        self.call_later(self._random.uniform(0.0001, 0.05), run)
        return future
