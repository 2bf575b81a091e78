"""Fibers: plain code that waits on the loop, while the loop goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from redkey import fibers


class Gate:
    """Work for a thread, which ends when the gate is opened."""

    def __init__(self) -> None:
        self.begun, self.opened, self.ended = threading.Event(), threading.Event(), threading.Event()

    def work(self) -> str:
        self.begun.set()
        assert self.opened.wait(60)
        self.ended.set()
        return threading.current_thread().name

    async def is_begun(self) -> None:
        await asyncio.to_thread(self.begun.wait, 60)


@pytest.fixture
def threads() -> Iterator[fibers.Threads]:
    with ThreadPoolExecutor(4, thread_name_prefix="beside") as pool:
        yield fibers.Threads(pool)


def run(main: object) -> None:
    async def whole() -> None:
        fibers.run_tasks_in_fibers(asyncio.get_running_loop())
        await asyncio.create_task(main())  # type: ignore[operator]

    asyncio.run(whole())


def test_a_task_that_waits_beside_lets_others_run(threads: fibers.Threads) -> None:
    async def main() -> None:
        gate = Gate()

        def plain() -> str:
            # Deep inside of plain calls.
            return threads.beside(gate.work)

        async def ask() -> str:
            return plain()

        asked = asyncio.create_task(ask())
        await gate.is_begun()
        assert not asked.done()
        gate.opened.set()
        assert (await asked).startswith("beside")
        assert threads.held_up == 0

    run(main)


def test_a_callback_goes_on_in_a_task_and_what_it_raises_is_raised_there(threads: fibers.Threads) -> None:
    async def main() -> None:
        gate, seen = Gate(), list[str]()

        def work(text: str) -> str:
            seen.append("begun")
            threads.beside(gate.work)
            seen.append(text)
            raise KeyError(text)

        left = fibers.run(work, "over")
        assert seen == ["begun"]
        task = asyncio.create_task(left)
        gate.opened.set()
        with pytest.raises(KeyError, match="over"):
            await task
        assert seen == ["begun", "over"]
        # What never waits is over at once.
        assert fibers.run(len, "four") == 4

    run(main)


def test_a_coroutine_that_work_gives_is_awaited_too(threads: fibers.Threads) -> None:
    async def main() -> None:
        async def further() -> str:
            await asyncio.sleep(0)
            return threads.beside(lambda: "further")

        def work() -> object:
            threads.beside(lambda: None)
            return further()

        assert await fibers.run(work) == "further"

    run(main)


def test_a_cancelled_task_leaves_only_when_the_thread_is_done_with_what_it_uses(threads: fibers.Threads) -> None:
    async def main() -> None:
        gate, left = Gate(), asyncio.Event()

        async def ask() -> None:
            try:
                threads.beside(gate.work)
            finally:
                assert gate.ended.is_set()
                left.set()

        asked = asyncio.create_task(ask())
        await gate.is_begun()
        asked.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not left.is_set()
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert left.is_set()

    run(main)


def test_turns_go_to_one_fiber_at_a_time_for_each_name(threads: fibers.Threads) -> None:
    async def main() -> None:
        turns, gate, seen = fibers.Turns(), Gate(), list[str]()

        async def take(name: str, mark: str, gate: Gate | None) -> None:
            with turns.of(name) as is_alone:
                assert is_alone
                seen.append(f"{mark} in")
                if gate is not None:
                    threads.beside(gate.work)
                seen.append(f"{mark} out")

        first = asyncio.create_task(take("a", "first", gate))
        second = asyncio.create_task(take("a", "second", None))
        other = asyncio.create_task(take("b", "other", None))
        await gate.is_begun()
        await other
        assert seen == ["first in", "other in", "other out"]
        gate.opened.set()
        await asyncio.gather(first, second)
        assert seen[3:] == ["first out", "second in", "second out"]

    run(main)


def test_outside_of_fibers_work_is_done_at_once_and_counted_on_the_loop(threads: fibers.Threads) -> None:
    assert threads.beside(lambda: 1) == 1
    assert threads.held_up == 0

    async def main() -> int:
        # No task factory: this task is no fiber.
        return threads.beside(lambda: 2)

    assert asyncio.run(main()) == 2
    assert threads.held_up == 1
