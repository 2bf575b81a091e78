"""Timers: what is due is recorded without any request, also where nothing is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from redkey.api.stream import frame
from redkey.errors import StoreFailed
from redkey.ledger.record import Record
from redkey.reducers.world import SECOND
from redkey.services.subscriptions import Filter, Subscriptions
from redkey.services.timers import Timers
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.memory.network import Network, NetworkStore
from tests.harness.desk import START, CountedIds
from tests.harness.office import Office, turns
from tests.simulation.loop import SimLoop
from tests.simulation.server import Machine, SimClock

IDLE_SECONDS = 900.0


class LoopClock:
    """A machine's clock whose time is the event loop's; its wall clock may be wrong."""

    wrong_seconds = 0

    def wall(self) -> int:
        return START + int((asyncio.get_running_loop().time() + self.wrong_seconds) * SECOND)

    def monotonic(self) -> int:
        return int(asyncio.get_running_loop().time() * SECOND)


class Served(Office):
    """An office with its background."""

    def __init__(self, disk: MemoryDisk | None = None, lane: int = 0, store: MemoryStore | None = None) -> None:
        self.clock = clock = LoopClock()
        super().__init__(store or MemoryStore(clock, disk or MemoryDisk()), CountedIds(lane))
        self.subscriptions = Subscriptions(self.store, 100, frame)
        self.coordinator.listen(self.subscriptions.hear)
        self.timers = Timers(self.store, self.coordinator, self.subscriptions, clock, IDLE_SECONDS, self.fatal.append)

    async def __aenter__(self) -> Served:
        self.timers.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.timers.stop()
        await self.coordinator.stop()
        assert self.fatal == []

    def types(self) -> list[str]:
        records = self.store.read(self.topic, 0, 1000)
        return [record.wire.partition(b'"type":"')[2].partition(b'"')[0].decode() for record in records]


def simulated(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test in simulated time: hours pass at once."""

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: SimLoop(Random(7))) as runner:
            runner.run(test())  # type: ignore[arg-type]

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@simulated
async def test_a_lease_that_runs_out_is_recorded_though_nobody_asks() -> None:
    async with Served() as office:
        await office.begin()
        agent_id, task_id = await office.agent("one"), await office.task()
        await office.hold(task_id, agent_id, 60)
        await asyncio.sleep(59)
        assert "task.lease_expired" not in office.types()
        await asyncio.sleep(2)
        assert office.types().count("task.lease_expired") == 1


@simulated
async def test_time_is_the_ledgers_also_when_the_wall_clock_is_behind_it() -> None:
    async with Served() as office:
        await office.begin()
        agent_id, task_id, other_id = await office.agent("one"), await office.task(), await office.task()
        await office.hold(task_id, agent_id, 60)
        await asyncio.sleep(1)
        office.clock.wrong_seconds = -3600
        await asyncio.sleep(56)
        assert "task.lease_expired" not in office.types()
        # The ledger leans towards the wall clock: a minute may take three seconds longer.
        await asyncio.sleep(7)
        assert office.types().count("task.lease_expired") == 1
        # Nothing is loaded any more: its time still goes on.
        await office.hold(other_id, agent_id, 600)
        for _ in range(2):
            office.coordinator.let_go_idle()
        await asyncio.sleep(640)
        assert office.types().count("task.lease_expired") == 2


@simulated
async def test_whoever_waits_gets_the_task_of_a_lost_lease() -> None:
    async with Served() as office:
        await office.begin()
        one, two = await office.agent("one"), await office.agent("two")
        task_id = await office.task()
        await office.hold(task_id, one, 20)
        waiting = office.wait_for_task(two, 60)
        outcome = await waiting
        claimed = outcome.first("task.claimed")
        assert claimed is not None
        assert claimed.wire["payload"]["agent_id"] == two


@simulated
async def test_deadlines_and_silent_agents_are_recorded() -> None:
    async with Served() as office:
        await office.begin()
        await office.agent("quiet")
        await office.task(deadline_seconds=30)
        await asyncio.sleep(200)
        assert office.types().count("task.failed") == 1
        assert office.types().count("agent.lost") == 1


