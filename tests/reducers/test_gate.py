"""Gates: a completed attempt waits for someone other than its worker, in a run and on a simple task alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimTask, CompleteClaim
from redkey.commands.decision import Refused
from redkey.commands.registry import SendMessage
from redkey.commands.tasks import CreateTask, RetryTask
from redkey.commands.workflows import ApproveGate, RejectGate
from redkey.ledger import content
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.world import TOMBSTONE_NANOSECONDS
from redkey.wire.envelope import wire_from
from redkey.wire.files import load
from tests.harness.desk import QUEUE, ref_of
from tests.harness.invariants import check_topic
from tests.harness.runs import RunDesk, plan_of, step
from tests.harness.snapshot import snapshot

DAY = 86_400


@pytest.fixture
def desk() -> Iterator[RunDesk]:
    desk = RunDesk()
    yield desk
    check_topic(desk.store, desk.topic)
    desk.world.drop_ended_tasks(desk.world.timestamp, Changes())
    lived = snapshot(desk.world)
    desk.reload()
    assert snapshot(desk.world) == lived


def gated(**more: Any) -> dict[str, Any]:
    return plan_of(step("a", approvalGate=more or True), step("b", "a"), attempts=2, on_failure="fail")


def simple(desk: RunDesk, gate: Any = True, *, attempts: int = 1) -> str:
    """A simple task with a gate."""
    structure = {"gate": gate, "max_attempts": attempts}
    pinned = content.structure(structure)
    task_id = "task_" + desk.ids.ulid()
    desk.do(
        CreateTask(task_id, QUEUE, ref_of("work"), structure=structure, structure_ref=content.ref(pinned)),
        contents=[pinned],
    )
    return task_id


def test_a_gate_opens_on_completion_and_what_depends_on_it_waits(desk: RunDesk) -> None:
    desk.start(gated())
    types = [one.wire["type"] for one in desk.finish("a").records]
    assert types == ["task.complete", "gate.opened", "inbox.sent"]
    assert desk.steps() == {"a": "gated", "b": "waiting"}
    desk.approve("a")
    assert desk.steps() == {"a": "done", "b": "open"}


def test_a_run_completes_after_its_last_gate(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b", approvalGate=True)))
    desk.finish("a")
    desk.finish("b")
    assert desk.workflow.state == "running"
    types = [one.wire["type"] for one in desk.approve("b").records]
    assert types == ["gate.approved", "workflow.completed"]


def test_a_gate_gives_its_room_to_others(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", approvalGate=True), step("b"), parallel=1))
    desk.finish("a")
    assert desk.steps() == {"a": "gated", "b": "open"}


def test_a_rejection_is_another_attempt_that_carries_the_note(desk: RunDesk) -> None:
    desk.start(gated())
    desk.finish("a")
    types = [one.wire["type"] for one in desk.reject("a", "more sources").records]
    assert types == ["gate.rejected", "task.created", "task.available"]
    task = desk.planned("a")
    assert (task.attempt, task.note_sha256) == (2, ref_of("more sources").sha256)
    desk.finish("a")
    desk.approve("a")
    desk.finish("b")
    assert desk.workflow.state == "completed"


def test_a_rejection_of_the_last_attempt_fails_by_the_policy(desk: RunDesk) -> None:
    desk.start(gated())
    desk.finish("a")
    desk.reject("a")
    desk.finish("a")
    desk.reject("a")
    assert desk.workflow.state == "failed"


def test_a_rejection_under_block_waits_for_a_person_who_may_retry_it(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", approvalGate=True), step("b", "a"), on_failure="block"))
    desk.finish("a")
    types = [one.wire["type"] for one in desk.reject("a", "no").records]
    assert types == ["gate.rejected", "inbox.sent"]
    assert desk.steps() == {"a": "stuck", "b": "waiting"}
    desk.do(RetryTask(desk.planned("a").task_id))
    assert desk.planned("a").note_sha256 == ref_of("no").sha256
    desk.finish("a")
    desk.approve("a")
    assert desk.steps()["b"] == "open"


def test_a_rejected_attempt_waits_for_room_and_is_not_forgotten_meanwhile(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", approvalGate=True), step("b"), parallel=1, attempts=2))
    desk.finish("a")
    claim = desk.take("b")
    desk.tick(3 * DAY)
    desk.reject("a", "again")
    assert desk.steps() == {"a": "again", "b": "open"}
    desk.tick(3 * DAY)
    desk.complete(desk.take("b") if desk.planned("b").state == "available" else claim)
    assert desk.steps()["a"] == "open"


def test_who_did_the_work_may_not_decide_on_it(desk: RunDesk) -> None:
    desk.start(gated(), workers=2)
    worker = desk.key_of(desk.workers[0])
    won = desk.do(ClaimTask(desk.planned("a").task_id, desk.workers[0]), worker).first("task.claimed")
    assert won is not None
    desk.do(CompleteClaim(won.wire["payload"]["claim_id"]), worker)
    gate = desk.gate_of("a")
    everybody = Actor(desk.workspace_id, worker.key_id, frozenset({"agent", "admin"}), desk.workers[0])
    for caller in (worker, everybody):
        with pytest.raises(Refused) as refused:
            desk.do(ApproveGate(gate), caller)
        assert (refused.value.status, refused.value.code) == (403, "own_gate")


def test_an_admin_key_that_worked_as_an_agent_may_not_decide_either(desk: RunDesk) -> None:
    desk.start(gated())
    desk.finish("a")
    with pytest.raises(Refused) as refused:
        desk.do(ApproveGate(desk.gate_of("a")), desk.admin)
    assert refused.value.code == "own_gate"
    desk.approve("a")


@pytest.mark.parametrize("scopes", [("produce",), ("read",), ("runner",)])
def test_only_admins_decide_a_gate_without_listed_approvers(desk: RunDesk, scopes: tuple[str, ...]) -> None:
    desk.start(gated())
    desk.finish("a")
    caller = Actor(desk.workspace_id, "key_01JTMX9A2B3C4D5E6F7G8H9JKN", frozenset(scopes))
    with pytest.raises(Refused) as refused:
        desk.do(ApproveGate(desk.gate_of("a")), caller)
    assert (refused.value.status, refused.value.code) == (403, "not_an_approver")


def test_those_who_are_listed_decide_beside_the_admins(desk: RunDesk) -> None:
    key = Actor(desk.workspace_id, "key_01JTMX9A2B3C4D5E6F7G8H9JKP", frozenset({"produce"}))
    tasks = step("a", approvalGate={"approvers": ["editor"]}), step("b", approvalGate={"approvers": [key.key_id]})
    plan = plan_of(*tasks, step("c", role="editor"))
    desk.start(plan)
    editor = desk.agent("eve", "role_editor")
    stranger = desk.agent("bob", "role_writer")
    desk.finish("a")
    desk.finish("b")
    gate = desk.gate_of("a")
    with pytest.raises(Refused):
        desk.do(ApproveGate(gate), desk.key_of(stranger))
    desk.do(ApproveGate(gate), desk.key_of(editor))
    desk.do(ApproveGate(desk.gate_of("b")), key)
    assert desk.steps()["b"] == "done"


def test_the_approvers_are_notified_and_the_worker_is_not(desk: RunDesk) -> None:
    desk.start(plan_of(step("a", approvalGate={"approvers": ["writer"]})), workers=2)
    desk.finish("a", worker=1)
    told = sorted(message.to for message in desk.world.messages.values())
    assert told == sorted([f"agent:{desk.workers[0]}", "human"])
    assert {message.message_type for message in desk.world.messages.values()} == {"exec.gate"}


def test_a_gate_is_decided_once(desk: RunDesk) -> None:
    desk.start(gated())
    desk.finish("a")
    gate = desk.gate_of("a")
    desk.approve("a")
    for command in (ApproveGate, RejectGate):
        with pytest.raises(Refused) as late:
            desk.do(command(gate), desk.boss)
        assert (late.value.status, late.value.code) == (409, "gate_closed")


def test_a_gate_timeout_under_reject_rejects(desk: RunDesk) -> None:
    desk.start(gated(deadlineSeconds=60, onDeadline="reject"))
    desk.finish("a")
    desk.tick(59)
    assert desk.steps()["a"] == "gated"
    types = [one.wire["type"] for one in desk.tick(2)]
    assert types[-3:] == ["gate.rejected", "task.created", "task.available"]
    assert desk.planned("a").attempt == 2


def test_a_gate_timeout_under_hold_notifies_the_humans_again(desk: RunDesk) -> None:
    desk.start(gated(deadlineSeconds=60, onDeadline="hold"))
    desk.finish("a")
    desk.tick(61)
    desk.tick(60)
    desk.reload()
    desk.tick(60)
    assert desk.types().count("inbox.sent") == 2
    desk.approve("a")
    assert desk.steps()["b"] == "open"


def test_a_gate_may_stay_open_longer_than_ended_tasks_are_remembered(desk: RunDesk) -> None:
    desk.start(gated())
    desk.finish("a")
    desk.tick(2 * TOMBSTONE_NANOSECONDS / 1e9)
    desk.task()
    assert desk.planned("a").state == "completed"
    desk.reload()
    desk.approve("a")
    assert desk.steps() == {"a": "done", "b": "open"}
    desk.task()
    assert "a" not in desk.states()


def test_a_simple_task_has_gates_too(desk: RunDesk) -> None:
    desk.workers = [desk.agent("ann")]
    task_id = simple(desk, {"approvers": []}, attempts=2)
    after = desk.task(waits_for=(task_id,))
    desk.complete(desk.hold(task_id, desk.workers[0]))
    gate = desk.world.tasks[task_id].gate_id
    types = [one.wire["type"] for one in desk.do(RejectGate(gate, ref_of("no")), desk.boss).records]
    assert types == ["gate.rejected", "task.created", "task.available"]
    assert desk.world.tasks[task_id].note_sha256 == ref_of("no").sha256
    desk.complete(desk.hold(task_id, desk.workers[0]))
    assert desk.state(after) == "created"
    desk.do(ApproveGate(desk.world.tasks[task_id].gate_id), desk.boss)
    assert desk.state(after) == "available"


def test_a_simple_task_that_is_rejected_for_good_fails_what_waits_for_it(desk: RunDesk) -> None:
    desk.workers = [desk.agent("ann")]
    task_id = simple(desk)
    after = desk.task(waits_for=(task_id,))
    desk.complete(desk.hold(task_id, desk.workers[0]))
    desk.do(RejectGate(desk.world.tasks[task_id].gate_id), desk.boss)
    assert desk.state(after) == "failed"
    desk.do(RetryTask(task_id))
    assert desk.state(task_id) == "available"


def test_a_message_exec_gate_lets_any_task_wait_for_approval(desk: RunDesk) -> None:
    desk.start(plan_of(step("a"), step("b", "a"), attempts=2))
    task_id = desk.planned("a").task_id
    message = "msg_" + desk.ids.ulid()
    desk.do(SendMessage(message, "human", 1, "exec.gate", ref_of("may I?"), task_id, True))
    desk.finish("a")
    assert desk.steps() == {"a": "gated", "b": "waiting"}
    desk.reject("a")
    desk.finish("a")
    desk.approve("a")
    assert desk.steps()["b"] == "open"


def test_gates_that_time_out_together_after_the_work_all_notify(desk: RunDesk) -> None:
    late = {"deadlineSeconds": DAY, "onDeadline": "reject"}
    desk.start(plan_of(step("a", approvalGate=late), step("b", approvalGate=late), on_failure="block"))
    desk.finish("a")
    desk.finish("b")
    types = [one.wire["type"] for one in desk.tick(2 * DAY)]
    assert [one for one in types if one != "agent.lost"] == [
        "gate.rejected",
        "gate.rejected",
        "inbox.sent",
        "inbox.sent",
    ]
    assert desk.steps() == {"a": "stuck", "b": "stuck"}


def test_an_approval_by_the_worker_is_void_whoever_wrote_it(desk: RunDesk) -> None:
    desk.start(gated())
    desk.finish("a")
    wire = load("fixtures/agent-wire/v1.1/gate-approved.valid.json")
    wire["stream"]["stream_id"] = f"workflow:{desk.run}"
    wire["payload"] = {"gate_id": desk.gate_of("a"), "by": desk.planned("a").ended_by}
    world = desk.world
    assert fold(world, Changes(), wire_from(wire), world.sequence + 1, world.timestamp + 1, LOCAL_PAYER) == "own_gate"
    wire["payload"]["gate_id"] = "gate_01JTMX9A2B3C4D5E6F7G8H9JKM"
    assert (
        fold(world, Changes(), wire_from(wire), world.sequence + 1, world.timestamp + 1, LOCAL_PAYER) == "unknown_gate"
    )
    desk.reload()
