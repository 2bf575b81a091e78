"""Waiting for tasks: for one result, for many ends, with a limit; and batches of any size."""

from __future__ import annotations

import asyncio
import threading

import pytest

from redkey.client import AsyncRedKey, Claimed, Invalid, RedKey, TimedOut, WorkFailed
from redkey.client.resources import tasks as resource
from tests.client.conftest import Place


def begin(rk: RedKey) -> str:
    """A queue, and an agent that may claim from it."""
    rk.queues.create("podcast")
    return rk.agents.register(card={"name": "Ada", "version": "1"}).agent_id


def claim(rk: RedKey, agent: str) -> str:
    found = rk.queues.claim_next("podcast", agent, wait=30)
    assert isinstance(found, Claimed)
    return found.claim_id


def test_a_created_task_gives_its_result(rk: RedKey) -> None:
    agent = begin(rk)
    created = rk.tasks.create("podcast", title="Add", input={"a": 1})
    worker = threading.Thread(target=lambda: rk.claims.complete(claim(rk, agent), output={"sum": 3}))
    worker.start()
    assert created.result(timeout=60) == {"sum": 3}
    worker.join()
    assert created.result() == {"sum": 3}, "it may be asked for again"


def test_a_failed_and_a_cancelled_task_say_why(rk: RedKey) -> None:
    agent = begin(rk)
    failed, cancelled = (rk.tasks.create("podcast", title=title) for title in ("Add", "Other"))
    rk.claims.fail(claim(rk, agent), "no figures")
    rk.tasks.cancel(cancelled.task_id)
    with pytest.raises(WorkFailed, match=r"\(Add\) failed \(error\): no figures"):
        failed.result()
    with pytest.raises(WorkFailed, match="cancelled"):
        cancelled.result()


def test_waiting_takes_no_notice_of_attempts_that_are_followed_by_others(rk: RedKey) -> None:
    agent = begin(rk)
    created = rk.tasks.create("podcast", title="Add", retry={"maxAttempts": 2})

    def work() -> None:
        rk.claims.fail(claim(rk, agent), "first")
        rk.claims.complete(claim(rk, agent), output=2)

    worker = threading.Thread(target=work)
    worker.start()
    assert created.result(timeout=60) == 2
    worker.join()


def test_wait_gives_the_tasks_in_the_order_that_was_asked_for(rk: RedKey) -> None:
    agent = begin(rk)
    ids = [rk.tasks.create("podcast", title=f"Task {number}").task_id for number in range(3)]
    for number in range(3):
        rk.claims.complete(claim(rk, agent), output=number)
    assert [task.output for task in rk.tasks.wait([*reversed(ids), ids[0]])] == [2, 1, 0, 0]
    assert [task.task_id for task in rk.tasks.as_ended(ids)] == ids
    assert rk.tasks.wait([]) == []


def test_wait_ends_when_its_time_is_over(rk: RedKey) -> None:
    begin(rk)
    created = rk.tasks.create("podcast", title="Add")
    with pytest.raises(TimedOut, match=r"1 of 1 tasks have not ended after 0\.2 s"):
        rk.tasks.wait([created.task_id], timeout=0.2)


def test_the_async_client_waits_alike(rk: RedKey, place: Place) -> None:
    agent = begin(rk)

    async def main() -> None:
        async with AsyncRedKey(place.url, place.key) as other:
            created = await other.tasks.create("podcast", title="Add")
            with pytest.raises(TimedOut):
                await created.result(timeout=0.2)
            waiting = asyncio.create_task(other.tasks.wait([created.task_id], timeout=60))
            await asyncio.to_thread(lambda: rk.claims.complete(claim(rk, agent), output=7))
            assert [task.output for task in await waiting] == [7]

    asyncio.run(main())


def test_a_batch_of_any_size_is_split(rk: RedKey, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(rk)
    monkeypatch.setattr(resource, "BATCH_LIMIT", 2)
    found = rk.with_options(idempotency_key="mine").tasks.create_many("podcast", [{"title": f"T{n}"} for n in range(5)])
    again = rk.with_options(idempotency_key="mine").tasks.create_many("podcast", [{"title": f"T{n}"} for n in range(5)])
    ids = [item.task.task_id for item in found.items if item.task is not None]
    assert len(set(ids)) == 5
    assert [item.task.task_id for item in again.items if item.task is not None] == ids, "one key, one batch"
    assert [rk.tasks.get(one).title for one in ids] == ["T0", "T1", "T2", "T3", "T4"]


def test_a_batch_is_split_by_its_bytes(rk: RedKey) -> None:
    begin(rk)
    large = [{"title": "T", "input": "x" * 60_000} for _ in range(30)]
    assert len(rk.tasks.create_many("podcast", large).items) == 30


def test_a_refused_part_says_how_many_came_before(rk: RedKey, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(rk)
    monkeypatch.setattr(resource, "BATCH_LIMIT", 2)
    with pytest.raises(Invalid) as refused:
        rk.tasks.create_many("podcast", [{"title": "A"}, {"title": "B"}, {"title": 7}])
    assert refused.value.__notes__ == ["The first 2 of 3 tasks were sent before the error."]
    assert "/tasks/0/title" in str(refused.value)
