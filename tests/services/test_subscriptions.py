"""Feeds and their followers: one encoding for all, any place to begin, no gaps, no duplicates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from redkey.api.stream import frame
from redkey.commands.claims import ClaimTask
from redkey.errors import StoreFailed, TooManySubscribers
from redkey.services import subscriptions as module
from redkey.services.subscriptions import Filter, Subscription, Subscriptions
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import QUEUE, CountedIds, HandClock
from tests.harness.office import Office, turns


class Newsroom(Office):
    """An office whose commits are followed."""

    def __init__(self, disk: MemoryDisk | None = None, lane: int = 0) -> None:
        super().__init__(MemoryStore(HandClock(), disk or MemoryDisk()), CountedIds(lane))
        self.subscriptions = Subscriptions(self.store, 5, frame)
        self.coordinator.listen(self.subscriptions.hear)

    def follow(self, after: int | None = None, **wanted: Any) -> Subscription:
        return self.subscriptions.open(self.topic, after, Filter(**wanted))


def in_newsroom(test: Callable[[Newsroom], Awaitable[None]]) -> Callable[[], None]:
    async def whole() -> None:
        office = Newsroom()
        await office.begin()
        await test(office)

    def run() -> None:
        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def ids(data: bytes) -> list[int]:
    return [int(one) for one in re.findall(rb"^id: (\d+)$", data, re.MULTILINE)]


def types(data: bytes) -> list[str]:
    return [one.decode() for one in re.findall(rb"^event: (\S+)$", data, re.MULTILINE)]


def everything(subscription: Subscription) -> bytes:
    taken = b""
    while subscription.behind:
        taken += subscription.take()
    return taken


@in_newsroom
async def test_a_follower_begins_at_the_head_and_sees_what_comes(office: Newsroom) -> None:
    subscription = office.follow()
    assert subscription.take() == b""
    before = office.head
    await office.task()
    assert ids(subscription.take()) == [before + 1, before + 2]
    assert subscription.take() == b""


@in_newsroom
async def test_all_followers_get_the_very_same_bytes(office: Newsroom) -> None:
    one, two = office.follow(), office.follow()
    await office.task()
    first, second = one.take(), two.take()
    assert first is second


@pytest.mark.parametrize("ring", [1, 2, 7, 4096])
def test_whatever_the_ring_holds_every_place_leads_to_the_head(ring: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RING", ring)
    monkeypatch.setattr(module, "PAGE", 3)

    async def whole() -> None:
        office = Newsroom()
        await office.begin()
        live = office.follow()
        start = office.head
        seen = b""
        for _ in range(10):
            await office.task()
            seen += live.take()
        seen += everything(live)
        assert ids(seen) == list(range(start + 1, office.head + 1))
        for after in range(office.head + 1):
            late = office.follow(after)
            assert ids(everything(late)) == list(range(after + 1, office.head + 1))
            late.leave()

    asyncio.run(whole())


@in_newsroom
async def test_commits_beside_the_coordinator_leave_no_gap(office: Newsroom) -> None:
    """Another process, or this one's signing, has written: the next commit that is heard shows it."""
    subscription = office.follow()
    await office.task()
    subscription.take()
    start = office.head
    other = Office(office.store, CountedIds(9)).open(office.topic, office.admin.workspace_id)
    await other.task()
    assert subscription.take() == b""
    await office.task()
    assert ids(subscription.take()) == list(range(start + 1, office.head + 1))
    await other.task()
    office.subscriptions.look()
    assert ids(subscription.take()) == [office.head - 1, office.head]


@in_newsroom
async def test_filters_pass_what_they_name_and_the_cursor_moves_on(office: Newsroom) -> None:
    one, two = await office.agent("one"), await office.agent("two")
    start = office.head
    task_id = await office.task()
    await office.hold(task_id, one)
    await office.do(ClaimTask(task_id, two))
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"types": frozenset({"task.claimed"})}, ["task.claimed"]),
        ({"agent_id": two}, ["task.claim_attempted", "task.claim_missed"]),
        ({"queue_id": "queue_none"}, []),
        ({"workflow_id": "wf_none"}, []),
    ]
    for wanted, expected in cases:
        subscription = office.follow(start, **wanted)
        assert types(everything(subscription)) == expected
        assert subscription.position == office.head
        subscription.leave()
    mine = office.follow(start, queue_id=QUEUE)
    assert len(types(everything(mine))) == office.head - start
    mine.leave()


