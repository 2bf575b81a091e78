"""Commits in doubt and writer threads: which callers are answered what, and when, on a store across a network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from redkey.errors import CommitInDoubt, StoreFailed
from redkey.services import commit_path
from redkey.services.outcome import Outcome
from redkey.stores.clock import SystemClock
from redkey.stores.memory.network import Network, NetworkStore, Weather
from tests.conformance.stores.checker import check_topic
from tests.harness.desk import CountedIds
from tests.harness.office import Office, claimed_task

SECONDS = 60


class Doubted(NetworkStore):
    """A store whose next commits end in doubt, as set up, and whose doubts are resolved when the test allows it."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.doubts: list[str] = []
        self._planned: dict[str, str] = {}
        self._ending = threading.Lock()
        self.may_resolve = threading.Event()
        self.entered = threading.Event()

    @contextmanager
    def write(self, topic: str, *, wait: bool = True) -> Iterator[Any]:
        if self.doubts:
            self._planned[topic] = self.doubts.pop(0)
            self.entered.set()
        with super().write(topic, wait=wait) as unit:
            yield unit

    def _end(self, topic: str, unit: Any, *, lost: bool, late: bool) -> None:
        outcome = self._planned.pop(topic, "")
        # One commit at a time has the weather that was planned for it.
        with self._ending:
            self._network.weather = Weather(done_commit=outcome == "committed")
            super()._end(topic, unit, lost=lost or outcome == "failed", late=late)

    def resolve(self, doubt: Any) -> Any:
        if not self.may_resolve.is_set():
            raise StoreFailed("there is no way to the database")
        return super().resolve(doubt)


def doubted(test: Callable[[Office, Doubted], Awaitable[None]]) -> Callable[[], None]:
    """Run a test with an office over such a store."""

    def run() -> None:
        async def whole() -> None:
            store = Doubted(Network(SystemClock(), Random(1)))
            office = await Office(store).begin()
            await asyncio.wait_for(test(office, store), SECONDS)
            store.may_resolve.set()
            await asyncio.wait_for(office.coordinator.stop(), SECONDS)
            check_topic(store, office.topic)
            assert office.fatal == []
            store.close()

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("outcome", ["committed", "failed"])
def test_a_request_in_doubt_is_answered_when_the_doubt_is_resolved(outcome: str) -> None:
    @doubted
    async def test(office: Office, store: Doubted) -> None:
        before = office.head
        store.doubts = [outcome]
        asked = office.ask(office.new_task(), idem="a" * 32, body="b" * 16)
        await until(lambda: store.entered.is_set() and office.coordinator._writers.busy)
        later = office.ask(office.new_task())
        # The workspace is closed; another one goes on.
        other = await Office(store, CountedIds(9)).begin()
        assert await other.task()
        assert not asked.done()
        assert not later.done()
        store.may_resolve.set()
        assert (await asked).records
        assert (await later).records
        assert office.head == before + 2 * len((await asked).records)
        again = await office.do(office.new_task(), idem="c" * 32, body="b" * 16)
        assert again.records

    test()


@pytest.mark.parametrize("outcome", ["committed", "failed"])
def test_after_a_while_nobody_waits_and_a_retry_tells_the_truth(outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_path, "DOUBT_SECONDS", 0.05)

    @doubted
    async def test(office: Office, store: Doubted) -> None:
        command, before = office.new_task(), office.head
        store.doubts = [outcome]
        with pytest.raises(CommitInDoubt) as late:
            await office.do(command, idem="a" * 32, body="b" * 16)
        assert late.value.code == "commit_in_doubt"
        # From now on new requests are refused at once.
        with pytest.raises(CommitInDoubt):
            await office.do(office.new_task())
        assert office.head - before == (0 if outcome == "failed" else office.head - before)
        store.may_resolve.set()
        await until(lambda: not office.coordinator._doubtful)
        told = await office.do(command, idem="a" * 32, body="b" * 16)
        assert told.repeated == (outcome == "committed")
        assert len(told.records) == office.head - before

    test()


def test_what_has_begun_is_not_withdrawn() -> None:
    """The caller leaves while its unit runs: the request is recorded, and its retry is the same one."""

    @doubted
    async def test(office: Office, store: Doubted) -> None:
        command = office.new_task()
        store.doubts = ["committed"]
        asked = office.ask(command, idem="a" * 32, body="b" * 16)
        await until(store.entered.is_set)
        asked.cancel()
        retry = office.ask(command, idem="a" * 32, body="b" * 16)
        store.may_resolve.set()
        outcome = await retry
        assert isinstance(outcome, Outcome)
        assert outcome.repeated
        assert len(outcome.records) == office.head - outcome.records[0].sequence + 1

    test()


def test_a_task_of_another_server_wakes_one_who_waits_here() -> None:
    async def whole() -> None:
        from redkey.api.stream import frame
        from redkey.services.subscriptions import Subscriptions
        from redkey.services.timers import Timers

        network = Network(SystemClock(), Random(1), weather=Weather(delay_seconds=0.002, notice_seconds=0.005))
        one, two = (Office(NetworkStore(network), CountedIds(lane)) for lane in (1, 2))
        clock = SystemClock()
        background = [
            Timers(office.store, office.coordinator, Subscriptions(office.store, 9, frame), clock, 900, print)
            for office in (one, two)
        ]
        for timers in background:
            timers.start()
        await one.begin()
        two.open(one.topic, one.admin.workspace_id)
        agent_id = await one.agent("ada")
        for _ in range(5):
            waiting = two.wait_for_task(agent_id, SECONDS)
            await until(lambda: two.coordinator.awaited)
            task = await one.task()
            outcome = await asyncio.wait_for(waiting, SECONDS)
            assert claimed_task(outcome) == task
            claimed = outcome.first("task.claimed")
            assert claimed is not None
            await two.complete(claimed.wire["payload"]["claim_id"])
        for timers, office in zip(background, (one, two), strict=True):
            await timers.stop()
            await office.coordinator.stop()
            office.store.close()

    asyncio.run(whole())
