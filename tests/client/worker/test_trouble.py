"""Workers in trouble: heartbeats that fail, answers that are lost, servers that go and come back."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import httpx2
import pytest

from redkey.client import AsyncContext, AsyncRedKey, CallMisused, Context, RedKey
from tests.client.conftest import Place
from tests.client.worker.crew import PATIENCE_SECONDS, task, until, working
from tests.harness.ports import lasting_port
from tests.harness.server import Server


class Failing(httpx2.HTTPTransport):
    """Loses requests or their answers, as it is told."""

    def __init__(self, lose_request: Callable[[str], bool], lose_answer: Callable[[str], bool]) -> None:
        super().__init__(verify=False)
        self._lose_request, self._lose_answer = lose_request, lose_answer

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._lose_request(request.url.path):
            raise httpx2.ConnectError("the network is gone", request=request)
        response = super().handle_request(request)
        if self._lose_answer(request.url.path):
            response.read()
            response.close()
            raise httpx2.ReadError("the answer is lost", request=request)
        return response


def never(path: str) -> bool:
    return False


def test_heartbeats_that_fail_are_no_lost_lease(place: Place, rk: RedKey, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    made, failed = task(rk), threading.Semaphore(0)

    def lose(path: str) -> bool:
        if path.endswith("/heartbeat") and "/claims/" in path:
            failed.release()
            return True
        return False

    with RedKey(place.url, place.key, transport=Failing(lose, never)) as mine:

        @mine.worker(queue="podcast", lease_seconds=6)
        def handle(ctx: Context) -> bool:
            for _ in range(2):
                assert failed.acquire(timeout=PATIENCE_SECONDS)
            # The server is silent, and the lease still lasts.
            ctx.check()
            return ctx.lease_lost.is_set()

        with working(mine) as run:
            until(rk, "task.complete,task.failed", made)
    assert rk.tasks.get(made).output is False
    assert (run.tally.completed, run.tally.lost) == (1, 0)
    assert "the claim lasts" in caplog.text


def test_when_nothing_is_heard_for_a_whole_lease_the_worker_knows_without_being_told(place: Place, rk: RedKey) -> None:
    made = task(rk)
    seen: list[bool] = []

    def lose(path: str) -> bool:
        return path.endswith("/heartbeat") and "/claims/" in path

    with RedKey(place.url, place.key, transport=Failing(lose, never)) as mine:

        @mine.worker(queue="podcast", lease_seconds=5)
        def handle(ctx: Context) -> str:
            seen.append(ctx.lease_lost.wait(PATIENCE_SECONDS))
            return "nobody else came"

        with working(mine) as run:
            until(rk, "task.complete,task.failed", made)
    assert seen == [True]
    # Nobody took the task meanwhile: the server gave the hold back, on the record, and took the completion.
    assert rk.tasks.get(made).output == "nobody else came"
    assert run.tally.completed == 1


def test_a_claim_whose_answer_was_lost_is_not_lost(place: Place, rk: RedKey) -> None:
    lost = threading.Semaphore(6)

    def lose(path: str) -> bool:
        # More often than one call is tried: the slot asks again under the same key.
        return path.endswith("/claim-next") and lost.acquire(blocking=False)

    made = task(rk)
    with RedKey(place.url, place.key, transport=Failing(never, lose), max_retries=1) as mine:

        @mine.worker(queue="podcast")
        def handle(ctx: Context) -> str:
            return "once"

        with working(mine) as run:
            until(rk, "task.complete", made)
    types = [event.type for event in rk.tasks.events(made)]
    assert types.count("task.claimed") == 1
    assert "task.lease_expired" not in types
    assert run.tally.claimed == 1


def test_a_completion_whose_answer_was_lost_is_told_once(place: Place, rk: RedKey) -> None:
    lost = threading.Semaphore(2)

    def lose(path: str) -> bool:
        return path.endswith("/complete") and lost.acquire(blocking=False)

    made = task(rk)
    with RedKey(place.url, place.key, transport=Failing(never, lose), max_retries=0) as mine:

        @mine.worker(queue="podcast")
        def handle(ctx: Context) -> str:
            mine.stop()
            return "once"

        tally = mine.run()
    assert (tally.completed, tally.lost) == (1, 0)
    assert [event.type for event in rk.tasks.events(made)].count("task.complete") == 1


def test_a_claim_that_is_won_while_the_worker_stops_is_given_back(place: Place, rk: RedKey) -> None:
    made = task(rk)

    class Stopping(httpx2.HTTPTransport):
        """Asks for the stop in the moment in which a claim is answered."""

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            response = super().handle_request(request)
            if request.url.path.endswith("/claim-next"):
                mine.stop()
            return response

    with RedKey(place.url, place.key, transport=Stopping(verify=False)) as mine:

        @mine.worker(queue="podcast")
        def handle(ctx: Context) -> None:
            raise AssertionError("nothing is begun after a stop")

        tally = mine.run()
    assert (tally.released, tally.claimed) == (1, 0)
    assert rk.tasks.get(made).state == "available"


def test_a_run_that_is_cancelled_gives_back_what_it_holds(place: Place, rk: RedKey) -> None:
    made = task(rk)

    async def main() -> None:
        async with AsyncRedKey(place.url, place.key) as mine:
            begun = asyncio.Event()

            @mine.worker(queue="podcast")
            async def handle(ctx: AsyncContext) -> None:
                begun.set()
                await asyncio.sleep(PATIENCE_SECONDS)

            running = asyncio.ensure_future(mine.run(grace_seconds=0))
            await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(main())
    assert rk.tasks.get(made).state == "available"


def test_an_async_transport_cannot_carry_a_worker(place: Place) -> None:
    async def main() -> None:
        transport = httpx2.AsyncHTTPTransport(verify=False)
        async with AsyncRedKey(place.url, place.key, transport=transport) as mine:

            @mine.worker(queue="podcast")
            async def handle(ctx: AsyncContext) -> None: ...

            await mine.run()

    with pytest.raises(CallMisused) as refused:
        asyncio.run(main())
    assert refused.value.code == "transport_unusable"


def test_a_worker_outlives_a_restart_of_the_server_with_its_work_in_hand(start: Callable[..., Server]) -> None:
    server = start("--port", str(lasting_port()))
    begun, go_on = threading.Event(), threading.Event()
    with RedKey(server.url, server.key) as rk:
        first = task(rk)

        @rk.worker(queue="podcast", lease_seconds=30)
        def handle(ctx: Context) -> str:
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS)
            return "kept"

        with working(rk) as run:
            assert begun.wait(PATIENCE_SECONDS)
            server.stop()
            go_on.set()
            start("--port", server.url.rpartition(":")[2])
            until(rk, "task.complete", first)
            second = task(rk)
            until(rk, "task.complete", second)
        assert rk.tasks.get(first).output == "kept"
        assert (run.tally.completed, run.tally.lost) == (2, 0)


def test_a_worker_works_over_a_unix_socket(place: Place, rk: RedKey) -> None:
    made = task(rk)
    with RedKey(place.unix, place.key) as mine:

        @mine.worker(queue="podcast")
        def handle(ctx: Context) -> str:
            mine.stop()
            return "over a socket"

        assert mine.run().completed == 1
    assert rk.tasks.get(made).output == "over a socket"
