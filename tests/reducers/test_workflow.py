"""Runs, one rule at a time: tasks open by order and concurrency limit, policies apply, runs pause and end once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from redkey.commands.claims import FailClaim
from redkey.commands.decision import Refused
from redkey.commands.tasks import CancelTask, RetryTask, UnblockTask
from redkey.commands.workflows import CancelWorkflow, PauseWorkflow, ResumeWorkflow
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.world import World
from redkey.wire.envelope import wire_from
from redkey.wire.files import load
from tests.harness.desk import QUEUE, ref_of
from tests.harness.invariants import check_topic
from tests.harness.runs import RunDesk, plan_of, step
from tests.harness.snapshot import snapshot

DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))


@pytest.fixture
def desk() -> Iterator[RunDesk]:
    desk = RunDesk()
    yield desk
    check_topic(desk.store, desk.topic)
    lived = snapshot(desk.world)
    desk.reload()
    assert snapshot(desk.world) == lived


def test_a_task_opens_when_everything_it_depends_on_is_done(desk: RunDesk) -> None:
    desk.start(plan_of(*DIAMOND))
    assert desk.states() == {"a": "available"}
    desk.finish("a")
    assert desk.states() == {"a": "completed", "b": "available", "c": "available"}
    desk.finish("c")
    assert "d" not in desk.states()
    desk.finish("b")
    assert desk.states()["d"] == "available"
    desk.finish("d")
    assert desk.workflow.state == "completed"


def test_what_a_completion_opens_is_recorded_with_it(desk: RunDesk) -> None:
    desk.start(plan_of(*DIAMOND))
    types = [one.wire["type"] for one in desk.finish("a").records]
    assert types == ["task.complete", "task.created", "task.created", "task.available", "task.available"]
    desk.finish("b")
    desk.finish("c")
    types = [one.wire["type"] for one in desk.finish("d").records]
    assert types == ["task.complete", "workflow.completed"]


def test_the_start_opens_what_waits_for_nothing_and_makes_missing_roles(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b", role="editor")))
    types = [one.wire["type"] for one in desk.started.records]
    assert types == ["workflow.started", "role.created", "role.created", *["task.created"] * 2, *["task.available"] * 2]
    assert {"role_writer", "role_editor"} <= desk.world.roles.keys()


def test_no_more_tasks_are_open_than_the_plan_allows(desk: RunDesk) -> None:
    desk.start(plan_of(*(step(f"t{number}") for number in range(5)), parallel=2))
    assert desk.states() == {"t0": "available", "t1": "available"}
    claim = desk.take("t0")
    assert len(desk.states()) == 2
    desk.complete(claim)
    assert desk.states() == {"t0": "completed", "t1": "available", "t2": "available"}


def test_a_blocked_task_gives_its_room_away_and_comes_back_beside_what_took_it(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b"), step("c"), parallel=1))
    desk.get_stuck("a")
    assert desk.states() == {"a": "blocked", "b": "available"}
    desk.do(UnblockTask(desk.planned("a").task_id))
    assert desk.states() == {"a": "available", "b": "available"}
    desk.finish("b")
    # Nothing opens until there is room again.
    assert "c" not in desk.states()
    desk.finish("a")
    assert desk.states()["c"] == "available"


def test_urgent_tasks_open_first_when_there_is_not_room_for_all(desk: RunDesk) -> None:
    tasks = step("a"), step("b"), step("c", priority="urgent"), step("d", priority="low")
    desk.start(plan_of(*tasks, parallel=1))
    opened = []
    for _ in tasks:
        (key,) = (key for key, state in desk.states().items() if state == "available")
        opened.append(key)
        desk.finish(key)
    assert opened == ["c", "a", "b", "d"]


def test_reopen_gives_another_attempt_until_there_is_none(desk: RunDesk) -> None:
    desk.start(plan_of(*DIAMOND, attempts=2, on_failure="reopen"))
    types = [one.wire["type"] for one in desk.break_down("a").records]
    assert types == ["task.failed", "task.created", "task.available"]
    assert desk.planned("a").attempt == 2
    types = [one.wire["type"] for one in desk.break_down("a").records]
    assert types == ["task.failed", "workflow.failed"]
    assert desk.workflow.state == "failed"


def test_a_task_of_its_own_policy_follows_that(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", retry={"maxAttempts": 2, "onFailure": "reopen"}), attempts=9, on_failure="fail"))
    desk.break_down("a")
    desk.break_down("a")
    assert desk.workflow.state == "failed"


def test_fail_drops_dependents_and_the_other_branches_finish(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b", "a"), step("c", "b"), step("x"), step("y", "x"), step("z", "c", "y")))
    desk.break_down("a")
    assert desk.workflow.state == "running"
    assert desk.steps() == {"a": "failed", "b": "dropped", "c": "dropped", "x": "open", "y": "waiting", "z": "dropped"}
    desk.finish("x")
    desk.finish("y")
    assert desk.workflow.state == "failed"
    assert (desk.workflow.done, desk.workflow.failed, desk.workflow.dropped) == (2, 1, 3)


def test_block_makes_dependents_wait_and_notifies_the_humans(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b", "a"), step("x"), on_failure="block"))
    types = [one.wire["type"] for one in desk.break_down("a").records]
    assert types == ["task.failed", "inbox.sent"]
    desk.finish("x")
    assert desk.workflow.state == "running"
    assert desk.steps() == {"a": "stuck", "b": "waiting", "x": "done"}
    (message,) = desk.world.messages.values()
    assert (message.to, message.ref_task_id, message.action_required) == ("human", desk.planned("a").task_id, True)
    desk.do(RetryTask(desk.planned("a").task_id))
    desk.finish("a")
    desk.finish("b")
    assert desk.workflow.state == "completed"


def test_a_retry_restores_dropped_tasks_unless_another_upstream_task_has_failed(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b"), step("c", "a"), step("d", "c", "b"), step("e", "d"), step("x")))
    desk.break_down("a")
    desk.break_down("b")
    assert desk.workflow.dropped == 3
    desk.do(RetryTask(desk.planned("a").task_id))
    assert [desk.steps()[key] for key in "abcde"] == ["open", "failed", "waiting", "dropped", "dropped"]
    desk.do(RetryTask(desk.planned("b").task_id))
    assert [desk.steps()[key] for key in "cde"] == ["waiting"] * 3
    for key in "abcdex":
        desk.finish(key)
    assert desk.workflow.state == "completed"


def test_a_retry_waits_for_room_like_everything_else(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b"), parallel=1))
    desk.break_down("a")
    assert desk.states() == {"a": "failed", "b": "available"}
    desk.do(RetryTask(desk.planned("a").task_id))
    assert desk.states() == {"a": "created", "b": "available"}
    desk.finish("b")
    assert desk.states() == {"a": "available", "b": "completed"}


def test_a_cancelled_task_fails_the_run_whatever_the_policy_for_failures_says(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b", "a"), on_failure="block"))
    desk.do(CancelTask(desk.planned("a").task_id))
    assert desk.workflow.state == "failed"


def test_lost_leases_count_apart_and_end_by_the_policy(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", leaseSeconds=5), attempts=2, on_failure="reopen"))
    for _ in range(5):
        desk.take("a")
        desk.tick(6)
    assert (desk.planned("a").attempt, desk.planned("a").state) == (2, "available")
    for _ in range(5):
        desk.take("a")
        desk.tick(6)
    assert desk.workflow.state == "failed"


def test_a_deadline_fails_a_task_in_every_state(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", deadlineSeconds=60), step("b", deadlineSeconds=60), parallel=2, attempts=3))
    desk.take("a")
    desk.tick(59)
    assert desk.states() == {"a": "claimed", "b": "available"}
    desk.tick(2)
    assert desk.states() == {"a": "failed", "b": "failed"}
    assert desk.workflow.state == "failed"


def test_a_deadline_and_a_lease_that_run_out_together_are_both_settled(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", deadlineSeconds=10, leaseSeconds=12)))
    desk.take("a")
    desk.tick(3600)
    assert desk.states() == {"a": "failed"}


def test_pause_stops_opening_and_claiming_but_running_claims_continue(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b"), step("c", "a"), parallel=2))
    claim = desk.take("a")
    desk.do(PauseWorkflow(desk.run))
    refused = desk.claim(desk.planned("b").task_id, desk.workers[0])
    assert refused.wire["payload"]["detail"] == "paused"
    assert desk.next_for().answer == {"status": "no_tasks"}
    desk.complete(claim)
    assert desk.states() == {"a": "completed", "b": "available"}
    desk.do(ResumeWorkflow(desk.run))
    assert desk.states() == {"a": "completed", "b": "available", "c": "available"}
    assert desk.next_for().first("task.claimed") is not None


def test_an_attempt_that_follows_a_failure_waits_out_a_pause(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), attempts=2, on_failure="reopen"))
    claim = desk.take("a")
    desk.do(PauseWorkflow(desk.run))
    desk.do(FailClaim(claim, "error", ref_of("broken")))
    assert desk.states() == {"a": "created"}
    desk.do(ResumeWorkflow(desk.run))
    assert desk.states() == {"a": "available"}


def test_cancel_ends_the_run_at_once_and_its_tasks_with_it(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b"), step("c"), step("d", "a"), step("e", approvalGate=True), parallel=4))
    claim = desk.take("a")
    desk.get_stuck("b")
    desk.finish("e")
    gate = desk.gate_of("e")
    desk.do(CancelWorkflow(desk.run))
    assert desk.workflow.state == "cancelled"
    assert desk.states() == {"a": "cancelled", "b": "cancelled", "c": "cancelled", "e": "completed"}
    assert {task.cause for task in desk.world.tasks.values() if task.state == "cancelled"} == {"workflow_cancelled"}
    assert gate not in desk.world.gates
    with pytest.raises(Refused) as late:
        desk.complete(claim)
    assert late.value.code == "already_terminal"


def test_a_run_ends_once(desk: RunDesk) -> None:
    desk.start(plan_of(step("a")))
    desk.finish("a")
    for command in (PauseWorkflow, ResumeWorkflow, CancelWorkflow):
        with pytest.raises(Refused) as late:
            desk.do(command(desk.run))
        assert late.value.code == "already_terminal"
    ends = [one for one in desk.types() if one.startswith("workflow.") and one != "workflow.started"]
    assert ends == ["workflow.completed"]


def test_a_task_of_an_ended_run_is_not_tried_again(desk: RunDesk) -> None:
    desk.start(plan_of(step("a")))
    desk.break_down("a")
    with pytest.raises(Refused) as late:
        desk.do(RetryTask(desk.planned("a").task_id))
    assert late.value.code == "workflow_ended"


def test_a_simple_task_may_wait_for_a_task_of_a_plan(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", approvalGate=True)))
    after = desk.task(waits_for=(desk.planned("a").task_id,))
    desk.finish("a")
    assert desk.state(after) == "created"
    desk.approve("a")
    assert desk.state(after) == "available"


def test_a_run_is_reloaded_from_its_rows_at_any_moment(desk: RunDesk) -> None:
    desk.start(plan_of(*DIAMOND, step("g", approvalGate=True), step("h"), attempts=2, on_failure="block", parallel=2))
    acts = [
        lambda: desk.finish("a"),
        lambda: desk.break_down("g"),
        lambda: desk.do(PauseWorkflow(desk.run)),
        lambda: desk.do(RetryTask(desk.planned("g").task_id)),
        lambda: desk.do(ResumeWorkflow(desk.run)),
        lambda: desk.finish("b"),
        lambda: desk.finish("c"),
        lambda: desk.finish("g"),
        lambda: desk.reject("g", "not yet"),
    ]
    for act in acts:
        act()
        lived = snapshot(desk.world)
        desk.reload()
        assert snapshot(desk.world) == lived


def test_wires_that_come_too_early_are_void(desk: RunDesk) -> None:
    """Another writer may send wires in any order; nothing opens, ends or is approved too early."""
    desk.start(plan_of(step("a"), step("b", "a"), parallel=1))
    world, sequence = desk.world, desk.world.sequence
    created = load("fixtures/agent-wire/v1.1/task-created.valid-plan.json") | {"sender": "system"}
    created["payload"] |= {"workflow_id": desk.run, "plan_task": "b", "queue_id": QUEUE}
    assert _fold(world, created) == "not_open"
    created["payload"]["plan_task"] = "nothing"
    assert _fold(world, created) == "unknown_plan_task"
    for end in ("completed", "failed"):
        wire = load(f"fixtures/agent-wire/v1.1/workflow-{end}.valid.json")
        wire["stream"]["stream_id"] = f"workflow:{desk.run}"
        wire["payload"].pop("workflow_id", None)
        assert _fold(world, wire) == "not_finished"
    opened = load("fixtures/agent-wire/v1.1/gate-opened.valid.json")
    opened["payload"]["task_id"] = desk.planned("a").task_id
    assert _fold(world, opened) == "not_gated"
    assert world.sequence == sequence + 5
    desk.reload()


def _fold(world: World, wire: dict[str, object]) -> str | None:
    return fold(world, Changes(), wire_from(wire), world.sequence + 1, world.timestamp + 1, LOCAL_PAYER)
