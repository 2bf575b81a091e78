"""Fibers: plain functions that may wait on the event loop without blocking it.

Use cases read rows in plain functions: on SQLite that takes microseconds. Across a network a read takes milliseconds,
or seconds during a failover, and the loop serves all callers. So with such a store, requests, tasks and callbacks run
in fibers (greenlets). `beside` runs work in a thread: called in a fiber on the loop, it suspends the fiber until the
thread is done, and the loop continues with others; called anywhere else, it runs the work at once.

What this means for the code: between two lines of a plain function that reads the store, other code of the loop may
have run, as at an `await`. State that is shared on the loop must be valid at every read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutine
from types import CoroutineType, coroutine
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

try:
    from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

    class _Fiber(greenlet):  # type: ignore[misc]
        """Plain code that can be suspended; its parent is the code that drives it."""

    _HAS_FIBERS = True
except ImportError:
    # It is installed with the driver of PostgreSQL. No other store needs it: all work then runs at once.
    _HAS_FIBERS = False


class Threads:
    """The threads that run work for fibers, and how often there was no fiber to wait in."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        # How often work ran on the loop itself, because it was called outside of fibers: it blocked all callers.
        self.held_up = 0
        # Called each time this happens: tests check where it was.
        self.on_held_up: Callable[[], None] = lambda: None

    def beside(self, work: Callable[[], T]) -> T:
        """Return the result of some work, run in a thread while the loop continues."""
        fiber = _current()
        if fiber is not None:
            waiting = asyncio.get_running_loop().run_in_executor(self._executor, work)
            return cast(T, fiber.parent.switch(_Wait(waiting)))
        if is_on_loop():
            self.held_up += 1
            self.on_held_up()
        return work()


class _Wait:
    """A future that plain code in a fiber waits for, passed to the code that drives the fiber."""

    __slots__ = ("future",)

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future


class Turns:
    """A lock for each name, among the fibers of a loop."""

    def __init__(self) -> None:
        self._taken: dict[str, asyncio.Future[None]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[bool]:
        """Wait for the lock. False outside of fibers, where waiting is not possible, if the lock is taken."""
        while (taken := self._taken.get(name)) is not None:
            fiber = _current()
            if fiber is None:
                yield False
                return
            fiber.parent.switch(_Wait(taken))
        if not is_on_loop():
            yield True
            return
        turn = self._taken[name] = asyncio.get_running_loop().create_future()
        try:
            yield True
        finally:
            del self._taken[name]
            turn.set_result(None)


def run(work: Callable[P, Any], *arguments: P.args, **named: P.kwargs) -> Any:
    """Run some work in a fiber and return its result; if it has to wait, return a coroutine of that.

    The work may also return a coroutine itself: then the returned coroutine awaits it.
    """
    if not _HAS_FIBERS:
        return work(*arguments, **named)
    fiber = _new_fiber(partial(work, *arguments, **named))
    first = fiber.switch()
    return first if fiber.dead else _finish(fiber, first)


def start(work: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> None:
    """Run some work in a fiber: at once until it has to wait, the rest in a task."""
    left = run(work, *arguments, **named)
    if isinstance(left, CoroutineType):
        task = asyncio.get_running_loop().create_task(left)
        # The loop holds only a weak reference, so the task could be collected.
        _started.add(task)
        task.add_done_callback(_started.discard)


_started: set[asyncio.Task[Any]] = set()


def run_tasks_in_fibers(loop: asyncio.AbstractEventLoop) -> None:
    """Run each task of a loop in a fiber of its own from now on."""
    if _HAS_FIBERS:
        loop.set_task_factory(_new_task)


def _new_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T] | Generator[Any, None, T], **named: Any
) -> asyncio.Task[T]:
    return asyncio.Task(_in_fiber(cast("Coroutine[Any, Any, T]", work)), loop=loop, **named)


async def _in_fiber(work: Coroutine[Any, Any, T]) -> T:
    """A coroutine whose steps all run in one fiber."""
    fiber = _new_fiber(partial(_steps, work))
    first = fiber.switch()
    return cast(T, first if fiber.dead else await _drive(fiber, first))


def _steps(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine inside its fiber; pass what it awaits to the driver."""
    fiber: Any = getcurrent()
    given: Any = None
    failure: BaseException | None = None
    while True:
        try:
            awaited = work.send(given) if failure is None else work.throw(failure)
        except StopIteration as end:
            return cast(T, end.value)
        given, failure = None, None
        try:
            given = fiber.parent.switch(awaited)
        except BaseException as thrown:
            failure = thrown


async def _finish(fiber: Any, awaited: Any) -> Any:
    result = await _drive(fiber, awaited)
    return await result if iscoroutine(result) else result


@coroutine
def _drive(fiber: Any, awaited: Any) -> Generator[Any, Any, Any]:
    """Resume a fiber after each of its waits, until its end; return its result."""
    while not fiber.dead:
        given: Any = None
        failure: BaseException | None = None
        try:
            given = (yield from _settled(awaited.future)) if type(awaited) is _Wait else (yield awaited)
        except BaseException as thrown:
            failure = thrown
        # Fibers may be driven inside others.
        fiber.parent = getcurrent()
        awaited = fiber.switch(given) if failure is None else fiber.throw(failure)
    return awaited


def _settled(future: asyncio.Future[T]) -> Generator[Any, Any, T]:
    """Wait until a future is done and return its result. A cancellation takes effect only after the thread's work."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            yield from asyncio.shield(future).__await__()
        except asyncio.CancelledError as thrown:
            cancelled = thrown
        except BaseException:
            if not future.done():
                raise
    if cancelled is not None:
        raise cancelled
    return future.result()


def _new_fiber(work: Callable[[], Any]) -> Any:
    fiber: Any = _Fiber(work)
    fiber.gr_context = getcurrent().gr_context
    return fiber


def _current() -> Any:
    """Return the fiber that runs here; None outside of fibers."""
    if not _HAS_FIBERS:
        return None
    found = getcurrent()
    return found if isinstance(found, _Fiber) else None


def is_on_loop() -> bool:
    """True on the thread of a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
