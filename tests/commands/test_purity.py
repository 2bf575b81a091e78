"""Decisions are pure: each one is computed twice on a frozen world, with the same result.

The wrappers stand where units call `decide`, `due` and `follow_ups`, so that whole scenes run under them: a busy hour,
plans with gates, and simulations with servers that fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from redkey.commands import claims
from redkey.commands.claims import BlockClaim, ClaimNext
from redkey.commands.decision import Refused
from redkey.commands.tasks import CreateTask, RetryTask, UnblockTask
from redkey.commands.workflows import CancelWorkflow, PauseWorkflow, ResumeWorkflow
from redkey.reducers import claim
from redkey.reducers.run import Run
from redkey.reducers.world import World
from redkey.services import unit_of_work
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.runs import RunDesk, plan_of, step
from tests.reducers import test_world_fold
from tests.simulation.run import Run as Simulation

SEEDS = 60 if os.environ.get("REDKEY_TEST_LONG") == "1" else 3


def frozen(value: Any) -> Any:
    """Return a copy of everything in a world, in order, including the heap positions of offers and timers."""
    if isinstance(value, World):
        return {name: frozen(part) for name, part in vars(value).items()}
    if isinstance(value, Run):
        return {name: frozen(getattr(value, name)) for name in Run.__slots__ if name != "plan"}
    if isinstance(value, msgspec.Struct):
        return [frozen(getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return [(key, frozen(one)) for key, one in value.items()]
    if isinstance(value, str | int | float | None):
        return value
    return [frozen(one) for one in value]


class SameIds:
    """Replays the ids of the first decision for the second."""

    def __init__(self, ids: Any) -> None:
        self._ids, self._drawn, self._next = ids, [], 0

    def ulid(self) -> str:
        if self._next == len(self._drawn):
            self._drawn.append(self._ids.ulid())
        self._next += 1
        found: str = self._drawn[self._next - 1]
        return found

    def again(self) -> None:
        self._next = 0


class Twice:
    """Computes every decision twice, and counts them."""

    def __init__(self) -> None:
        self.decided: set[type] = set()
        self.timed = 0

    def decide(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def twice(world: World, command: Any, caller: Any, now: int, ids: Any, past: Any) -> Any:
            # The fold has left a true offer on top of every heap.
            assert all(world.is_offer(heap[0]) for sets in world.heaps.values() for heap in sets.values())
            same, before = SameIds(ids), frozen([world, command, past])
            results = []
            for _ in range(2):
                same.again()
                results.append(_result(lambda: real(world, command, caller, now, same, past)))
                assert frozen([world, command, past]) == before, f"{command} changed something"
            assert frozen(results[0]) == frozen(results[1]), command
            self.decided.add(type(command))
            same.again()
            return real(world, command, caller, now, same, past)

        return twice

    def derive(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def twice(world: World, *now: int) -> Any:
            before = frozen(world)
            first, second = real(world, *now), real(world, *now)
            assert frozen(first) == frozen(second)
            assert frozen(world) == before, "what is due changed something"
            self.timed += bool(first and now)
            return first

        return twice


def _result(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Refused as refused:
        return [refused.status, refused.code, refused.message, refused.members]


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> Twice:
    found = Twice()
    monkeypatch.setattr(unit_of_work, "decide", found.decide(unit_of_work.decide))
    for name in ("due", "follow_ups"):
        monkeypatch.setattr(unit_of_work, name, found.derive(getattr(unit_of_work, name)))
    return found


def test_a_busy_hour(twice: Twice) -> None:
    test_world_fold.history.__wrapped__()
    assert len(twice.decided) > 20
    assert twice.timed


def test_plans_gates_and_pauses(twice: Twice) -> None:
    desk = RunDesk()
    gate = {"approvalGate": {"deadlineSeconds": 60, "onDeadline": "hold"}}
    desk.start(plan_of(step("draft", **gate), step("text", "draft"), step("notes"), attempts=2), workers=2)
    desk.finish("draft")
    desk.tick(70)
    desk.reject("draft")
    desk.do(PauseWorkflow(desk.run))
    assert desk.next_for().answer == {"status": "no_tasks"}
    desk.do(ResumeWorkflow(desk.run))
    desk.break_down("notes")
    desk.finish("draft", 1)
    desk.approve("draft")
    desk.do(CancelWorkflow(desk.run))
    desk.tick(3000)
    with pytest.raises(Refused):
        desk.do(PauseWorkflow(desk.run))
    assert twice.timed


def test_what_has_left_the_world(twice: Twice) -> None:
    desk = Desk()
    agent, task = desk.agent("ada"), desk.task()
    claim_id = desk.hold(task, agent)
    desk.complete(claim_id)
    failed = desk.task()
    desk.do(claims.FailClaim(desk.hold(failed, agent), "error"))
    desk.tick(120)
    desk.task()
    assert not {task, failed} & set(desk.world.tasks)
    desk.task(waits_for=(task,))
    assert desk.claim(task, desk.agent("eve")).wire["type"] == "task.claim_missed"
    assert desk.do(claims.ClaimTask(task, agent)).answer == {"reason": "completed_by_you", "detail": claim_id}
    desk.do(RetryTask(failed))
    for command in (claims.HeartbeatClaim(claim_id), claims.ClaimTask(task, agent)):
        desk.do(command)
    for refused in (claims.CompleteClaim(claim_id), UnblockTask(task), CreateTask("task_x", QUEUE, {}, waits_for="t")):
        with pytest.raises(Refused):
            desk.do(refused)


def test_a_claim_for_several_tasks_of_several_sets(twice: Twice) -> None:
    desk = Desk()
    agent = desk.agent("ada", "role_a", "role_b")
    random = Random(1)
    for _ in range(40):
        roles = random.choice([(), ("role_a",), ("role_b",), ("role_a", "role_b")])
        desk.task(roles=roles, priority=random.choice(["urgent", "normal", "low"]))
    # Some are taken from the middle, some come back.
    for number, task in enumerate(random.sample(sorted(desk.world.tasks), 20)):
        claim_id = desk.hold(task, agent)
        if number % 2:
            desk.do(claims.ReleaseClaim(claim_id))
        elif number % 3:
            desk.do(BlockClaim(claim_id, "auth", ref_of("why")))
    waiting = sorted(
        (task.priority, task.sequence, task.task_id) for task in desk.world.tasks.values() if task.state == "available"
    )
    taken = []
    for count in (1, 3, 7, 100):
        outcome = desk.do(ClaimNext(QUEUE, agent, count=count))
        won = [one.wire["payload"]["task_id"] for one in outcome.records if one.wire["type"] == "task.claim_attempted"]
        assert len(won) == min(count, len(waiting) - len(taken))
        taken += won
    assert taken == [task_id for _, _, task_id in waiting]


def test_simulations(twice: Twice) -> None:
    for seed in range(SEEDS):
        Simulation(seed).go()
    assert twice.timed


def test_the_wrappers_notice_a_decision_that_changes_the_world(twice: Twice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug of the first version: a task was removed from the offers during a search."""
    desk = Desk()
    agent, task = desk.agent("ada"), desk.task()
    real = claim.best_tasks

    def marks(world: World, *rest: Any) -> Any:
        world.tasks[task].reserved = "chosen"
        return real(world, *rest)

    monkeypatch.setattr(claim, "best_tasks", marks)
    with pytest.raises(AssertionError, match="changed something"):
        desk.do(ClaimNext(QUEUE, agent))
