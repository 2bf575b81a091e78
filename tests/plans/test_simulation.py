"""A simulated plan takes as long as its agents and its order make it take, and never gets ahead of the plan."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from redkey.services.simulation import Assumptions, Report, SimulatedClock, simulate
from redkey.stores.memory import MemoryStore
from tests.harness.invariants import check_topic
from tests.harness.runs import plan_of, step

WRITER, EDITOR = "role_writer", "role_editor"


def run(plan: dict[str, Any], agents: dict[str, int] | None = None, **more: Any) -> Report:
    clock = SimulatedClock()
    store = MemoryStore(clock)
    found = simulate(plan, Assumptions(agents or {}, more.pop("seconds", {}), **more), store, clock)
    (topic,) = store.topics()
    check_topic(store, topic)
    return found


def test_a_chain_takes_the_sum_of_its_tasks() -> None:
    plan = plan_of(step("a"), step("b", "a"), step("c", "b"))
    found = run(plan, seconds={"a": 10, "b": 20}, each_seconds=5)
    assert (found.finished, found.makespan_seconds, found.critical_path) == (True, 35, ["a", "b", "c"])
    assert found.critical_path_seconds == 35
    assert found.left == []


def test_more_agents_make_parallel_work_faster_and_show_who_waited() -> None:
    plan = plan_of(*(step(f"t{number}") for number in range(4)))
    alone, pair = run(plan, {WRITER: 1}, each_seconds=60), run(plan, {WRITER: 2}, each_seconds=60)
    assert (alone.makespan_seconds, pair.makespan_seconds) == (240, 120)
    assert alone.roles[WRITER].waited_seconds == 60 + 120 + 180
    assert (alone.roles[WRITER].longest_wait_seconds, alone.roles[WRITER].most_waiting) == (180, 3)
    assert (alone.bottleneck, alone.roles[WRITER].utilisation) == (WRITER, 1.0)
    assert pair.most_at_work == 2


def test_the_bottleneck_is_the_role_whose_tasks_wait() -> None:
    edits = [step(f"e{number}", role="editor") for number in range(3)]
    found = run(plan_of(step("w"), *edits), {WRITER: 1, EDITOR: 1}, each_seconds=10)
    assert found.bottleneck == EDITOR
    assert found.roles[WRITER].waited_seconds == 0


def test_waiting_for_room_is_told_apart_from_waiting_for_agents() -> None:
    found = run(plan_of(step("a"), step("b"), parallel=1), {WRITER: 2}, each_seconds=30)
    assert (found.makespan_seconds, found.waited_for_room_seconds, found.bottleneck) == (60, 30, "")


def test_approvals_take_their_time() -> None:
    plan = plan_of(step("a", approvalGate=True), step("b", "a"), attempts=2)
    found = run(plan, each_seconds=10, gate_seconds=100)
    assert found.makespan_seconds == found.critical_path_seconds == 120


def test_a_role_without_agents_leaves_its_tasks_and_what_waits_for_them() -> None:
    found = run(plan_of(step("a", role="editor"), step("b", "a"), step("c")), {EDITOR: 0}, each_seconds=10)
    assert (found.finished, found.left) == (False, ["a", "b"])


def test_a_task_that_takes_longer_than_its_deadline_is_not_done() -> None:
    found = run(plan_of(step("a", deadlineSeconds=5), step("b", "a"), step("c")), {WRITER: 2}, each_seconds=10)
    assert (found.finished, found.left) == (False, ["a", "b"])


def test_work_of_days_keeps_its_lease() -> None:
    found = run(plan_of(step("a")), each_seconds=300_000)
    assert (found.finished, found.makespan_seconds) == (True, 300_000)


def test_outputs_and_capabilities_are_met() -> None:
    able = [f"can-{number}" for number in range(10)]
    plan = plan_of(step("a", requiredCapabilities=able, outputs=["one", "two"]), step("b", "a", outputs=["three"]))
    assert run(plan).finished


def test_the_same_simulation_gives_the_same_report() -> None:
    plan = plan_of(*(step(f"t{n}", *([f"t{n - 3}"] if n > 2 else [])) for n in range(12)), parallel=3)
    assert run(plan, {WRITER: 2}) == run(plan, {WRITER: 2})


@settings(max_examples=30)
@given(st.data())
def test_no_plan_finishes_before_its_critical_path_or_before_its_work_is_done(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    tasks = []
    for place in range(count):
        upstream = data.draw(st.lists(st.integers(0, place - 1), unique=True, max_size=2)) if place else []
        tasks.append(step(f"t{place}", *(f"t{above}" for above in upstream)))
    agents, parallel = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    seconds = {task["id"]: data.draw(st.integers(0, 50)) for task in tasks}
    found = run(plan_of(*tasks, parallel=parallel), {WRITER: agents}, seconds=seconds)
    work = sum(seconds.values())
    assert found.finished
    assert max(found.critical_path_seconds, work / min(agents, parallel)) <= found.makespan_seconds <= work
    assert found.most_at_work <= min(agents, parallel)
