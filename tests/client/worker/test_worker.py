"""Workers against a real server: how handlers end, and what the ledger says of it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from redkey.client import (
    AsyncContext,
    AsyncRedKey,
    Block,
    CallMisused,
    Context,
    Done,
    Fail,
    NotFound,
    RedKey,
    Release,
    Retry,
    Unauthorized,
)
from redkey.client.worker.outputs import share_out
from tests.client.conftest import Place
from tests.client.worker.crew import PATIENCE_SECONDS, Running, task, until, working
from tests.harness.secret_samples import with_checksum

# The shortest lease, so that a waiting claim is soon answered when the test ends.
LEASE = 5


def test_five_lines_are_a_worker(rk: RedKey) -> None:
    @rk.worker(queue="podcast", roles=["researcher"], lease_seconds=LEASE)
    def research(ctx: Context) -> dict[str, Any]:
        return {"facts": [ctx.input["guestName"]]}

    with working(rk) as run:
        until(rk, "queue.created")
        made = task(rk, required_roles=["researcher"], input={"guestName": "Piers"})
        until(rk, "task.complete", made)
    found = rk.tasks.get(made)
    assert found.output == {"facts": ["Piers"]}
    assert [event.type for event in rk.tasks.events(made)] == [
        "task.created",
        "task.available",
        "task.claim_attempted",
        "task.claimed",
        "task.started",
        "task.complete",
    ]
    assert (run.tally.claimed, run.tally.completed) == (1, 1)
    # Who was made for the run alone does not stay.
    assert [agent.active for agent in rk.agents.list()] == [False]


def test_how_a_handler_ends_is_how_the_task_ends(rk: RedKey) -> None:
    tasks = {how: task(rk, input=how) for how in ("fail", "reject", "block", "raise", "done", "nothing", "object")}

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> Any:
        how = ctx.input
        if how == "fail":
            raise Fail("no luck", kind="timeout")
        if how == "reject":
            raise Fail("not ours", kind="rejected")
        if how == "block":
            raise Block("Which guest?", "spec_gap", suggested_resolution="Name one.")
        if how == "raise":
            raise ValueError("boom")
        if how == "done":
            return Done({"n": 1}, summary="Counted.", notes="Fine.", cost_usd=0.5, semantic="pass")
        return object() if how == "object" else None

    with working(rk) as run:
        for how in tasks:
            until(rk, "task.blocked" if how == "block" else "task.failed,task.complete", tasks[how])
    shown = {how: rk.tasks.get(task_id) for how, task_id in tasks.items()}
    assert {how: found.state for how, found in shown.items()} == {
        "fail": "failed",
        "reject": "failed",
        "block": "blocked",
        "raise": "failed",
        "done": "completed",
        "nothing": "completed",
        "object": "failed",
    }
    failures = {how: found.failure for how, found in shown.items() if found.failure is not None}
    assert {how: failure.kind for how, failure in failures.items()} == {
        "fail": "timeout",
        "reject": "rejected",
        "raise": "error",
        "object": "error",
    }
    assert failures["raise"].reason == "ValueError: boom"
    assert "cannot be sent" in failures["object"].reason
    blocker, done = shown["block"].blocker, shown["done"]
    assert blocker is not None
    assert (blocker.blocker_type, blocker.suggested_resolution) == ("spec_gap", "Name one.")
    assert (done.output, done.summary, done.notes) == ({"n": 1}, "Counted.", "Fine.")
    assert (run.tally.failed, run.tally.blocked, run.tally.completed) == (4, 1, 2)


def test_a_handler_that_only_makes_a_coroutine_is_told_how_to_be_async(rk: RedKey) -> None:
    made = task(rk)

    async def answer() -> int:
        return 1

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> Any:
        return answer()

    with working(rk):
        until(rk, "task.failed", made)
    failure = rk.tasks.get(made).failure
    assert failure is not None
    assert "declare it with async def" in failure.reason


def test_a_failed_attempt_is_followed_by_another_while_the_policy_allows(rk: RedKey) -> None:
    made = task(rk, retry=Retry(3))

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> int:
        if ctx.task.attempt < 3:
            raise RuntimeError("again")
        return ctx.task.attempt

    with working(rk) as run:
        until(rk, "task.complete", made)
    assert rk.tasks.get(made).output == 3
    assert (run.tally.failed, run.tally.completed) == (2, 1)


def test_a_secret_in_an_error_does_not_keep_the_task_from_failing(rk: RedKey) -> None:
    made = task(rk)
    secret = with_checksum("ghp_")

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> None:
        raise ValueError(f"bad token {secret}")

    with working(rk):
        until(rk, "task.failed", made)
    failure = rk.tasks.get(made).failure
    assert failure is not None
    assert secret not in failure.reason
    assert "secret_detected" in failure.reason


def test_what_is_returned_fills_the_outputs_that_the_task_must_have(rk: RedKey, tmp_path: Path) -> None:
    made = task(rk, outputs=["brief", "notes", "raw", "file"])
    (tmp_path / "large").write_bytes(b"\0" * 300_000)

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> dict[str, Any]:
        ctx.artifact("raw", b"\x00\x01", media_type="image/png")
        ctx.artifact("file", tmp_path / "large")
        ctx.artifact("extra", "draft", readiness="draft")
        ctx.progress("half way", percent=50)
        ctx.plan(["read", "write"])
        return {"brief": "In words.", "notes": {"n": 1}, "rest": True}

    with working(rk):
        until(rk, "task.complete,task.failed", made)
    found = rk.tasks.get(made)
    assert found.output == {"rest": True}
    artifacts = {one.name: one for one in found.artifacts}
    assert {name: one.media_type for name, one in artifacts.items()} == {
        "raw": "image/png",
        "file": "application/octet-stream",
        "extra": "text/plain",
        "brief": "text/plain",
        "notes": "application/json",
    }
    assert rk.content.get(artifacts["brief"].sha256) == b"In words."
    assert artifacts["file"].bytes == 300_000
    assert found.progress is not None
    assert (found.progress.text, found.progress.percent) == ("half way", 50)


def test_missing_outputs_fail_the_attempt_with_their_names(rk: RedKey) -> None:
    made = task(rk, outputs=["brief", "notes"])

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> str:
        return "one text for two outputs"

    with working(rk):
        until(rk, "task.failed", made)
    failure = rk.tasks.get(made).failure
    assert failure is not None
    assert failure.kind == "verification"
    assert "brief, notes" in failure.reason


@pytest.mark.parametrize(
    ("outputs", "made", "given", "expected"),
    [
        ([], set(), {"a": 1}, ({}, {"a": 1})),
        (["a"], {"a"}, {"a": 1}, ({}, {"a": 1})),
        (["a"], set(), {"a": 1}, ({"a": 1}, None)),
        (["a"], set(), {"a": None, "b": 2}, ({"a": None}, {"b": 2})),
        (["a"], set(), "text", ({"a": "text"}, None)),
        (["a"], set(), {"b": 1}, ({"a": {"b": 1}}, None)),
        (["a", "b"], {"b"}, b"bytes", ({"a": b"bytes"}, None)),
        (["a", "b"], set(), "text", ({}, "text")),
        (["a"], set(), None, ({}, None)),
    ],
)
def test_outputs_are_shared_out_by_name(outputs: list[str], made: set[str], given: Any, expected: Any) -> None:
    assert share_out(outputs, made, given) == expected


def test_async_handlers_have_the_same_context_awaited(place: Place) -> None:
    async def run() -> None:
        async with AsyncRedKey(place.url, place.key) as rk:
            await rk.queues.create("podcast")
            made = await rk.tasks.create("podcast", title="A", outputs=["notes"])
            mine = asyncio.get_running_loop()

            @rk.worker(queue="podcast", lease_seconds=LEASE)
            async def handle(ctx: AsyncContext) -> str:
                assert asyncio.get_running_loop() is mine
                added = await ctx.artifact("notes", {"a": 1})
                await ctx.progress("done soon")
                rk.stop()
                return added.name

            tally = await rk.run()
            assert tally.completed == 1
            assert (await rk.tasks.get(made.task_id)).output == "notes"

    asyncio.run(run())


def test_a_sync_client_runs_async_handlers_on_a_loop_of_their_own(rk: RedKey) -> None:
    tasks = [task(rk, input=number) for number in range(4)]
    together = asyncio.Barrier(4)

    @rk.worker(queue="podcast", lease_seconds=LEASE, concurrency=4)
    async def handle(ctx: AsyncContext) -> int:
        # Only when all four are in hand does any of them go on.
        await asyncio.wait_for(together.wait(), PATIENCE_SECONDS)
        return int(ctx.input)

    with working(rk) as run:
        for made in tasks:
            until(rk, "task.complete", made)
    assert run.tally.completed == 4


def test_a_worker_takes_as_many_tasks_at_once_as_it_was_told(rk: RedKey) -> None:
    tasks = [task(rk) for _ in range(6)]
    lock, most, now_in_hand = threading.Lock(), [0], [0]
    pair = threading.Barrier(2)

    @rk.worker(queue="podcast", lease_seconds=LEASE, concurrency=2)
    def handle(ctx: Context) -> None:
        with lock:
            now_in_hand[0] += 1
            most[0] = max(most[0], now_in_hand[0])
        pair.wait(PATIENCE_SECONDS)
        with lock:
            now_in_hand[0] -= 1

    with working(rk):
        for made in tasks:
            until(rk, "task.complete", made)
    assert most == [2]


def test_a_cancelled_task_is_left_and_nothing_is_told(rk: RedKey) -> None:
    made = task(rk)
    begun, left = threading.Event(), threading.Event()
    seen: list[bool] = []

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    async def handle(ctx: AsyncContext) -> None:
        begun.set()
        try:
            await asyncio.sleep(PATIENCE_SECONDS)
        except asyncio.CancelledError:
            seen.append(ctx.cancelled)
            left.set()
            raise

    with working(rk) as run:
        assert begun.wait(PATIENCE_SECONDS)
        rk.tasks.cancel(made)
        assert left.wait(PATIENCE_SECONDS)
    assert seen == [True]
    assert (run.tally.cancelled, run.tally.lost, run.tally.completed) == (1, 0, 0)
    assert rk.tasks.get(made).state == "cancelled"


def test_a_stop_gives_back_what_a_handler_does_not_finish(rk: RedKey) -> None:
    made = task(rk)
    begun, end = threading.Event(), threading.Event()
    seen: list[bool] = []

    @rk.worker(queue="podcast")
    def handle(ctx: Context) -> str:
        begun.set()
        assert ctx.stopping.wait(PATIENCE_SECONDS)
        seen.append(ctx.lease_lost.wait(PATIENCE_SECONDS))
        end.set()
        return "too late"

    with working(rk, grace_seconds=0.0) as run:
        assert begun.wait(PATIENCE_SECONDS)
    assert end.wait(PATIENCE_SECONDS)
    assert seen == [True]
    found = rk.tasks.get(made)
    assert (found.state, found.output, found.claim) == ("available", None, None)
    assert (run.tally.released, run.tally.lost) == (1, 0)
    assert "task.released" in {event.type for event in rk.tasks.events(made)}


def test_a_stop_lets_handlers_finish_within_the_grace(rk: RedKey) -> None:
    made = task(rk)
    begun = threading.Event()

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> str:
        begun.set()
        ctx.stopping.wait(PATIENCE_SECONDS)
        return "in time"

    with working(rk) as run:
        assert begun.wait(PATIENCE_SECONDS)
    assert rk.tasks.get(made).output == "in time"
    assert (run.tally.completed, run.tally.released) == (1, 0)


def test_a_handler_can_give_its_task_back(rk: RedKey) -> None:
    made = task(rk)

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> None:
        rk.stop()
        raise Release

    with working(rk) as run:
        until(rk, "task.released", made)
    assert run.tally.released == 1
    assert rk.tasks.get(made).state == "available"


def test_a_handler_that_ends_its_thread_ends_the_run_and_gives_back(rk: RedKey) -> None:
    made = task(rk)

    @rk.worker(queue="podcast", lease_seconds=LEASE)
    def handle(ctx: Context) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        rk.run()
    assert rk.tasks.get(made).state == "available"


def test_an_agent_by_name_is_found_again_and_reactivated(rk: RedKey) -> None:
    rk.queues.create("podcast")
    for _ in range(2):

        @rk.worker(queue="podcast", agent="researcher-1", lease_seconds=LEASE)
        def handle(ctx: Context) -> None:
            rk.stop()

        made = task(rk)
        with working(rk):
            until(rk, "task.complete", made)
        rk._workers.clear()
        [agent] = rk.agents.list()
        assert (agent.slug, agent.active) == ("researcher-1", True)
        rk.agents.deactivate(agent.agent_id)


def test_an_agent_by_card_is_registered_once(rk: RedKey) -> None:
    card = {"name": "Research Agent", "version": "1", "skills": [{"id": "web_search", "name": "Search"}]}

    @rk.worker(queue="podcast", agent=card, lease_seconds=LEASE)
    def handle(ctx: Context) -> None:
        rk.stop()

    for _ in range(2):
        made = task(rk, required_capabilities=["web_search"])
        with working(rk):
            until(rk, "task.complete", made)
    assert [agent.slug for agent in rk.agents.list()] == ["research-agent"]


def test_a_key_that_may_not_grant_says_who_can(place: Place, rk: RedKey) -> None:
    rk.queues.create("podcast")
    agent = rk.agents.register(card={"name": "A", "version": "1"}, issue_key=True)
    with RedKey(place.url, agent.api_key) as mine:

        @mine.worker(queue="podcast", roles=["researcher"], agent=agent.agent_id)
        def handle(ctx: Context) -> None: ...

        with pytest.raises(CallMisused) as refused:
            mine.run()
    assert refused.value.code == "missing_role"
    assert f"redkey role grant role_researcher {agent.agent_id}" in refused.value.message


def test_an_agent_key_is_enough_for_an_agent_that_has_its_roles(place: Place, rk: RedKey) -> None:
    rk.roles.create("researcher")
    agent = rk.agents.register(card={"name": "A", "version": "1"}, issue_key=True)
    rk.roles.grant("researcher", agent.agent_id)
    made = task(rk, required_roles=["researcher"])
    with RedKey(place.url, agent.api_key) as mine:

        @mine.worker(queue="podcast", roles=["researcher"], agent=agent.agent_id, lease_seconds=LEASE)
        def handle(ctx: Context) -> None:
            mine.stop()

        assert mine.run().completed == 1
    assert rk.tasks.get(made).state == "completed"


def test_a_key_that_may_not_register_says_what_to_name(place: Place, rk: RedKey) -> None:
    rk.queues.create("podcast")
    agent = rk.agents.register(card={"name": "A", "version": "1"}, issue_key=True)
    with RedKey(place.url, agent.api_key) as mine:

        @mine.worker(queue="podcast")
        def handle(ctx: Context) -> None: ...

        with pytest.raises(CallMisused) as refused:
            mine.run()
    assert refused.value.code == "agent_missing"


def test_what_no_waiting_cures_ends_the_run(place: Place, rk: RedKey) -> None:
    with RedKey(place.url, place.new_key("admin")) as mine:

        @mine.worker(queue="podcast", lease_seconds=LEASE, agent="a")
        def handle(ctx: Context) -> None: ...

        running = Running(mine, 10.0)
        running.thread.start()
        # The worker works under the key of its own agent.
        until(rk, "agent.heartbeat")
        [own] = (key for key in rk.keys.list(place.workspace_id) if key.agent_id)
        rk.keys.revoke(place.workspace_id, own.key_id)
        running.thread.join(PATIENCE_SECONDS)
    assert isinstance(running.error, Unauthorized)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"concurrency": 0}, "concurrency_invalid"),
        ({"lease_seconds": 4}, "invalid_lease"),
        ({"claim": "x"}, "claim_invalid"),
    ],
)
def test_a_worker_that_cannot_work_is_refused_where_it_is_declared(rk: RedKey, options: Any, code: str) -> None:
    with pytest.raises(CallMisused) as refused:
        rk.worker(queue="podcast", **options)(lambda ctx: None)
    assert refused.value.code == code


def test_a_run_without_workers_says_so(rk: RedKey) -> None:
    with pytest.raises(CallMisused, match="no worker"):
        rk.run()


def test_an_agent_that_is_no_name_is_refused(rk: RedKey) -> None:
    @rk.worker(queue="podcast", agent="No Name!")
    def handle(ctx: Context) -> None: ...

    with pytest.raises(CallMisused, match="No Name!"):
        rk.run()


def test_an_agent_id_that_nobody_has_is_not_found(rk: RedKey) -> None:
    @rk.worker(queue="podcast", agent="agt_00000000000000000000000000")
    def handle(ctx: Context) -> None: ...

    with pytest.raises(NotFound):
        rk.run()
