"""Pauses between attempts: by the task's policy, else the workspace's, and the same in every fold."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.commands.claims import FailClaim
from redkey.commands.decision import Refused
from redkey.commands.policies import SetPolicy
from redkey.commands.registry import CreateQueue
from redkey.commands.tasks import CancelTask, CreateTask, RetryTask
from redkey.ledger import content
from redkey.readmodel.explain import explain
from redkey.reducers.retrying import RetryDelay, RetryPolicy, pause_nanoseconds, retry_delay
from redkey.reducers.world import SECOND
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.runs import RunDesk, plan_of, step
from tests.harness.snapshot import snapshot

TEN_SECONDS = RetryDelay(10_000)


def fail(desk: Desk, task: str, agent: str) -> None:
    desk.do(FailClaim(desk.hold(task, agent), "error"))


def delayed(desk: Desk, **retry: int) -> str:
    """Create a task with its own retry policy."""
    structure: dict[str, Any] = {"max_attempts": 3, "retry": retry}
    task_id, pinned = "task_" + desk.ids.ulid(), content.structure(structure)
    command = CreateTask(
        task_id, QUEUE, ref_of(task_id), max_attempts=3, structure=structure, structure_ref=content.ref(pinned)
    )
    desk.do(command, contents=[pinned])
    return task_id


def test_another_attempt_opens_after_its_pause_and_the_pause_grows(desk: Desk) -> None:
    agent, task = desk.agent("ada"), delayed(desk, delay_ms=10_000)
    fail(desk, task, agent)
    assert (desk.state(task), desk.world.tasks[task].attempt) == ("created", 2)
    reason = explain(desk.world, desk.world.tasks[task]).reasons[0]
    assert (reason.code, reason.next.action) == ("retry_pause", "wait")
    assert desk.tick(9.9) == []
    assert [one.wire["type"] for one in desk.tick(0.2)] == ["task.available"]
    fail(desk, task, agent)
    desk.tick(19)
    assert desk.state(task) == "created"
    desk.tick(2)
    assert desk.state(task) == "available"


def test_a_pause_survives_a_restart(desk: Desk) -> None:
    agent, task = desk.agent("ada"), delayed(desk, delay_ms=10_000)
    fail(desk, task, agent)
    desk.reload()
    desk.tick(5)
    assert desk.state(task) == "created"
    desk.reload()
    desk.tick(6)
    assert desk.state(task) == "available"


def test_the_policy_of_the_workspace_is_the_default_of_every_task(desk: Desk) -> None:
    desk.do(SetPolicy(retry=RetryPolicy(2, TEN_SECONDS)))
    agent, task = desk.agent("ada"), desk.task()
    fail(desk, task, agent)
    assert (desk.state(task), desk.world.tasks[task].attempt) == ("created", 2)
    desk.tick(11)
    fail(desk, task, agent)
    assert desk.state(task) == "failed"


def test_a_task_and_a_queue_override_the_policy_of_the_workspace(desk: Desk) -> None:
    desk.do(SetPolicy(retry=RetryPolicy(2, TEN_SECONDS)))
    desk.do(CreateQueue("queue_other", {"max_attempts": 5}))
    once, at_once, other = desk.task(max_attempts=1), delayed(desk, delay_ms=0), desk.task("queue_other")
    agent = desk.agent("ada")
    fail(desk, once, agent)
    assert desk.state(once) == "failed"
    fail(desk, at_once, agent)
    assert desk.state(at_once) == "available"
    assert desk.world.tasks[other].max_attempts == 5


def test_a_later_policy_does_not_change_existing_tasks(desk: Desk) -> None:
    desk.do(SetPolicy(retry=RetryPolicy(3, TEN_SECONDS)))
    agent, task = desk.agent("ada"), desk.task()
    desk.do(SetPolicy(retry=RetryPolicy(1)))
    fail(desk, task, agent)
    assert (desk.state(task), desk.world.tasks[task].max_attempts) == ("created", 3)
    assert desk.do(SetPolicy(retry=RetryPolicy(1))).records == []


def test_who_asks_for_another_attempt_does_not_wait(desk: Desk) -> None:
    desk.do(SetPolicy(retry=RetryPolicy(1, TEN_SECONDS)))
    agent, task = desk.agent("ada"), desk.task()
    fail(desk, task, agent)
    desk.do(RetryTask(task))
    assert desk.state(task) == "available"


def test_a_task_that_is_cancelled_in_its_pause_does_not_open(desk: Desk) -> None:
    agent, task = desk.agent("ada"), delayed(desk, delay_ms=10_000)
    fail(desk, task, agent)
    desk.do(CancelTask(task))
    assert desk.tick(20) == []
    assert desk.state(task) == "cancelled"


def test_older_rules_know_no_pauses(desk: Desk) -> None:
    desk.world.workspace.rules = 1
    with pytest.raises(Refused) as refused:
        delayed(desk, delay_ms=10)
    desk.reload()
    assert refused.value.code == "rules_too_old"


@pytest.mark.parametrize("others", [(), ("b",)])
def test_a_step_of_a_plan_waits_for_its_pause_and_for_its_turn(others: tuple[str, ...]) -> None:
    desk = RunDesk()
    desk.do(SetPolicy(retry=RetryPolicy(1, TEN_SECONDS)))
    desk.start(plan_of(step("a"), *map(step, others), parallel=1, attempts=2, on_failure="reopen"))
    desk.break_down("a")
    for seconds in (0, 6, 6):
        assert desk.planned("a").state == "created"
        desk.tick(seconds)
        lived = snapshot(desk.world)
        desk.reload()
        assert snapshot(desk.world) == lived
    for other in others:
        assert desk.planned("a").state == "created", "the other step has the only room"
        desk.finish(other)
    assert desk.planned("a").state == "available"
    desk.finish("a")
    assert desk.workflow.state == "completed"


def test_pauses_grow_up_to_the_longest_and_jitter_only_shortens_them() -> None:
    delay = retry_delay(1.5, 3, 0, 20)
    assert [pause_nanoseconds(delay, failures, "wire_x") / SECOND for failures in (1, 2, 3, 4, 999)] == [
        1.5,
        4.5,
        13.5,
        20,
        20,
    ]
    drawn = {pause_nanoseconds(retry_delay(10, 1, 0.5, 20), 1, f"wire_{number}") / SECOND for number in range(200)}
    assert len(drawn) > 190
    assert 5 <= min(drawn) < 5.5
    assert 9.5 < max(drawn) <= 10