@in_newsroom
async def test_those_who_wait_are_woken_and_those_who_stop_are_let_go(office: Newsroom) -> None:
    subscription = office.follow()
    waiting = asyncio.ensure_future(subscription.wait(30))
    await turns()
    assert not waiting.done()
    await office.task()
    await asyncio.wait_for(waiting, 60)
    subscription.take()
    again = asyncio.ensure_future(subscription.wait(30))
    await turns()
    office.subscriptions.begin_stop()
    await asyncio.wait_for(again, 60)
    with pytest.raises(TooManySubscribers):
        office.follow()


@in_newsroom
async def test_what_others_wait_for_wakes_nobody_else_and_is_passed_over(office: Newsroom) -> None:
    atlas, boreas = await office.agent("atlas"), await office.agent("boreas")
    mine, theirs, queues = office.follow(agent_id=atlas), office.follow(agent_id=boreas), office.follow(queue_id="x")
    waits = [asyncio.ensure_future(one.wait(30)) for one in (mine, theirs, queues)]
    await turns()
    passed = office.head
    task = await office.task()
    # Nothing yet for any follower; what comes now is for one of them.
    await office.hold(task, atlas)
    await asyncio.wait_for(waits[0], 60)
    assert not waits[1].done()
    assert not waits[2].done()
    assert mine.position == passed + 2
    assert types(mine.take()) == ["task.claim_attempted", "task.claimed"]
    # The others are at the head: what was not for them is not read again.
    head = office.head
    office.subscriptions.begin_stop()
    await asyncio.wait_for(asyncio.gather(*waits), 60)
    assert (theirs.position, queues.position) == (head, head)


@in_newsroom
async def test_a_store_that_cannot_be_read_is_the_trouble_of_those_who_follow_alone(office: Newsroom) -> None:
    follower = office.follow(queue_id="queue_other")
    waiting = asyncio.ensure_future(follower.wait(30))
    await turns()

    def fail(*_: object, **__: object) -> None:
        raise StoreFailed("the disk fails")

    agent = await office.agent("atlas")
    office.store.row = fail  # type: ignore[method-assign, assignment]
    # The working followers are answered, and all those after them.
    task = await asyncio.wait_for(office.task(), 60)
    claim = await asyncio.wait_for(office.hold(task, agent), 60)
    await asyncio.wait_for(office.complete(claim), 60)
    await asyncio.wait_for(waiting, 60)
    with pytest.raises(StoreFailed):
        follower.take()


@in_newsroom
async def test_who_comes_while_others_are_about_to_be_woken_misses_nothing(office: Newsroom) -> None:
    monitor = [office.follow() for _ in range(2)]
    first = asyncio.ensure_future(monitor[0].wait(30))
    await turns()
    feed = next(iter(office.subscriptions._feeds.values()))
    # Woken a little later, as many followers are.
    feed._waking = asyncio.get_running_loop().call_later(30, lambda: None)
    await office.task()
    monitor[1].take()
    second = asyncio.ensure_future(monitor[1].wait(30))
    await turns()
    await office.task()
    feed._waking.cancel()
    feed._wake_due()
    await asyncio.wait_for(asyncio.gather(first, second), 60)
    assert [len(ids(one.take())) for one in monitor] == [4, 2]


@in_newsroom
async def test_waiting_ends_by_itself(office: Newsroom) -> None:
    await office.follow().wait(0.01)


@in_newsroom
async def test_there_are_as_many_followers_as_allowed_and_an_empty_feed_is_forgotten(office: Newsroom) -> None:
    followers = [office.follow() for _ in range(5)]
    with pytest.raises(TooManySubscribers):
        office.follow()
    for one in followers:
        one.leave()
    assert (office.subscriptions.count, office.subscriptions._feeds) == (0, {})


@in_newsroom
async def test_one_delivery_is_bounded(office: Newsroom) -> None:
    subscription = office.follow(0)
    for _ in range(20):
        await asyncio.gather(*(office.task() for _ in range(50)))
    largest = 0
    while subscription.behind:
        largest = max(largest, len(subscription.take()))
    assert largest < module.CHUNK_BYTES + 2048