@simulated
async def test_after_a_restart_nobody_has_to_ask_first() -> None:
    disk = MemoryDisk()
    async with Served(disk) as office:
        await office.begin()
        agent_id, task_id = await office.agent("one"), await office.task()
        await office.hold(task_id, agent_id, 60)
    topic, workspace_id = office.topic, office.admin.workspace_id
    await asyncio.sleep(300)
    async with Served(disk, 1) as again:
        again.open(topic, workspace_id)
        await asyncio.sleep(2)
        assert again.types().count("task.lease_expired") == 1


@simulated
async def test_a_world_that_was_let_go_is_ticked_when_its_time_comes() -> None:
    async with Served() as office:
        await office.begin()
        agent_id, task_id = await office.agent("one"), await office.task()
        await office.hold(task_id, agent_id, 3 * int(IDLE_SECONDS))
        await asyncio.sleep(2.5 * IDLE_SECONDS)
        assert office.coordinator._worlds.get(office.topic) is None
        await asyncio.sleep(IDLE_SECONDS)
        assert office.types().count("task.lease_expired") == 1


class Watched(MemoryStore):
    """Counts how often something looks for commits of other processes."""

    looks = 0

    def look(self) -> None:
        self.looks += 1
        super().look()


@simulated
async def test_others_are_looked_for_only_while_somebody_waits() -> None:
    store = Watched(LoopClock(), MemoryDisk())
    async with Served(store=store) as office:
        await office.begin()
        agent_id = await office.agent("one")
        await asyncio.sleep(5)
        assert store.looks == 0
        await office.wait_for_task(agent_id, 1)
        assert store.looks > 10
        before = store.looks
        await asyncio.sleep(5)
        assert store.looks <= before + 1


@simulated
async def test_what_another_process_commits_wakes_those_who_wait_and_those_who_follow() -> None:
    disk = MemoryDisk()
    async with Served(disk) as one, Served(disk, 1) as other:
        await one.begin()
        other.open(one.topic, one.admin.workspace_id)
        agent_id = await one.agent("one")
        waiting = other.wait_for_task(agent_id, 60)
        subscription = other.subscriptions.open(one.topic, None, Filter())
        await asyncio.sleep(1)
        await one.task()
        assert (await waiting).first("task.claimed") is not None
        await turns()
        await asyncio.sleep(1)
        assert b"event: task.created" in subscription.take()
        subscription.leave()


@simulated
async def test_ledger_time_behind_the_wall_clock_is_tried_again_and_not_all_the_time() -> None:
    async with Served() as office:
        await office.begin()
        agent_id, task_id = await office.agent("one"), await office.task()
        await office.hold(task_id, agent_id, 10)
        ticks: list[Any] = []
        tick = office.coordinator.tick
        office.coordinator.due_topics = lambda *_: [office.topic]  # type: ignore[method-assign]
        office.coordinator.tick = lambda topic: (ticks.append(topic), tick(topic))[1]  # type: ignore[method-assign]
        await asyncio.sleep(5)
        assert 5 <= len(ticks) <= 11


class Away(NetworkStore):
    """A store across a network that cannot be read for a while."""

    is_away = False

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        self._refuse()
        return super().read(topic, after, limit)

    def due(self, now: int, limit: int) -> Sequence[str]:
        self._refuse()
        return super().due(now, limit)

    def _refuse(self) -> None:
        if self.is_away:
            raise StoreFailed("the database cannot be reached now", code="store_unreachable")


@simulated
async def test_an_outage_of_the_database_ends_no_timer_and_news_of_it_are_read_later() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    clock = SimClock(loop, Machine())
    network = Network(clock, Random(1), sleep=loop.sleep_in_thread, later=loop.call_later, now=loop.time)
    away = Away(network)
    async with Served(store=NetworkStore(network)) as one, Served(lane=1, store=away) as other:
        await one.begin()
        other.open(one.topic, one.admin.workspace_id)
        agent_id = await one.agent("one")
        subscription = other.subscriptions.open(one.topic, None, Filter())
        away.is_away = True
        task_id = await one.task()
        # Ticks come four times a second.
        await asyncio.sleep(5)
        assert subscription.take() == b""
        away.is_away = False
        await asyncio.sleep(2)
        assert b"event: task.created" in subscription.take()
        subscription.leave()
        # Time goes on at the server that was cut off.
        await one.hold(task_id, agent_id, 5)
        one.timers._tasks[0].cancel()
        await asyncio.sleep(10)
        assert "task.lease_expired" in one.types()
