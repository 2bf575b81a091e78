"""Holds without a handler: kept alive, ended from anywhere, stalled when their holder does nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from redkey.client import (
    AsyncRedKey,
    CallMisused,
    Claimed,
    Context,
    Hold,
    Invalid,
    LeaseLost,
    Missed,
    NoTasks,
    RedKey,
    Retry,
)
from redkey.client.worker import Block
from tests.client.conftest import Place
from tests.client.worker.crew import PATIENCE_SECONDS, task, until, working


def agent(rk: RedKey, name: str) -> str:
    return rk.agents.register(card={"name": name, "description": "Holds.", "version": "1"}).agent_id


def held(found: object) -> Hold[object]:
    assert isinstance(found, Hold), found
    return found


def test_a_hold_lives_by_heartbeats_and_is_ended_once_from_any_thread(rk: RedKey) -> None:
    ada, bob = agent(rk, "ada"), agent(rk, "bob")
    made = task(rk, outputs=["packet"])
    assert isinstance(rk.hold("podcast", ada, lease_seconds=5), Hold)
    hold = held(rk.hold_task(made, ada, lease_seconds=5))
    assert isinstance(rk.hold("podcast", bob), NoTasks)
    assert isinstance(rk.hold_task(made, bob), Missed)
    hold.start()
    # Only a heartbeat can have extended it.
    until(rk, "task.lease_extended", made)
    with pytest.raises(Invalid) as refused:
        hold.complete({"facts": 1})
    assert refused.value.code == "missing_artifact"
    assert not hold.ended
    hold.artifact("packet", "five facts")
    ender = threading.Thread(target=hold.complete, args=({"facts": 5},))
    ender.start()
    ender.join(PATIENCE_SECONDS)
    assert hold.ended
    assert rk.tasks.get(made).state == "completed"
    with pytest.raises(CallMisused):
        hold.release()


def test_an_async_hold_is_kept_by_a_thread_too(place: Place, rk: RedKey) -> None:
    ada, made = agent(rk, "ada"), task(rk)

    async def work() -> None:
        async with AsyncRedKey(place.url, place.key) as mine:
            hold = await mine.hold("podcast", ada, lease_seconds=5)
            assert isinstance(hold, Hold)
            await hold.progress("half", percent=50)
            await asyncio.to_thread(until, rk, "task.lease_extended", made)
            assert (await hold.release()).status == "released"

    asyncio.run(work())
    assert rk.tasks.get(made).state == "available"


def test_a_hold_whose_holder_does_nothing_stalls_and_is_taken_up_again(rk: RedKey) -> None:
    ada = agent(rk, "ada")
    made = task(rk)
    rk.queues.update("podcast", idle_seconds=1)
    hold = held(rk.hold_task(made, ada, lease_seconds=5))
    stalled = until(rk, "task.stalled", made)
    assert stalled.data["idleSeconds"] >= 1
    hold.touch()
    until(rk, "task.lease_extended", made, stalled.sequence)
    hold.complete()
    assert rk.tasks.get(made).state == "completed"


def test_another_agent_may_have_what_stalled(rk: RedKey) -> None:
    ada, bob = agent(rk, "ada"), agent(rk, "bob")
    made = task(rk)
    rk.queues.update("podcast", idle_seconds=1)
    hold = held(rk.hold_task(made, ada, lease_seconds=5))
    until(rk, "task.stalled", made)
    assert isinstance(rk.tasks.claim(made, bob), Claimed)
    with pytest.raises(LeaseLost):
        hold.complete()
    assert hold.lost
    assert not hold.ended


def test_the_answer_to_a_block_comes_with_the_next_claim(rk: RedKey) -> None:
    made = task(rk)
    answers: list[str] = []

    @rk.worker(queue="podcast")
    def handle(ctx: Context) -> str:
        answers.append(ctx.answer)
        if not ctx.answer:
            raise Block("Which friend?", "ambiguity")
        return ctx.answer

    with working(rk):
        until(rk, "task.blocked", made)
        rk.tasks.unblock(made, answer="Piers")
        until(rk, "task.complete", made)
    assert answers == ["", "Piers"]


def test_a_claim_that_is_asked_for_again_under_its_key_has_the_answer_of_its_moment(rk: RedKey) -> None:
    ada = agent(rk, "ada")
    made = task(rk, retry=Retry(max_attempts=2))
    first = rk.with_options(idempotency_key="first").queues.claim_next("podcast", ada)
    assert isinstance(first, Claimed)
    assert first.task is not None
    rk.claims.block(first.claim_id, "Which one?", blocker_type="ambiguity")
    rk.tasks.unblock(made, answer="The second.")
    second = rk.with_options(idempotency_key="second").queues.claim_next("podcast", ada)
    assert isinstance(second, Claimed)
    assert second.task is not None
    assert (first.task.answer, second.task.answer) == ("", "The second.")
    rk.claims.fail(second.claim_id, "It broke.")
    # A new attempt is the same task, and what was answered still holds.
    third = rk.queues.claim_next("podcast", ada)
    assert isinstance(third, Claimed)
    assert third.task is not None
    assert (third.task.attempt, third.task.answer) == (2, "The second.")
    assert rk.with_options(idempotency_key="first").queues.claim_next("podcast", ada) == first
    assert rk.with_options(idempotency_key="second").queues.claim_next("podcast", ada) == second
