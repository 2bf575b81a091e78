"""Holds by their use cases: what a holder can do with its task, and what it is answered when it no longer holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.claims import claim_next, claim_task
from redkey.services.use_cases.holds import (
    add_artifact,
    block_claim,
    complete_claim,
    complete_claims,
    fail_claim,
    heartbeat_claim,
    plan_claim,
    release_claim,
    report_progress,
    report_usage,
    start_claim,
)
from redkey.services.use_cases.queues import count_tasks, create_queue
from redkey.services.use_cases.tasks import create_task, get_task
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.claims import (
    BatchedCompletion,
    BlockReport,
    Claimed,
    ClaimEnded,
    ClaimNext,
    ClaimNextRequest,
    ClaimRequest,
    Completion,
    Completions,
    FailureReport,
    HolderActivity,
    HolderPlan,
    ModelUsage,
    NewArtifact,
    NewProgress,
    NewUsage,
    NoTasks,
)
from redkey.shapes.queues import NewQueue
from redkey.shapes.tasks import NewTask, Task, TaskQuery
from tests.harness.callers import Callers, with_callers


async def prepare(callers: Callers, *titles: str) -> tuple[str, list[str]]:
    """A queue with a task for each title, and an agent: its id, and the ids of the tasks."""
    await callers.call(create_queue, NewQueue(name="Work"))
    agent = await callers.call(register_card, AgentRegistration(card={"name": "Atlas"}))
    made = [await callers.call(create_task, "work", NewTask(title=title)) for title in titles]
    return agent.agent_id, [task.task_id for task in made]


async def hold(callers: Callers, agent_id: str, task_id: str) -> str:
    claimed = await callers.call(claim_task, task_id, ClaimRequest(agent_id=agent_id))
    assert isinstance(claimed, Claimed)
    return claimed.claim_id


async def task_of(callers: Callers, task_id: str) -> Task:
    task: Task = await callers.call(get_task, task_id, TaskQuery())
    return task


def test_a_holder_starts_plans_extends_and_completes(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id, (task_id,) = await prepare(callers, "Write")
        claimed = await callers.call(claim_next, "work", ClaimNextRequest(agent_id=agent_id))
        assert isinstance(claimed, Claimed)
        assert claimed.task is not None
        assert (claimed.task_id, claimed.task.title) == (task_id, "Write")
        started = await callers.call(start_claim, claimed.claim_id)
        assert (started.status, started.task_id) == ("started", task_id)
        planned = await callers.call(plan_claim, claimed.claim_id, HolderPlan(plan="First this."))
        assert planned.claim_id == claimed.claim_id
        beat = await callers.call(heartbeat_claim, claimed.claim_id, HolderActivity())
        assert beat.lease_expires_at
        added = await callers.call(add_artifact, claimed.claim_id, NewArtifact(name="text", content="Done."))
        assert (added.name, added.version) == ("text", 1)
        done = Completion(output={"words": 1}, summary="Written.", claim_next=ClaimNext("work"))
        ended = await callers.call(complete_claim, claimed.claim_id, done)
        assert isinstance(ended.next, NoTasks)
        task = await task_of(callers, task_id)
        assert (task.state, task.output, task.summary, task.completed_by) == (
            "completed",
            {"words": 1},
            "Written.",
            agent_id,
        )
        assert [artifact.artifact_id for artifact in task.artifacts] == [added.artifact_id]

    with_callers(tmp_path, test)


def test_a_task_that_is_given_back_goes_to_the_next_holder_and_is_closed_to_the_last(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id, (task_id,) = await prepare(callers, "Write")
        first = await hold(callers, agent_id, task_id)
        released = await callers.call(release_claim, first)
        assert (released.status, (await task_of(callers, task_id)).state) == ("released", "available")
        assert await hold(callers, agent_id, task_id) != first
        head = callers.head
        with pytest.raises(Refused) as refused:
            await callers.call(complete_claim, first, Completion())
        assert (refused.value.status, refused.value.code) == (409, "lease_lost")
        assert callers.head == head

    with_callers(tmp_path, test)


def test_a_failure_and_a_block_are_shown_with_their_reasons(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id, (failing, blocked) = await prepare(callers, "Fail", "Block")
        report = FailureReport(reason="No network.", kind="timeout")
        ended: ClaimEnded = await callers.call(fail_claim, await hold(callers, agent_id, failing), report)
        assert ended.task_id == failing
        failure = (await task_of(callers, failing)).failure
        assert failure is not None
        assert (failure.kind, failure.reason) == ("timeout", "No network.")
        stuck = BlockReport(reason="Which guest?", blocker_type="ambiguity")
        await callers.call(block_claim, await hold(callers, agent_id, blocked), stuck)
        task = await task_of(callers, blocked)
        assert task.blocker is not None
        assert (task.state, task.blocker.blocker_type, task.blocker.reason) == ("blocked", "ambiguity", "Which guest?")

    with_callers(tmp_path, test)


def test_each_completion_of_a_batch_has_its_own_answer(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id, tasks = await prepare(callers, "One", "Two")
        claims = [await hold(callers, agent_id, task_id) for task_id in tasks]
        items = tuple(BatchedCompletion(claim_id=claim) for claim in (claims[0], "clm_unknown", claims[1]))
        found = await callers.call(complete_claims, Completions(completions=items))
        assert [result.claim is not None for result in found.items] == [True, False, True]
        assert found.items[1].problem is not None
        assert [(await task_of(callers, task_id)).state for task_id in tasks] == ["completed", "completed"]

    with_callers(tmp_path, test)


def test_another_agent_and_a_reader_may_not_act_on_a_hold(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id, (task_id,) = await prepare(callers, "Write")
        claim_id = await hold(callers, agent_id, task_id)
        other = await callers.call(register_card, AgentRegistration(card={"name": "Boreas"}, issue_key=True))
        with pytest.raises(Refused) as refused:
            await callers.call(start_claim, claim_id, caller=callers.with_key(other.api_key))
        assert (refused.value.status, refused.value.code) == (404, "claim_not_found")
        with pytest.raises(InsufficientScope):
            await callers.call(heartbeat_claim, claim_id, HolderActivity(), caller=callers.caller("read"))
        assert (await task_of(callers, task_id)).state == "claimed"

    with_callers(tmp_path, test)


def test_a_holder_reports_what_it_used_and_how_far_it_is(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id, (task_id,) = await prepare(callers, "Write")
        claim_id = await hold(callers, agent_id, task_id)
        await callers.call(start_claim, claim_id)
        usage = ModelUsage(model="a-model", cost_usd=0.25, input_tokens=100, output_tokens=10)
        spent = [await callers.call(report_usage, claim_id, NewUsage(usage=(usage,))) for _ in range(2)]
        assert [one.cost_usd for one in spent] == [0.25, 0.5]
        assert (spent[0].task_id, spent[0].left_usd) == (task_id, None)
        done = await callers.call(report_progress, claim_id, NewProgress(text="Half of it.", percent=50))
        assert (done.recorded, done.task_id) == (True, task_id)
        soon = await callers.call(report_progress, claim_id, NewProgress(percent=51))
        assert soon.recorded or (soon.reason, bool(soon.retry_after_seconds)) == ("too_often", True)
        shown = (await task_of(callers, task_id)).progress
        assert shown is not None
        assert shown.text == "Half of it." or soon.recorded
        counts = await callers.call(count_tasks, "work")
        assert {state: number for state, number in counts.tasks.items() if number} == {"working": 1}
        await callers.call(complete_claim, claim_id, Completion())
        head = callers.head
        for use, report in ((report_usage, NewUsage(usage=(usage,))), (report_progress, NewProgress(percent=99))):
            with pytest.raises(Refused) as failed:
                await callers.call(use, claim_id, report)
            assert failed.value.status == 409
        assert callers.head == head

    with_callers(tmp_path, test)


@pytest.mark.parametrize("report", [NewProgress(), NewProgress(text="  ")])
def test_progress_says_something(tmp_path: Path, report: NewProgress) -> None:
    async def test(callers: Callers) -> None:
        agent_id, (task_id,) = await prepare(callers, "Write")
        claim_id = await hold(callers, agent_id, task_id)
        with pytest.raises(Refused) as failed:
            await callers.call(report_progress, claim_id, report)
        assert (failed.value.code, failed.value.pointer) == ("progress_empty", "/text")

    with_callers(tmp_path, test)
