"""Random valid plans and random acts: nothing opens early, limits hold, and every run ends.

The invariants are checked from the plan and the ledger only, without reducers.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from redkey.commands.claims import BlockClaim, ClaimNext, CompleteClaim, FailClaim, HeartbeatClaim, ReleaseClaim
from redkey.commands.decision import Refused
from redkey.commands.tasks import CancelTask, RetryTask, UnblockTask
from redkey.commands.workflows import ApproveGate, CancelWorkflow, PauseWorkflow, RejectGate, ResumeWorkflow
from redkey.reducers.changes import Changes
from tests.harness.desk import QUEUE, ref_of
from tests.harness.invariants import check_topic
from tests.harness.runs import Plan, RunDesk, plan_of, step
from tests.harness.snapshot import snapshot

ROLES = ("writer", "editor")
GATES: list[Any] = [
    False,
    False,
    True,
    {"deadlineSeconds": 30, "onDeadline": "reject"},
    {"deadlineSeconds": 30, "onDeadline": "hold"},
    {"approvers": ["writer"]},
]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A valid plan of up to nine tasks."""
    count = draw(st.integers(1, 9))
    tasks = []
    for place in range(count):
        upstream = draw(st.lists(st.integers(0, place - 1), unique=True, max_size=3)) if place else []
        more: dict[str, Any] = {"approvalGate": draw(st.sampled_from(GATES))}
        if draw(st.booleans()):
            more["retry"] = {
                "maxAttempts": draw(st.integers(1, 3)),
                "onFailure": draw(st.sampled_from(["reopen", "fail", "block"])),
            }
        if draw(st.integers(0, 5)) == 0:
            more["deadlineSeconds"] = draw(st.sampled_from([20, 200]))
        if draw(st.integers(0, 3)) == 0:
            more["priority"] = draw(st.sampled_from(["urgent", "high", "low"]))
        role = draw(st.sampled_from(ROLES))
        tasks.append(step(f"t{place}", *(f"t{above}" for above in upstream), role=role, leaseSeconds=10, **more))
    # Tasks may be listed in another order than the one they run in.
    tasks = draw(st.permutations(tasks))
    named = {task["role"] for task in tasks}
    gates = [task["approvalGate"] for task in tasks]
    if any(isinstance(gate, dict) and "approvers" in gate for gate in gates) and "writer" not in named:
        tasks[0] = tasks[0] | {"role": "writer"}
    return plan_of(
        *tasks,
        parallel=draw(st.integers(1, 4)),
        attempts=draw(st.integers(1, 3)),
        on_failure=draw(st.sampled_from(["reopen", "fail", "block"])),
    )


class Chance:
    """Choices derived from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def of(self, options: Any) -> Any:
        return self._random.choice(list(options))


def act(desk: RunDesk, chance: Chance) -> str:
    """Try a random act; an impossible one is refused and changes nothing."""
    tasks = [task for task in desk.world.tasks.values() if task.workflow_id]
    held = [task for task in tasks if task.claim_id]
    late = [task for task in tasks if task.expired_claim_id]
    ended = [task for task in tasks if task.ended_at]
    blocked = [task for task in tasks if task.state == "blocked"]
    gates = list(desk.world.gates)
    acts: list[tuple[str, Any]] = [("claim", lambda: ClaimNext(QUEUE, chance.of(desk.workers)))] * 4
    acts += [("pass", None), ("reload", None), ("pause", lambda: PauseWorkflow(desk.run))]
    acts += [("resume", lambda: ResumeWorkflow(desk.run))] * 3
    if held:
        claim = chance.of(held).claim_id
        acts += [("complete", lambda: CompleteClaim(claim))] * 5
        acts += [("fail", lambda: FailClaim(claim, chance.of(["error", "rejected"]), ref_of("why")))] * 2
        acts += [("block", lambda: BlockClaim(claim, "ambiguity", ref_of("why")))]
        acts += [("release", lambda: ReleaseClaim(claim)), ("heartbeat", lambda: HeartbeatClaim(claim))]
    if late:
        acts += [("late", lambda: CompleteClaim(chance.of(late).expired_claim_id))]
    if blocked:
        acts += [("unblock", lambda: UnblockTask(chance.of(blocked).task_id))] * 3
    if gates:
        acts += [("approve", lambda: ApproveGate(chance.of(gates)))] * 3
        acts += [("reject", lambda: RejectGate(chance.of(gates), ref_of("note")))] * 2
    if ended:
        acts += [("retry", lambda: RetryTask(chance.of(ended).task_id))]
    if tasks:
        acts += [("cancel task", lambda: CancelTask(chance.of(tasks).task_id))]
    acts += [("cancel", lambda: CancelWorkflow(desk.run))] if chance.of(range(12)) == 11 else []
    name, command = chance.of(acts)
    if name == "pass":
        desk.tick(chance.of([1, 6, 11, 40, 1200]))
    elif name == "reload":
        desk.world.drop_ended_tasks(desk.world.timestamp, Changes())
        lived = snapshot(desk.world)
        desk.reload()
        assert snapshot(desk.world) == lived
    else:
        try:
            desk.do(command(), desk.boss if name in ("approve", "reject") else None)
        except Refused:
            name = "refused"
    return str(name)


def finish(desk: RunDesk) -> None:
    """Do all open work until the run ends; retry blocked tasks once, then cancel the run."""
    retried: Counter[str] = Counter()
    for _ in range(400):
        run = desk.world.runs.get(desk.run)
        if run is None:
            return
        if run.workflow.state == "paused":
            desk.do(ResumeWorkflow(desk.run))
        for gate in list(desk.world.gates):
            desk.do(ApproveGate(gate), desk.boss)
        for task in [task for task in desk.world.tasks.values() if task.workflow_id]:
            if task.state == "blocked":
                desk.do(UnblockTask(task.task_id))
            elif task.claim_id:
                desk.do(CompleteClaim(task.claim_id))
        for step_ in run.steps:
            if step_.state == "stuck":
                retried[step_.task_id] += 1
                desk.do(RetryTask(step_.task_id) if retried[step_.task_id] < 3 else CancelWorkflow(desk.run))
        for worker in desk.workers:
            desk.do(ClaimNext(QUEUE, worker))
    raise AssertionError(f"the run does not end: {desk.steps()}, {desk.states()}")


def live(plan: Plan, seed: int, acts: int) -> tuple[RunDesk, list[str]]:
    """Simulate a whole run: this many random acts, then all remaining work."""
    desk, chance = RunDesk(), Chance(seed)
    desk.start(plan, workers=2)
    done = [act(desk, chance) for _ in range(acts)]
    finish(desk)
    return desk, done


def check_run(plan: Plan, run: str, wires: list[dict[str, Any]]) -> None:
    """Check the invariants of a run from its plan and the ledger."""
    asked = {task["id"]: task for task in plan["tasks"]}
    keys: dict[str, str] = {}
    states: dict[str, str] = {}
    attempts: Counter[str] = Counter()
    by_people: Counter[str] = Counter()
    accepted: set[str] = set()
    workers: dict[str, str] = {}
    gates: dict[str, str] = {}
    ends: list[str] = []
    for wire in wires:
        kind, payload, stream = wire["type"], wire["payload"], wire["stream"]["stream_id"]
        if kind.startswith("workflow.") and kind != "workflow.started":
            ends += [kind] if kind not in ("workflow.paused", "workflow.resumed") else []
            continue
        if kind == "gate.opened":
            gates[payload["gate_id"]] = keys[payload["task_id"]]
        elif kind in ("gate.approved", "gate.rejected"):
            key = gates.pop(payload["gate_id"])
            assert payload["by"] != workers[key], "who did the work decided on it"
            assert not ends, "a gate was decided after the end"
            if kind == "gate.approved":
                accepted.add(key)
        if not stream.startswith("task:"):
            continue
        task_id = stream.split(":")[1]
        if kind == "task.created":
            key = keys.setdefault(task_id, payload["plan_task"])
            assert not ends, f"{key} was opened after the end"
            attempts[key] += 1
            by_people[key] += wire["sender"] != "system"
            policy = asked[key].get("retry", plan["policies"]["retry"])
            assert attempts[key] - by_people[key] <= policy["maxAttempts"], f"{key} has too many attempts"
            for above in asked[key]["dependsOn"]:
                assert above in accepted, f"{key} opened before {above} was done"
            states[key] = "created"
            continue
        key = keys[task_id]
        if kind == "task.available":
            states[key] = "available"
            running = sum(state in RUNNING for state in states.values())
            assert running <= plan["policies"]["maxParallelTasks"], f"{key} opened without room"
        elif kind == "task.complete":
            states[key], workers[key] = "completed", wire["sender"]
            if not asked[key]["approvalGate"]:
                accepted.add(key)
        else:
            states[key] = _AFTER.get(kind, states[key])
    assert len(ends) == 1, ends
    if ends == ["workflow.completed"]:
        assert accepted == asked.keys()
    assert not set(states.values()) & {*RUNNING, "created", "blocked"}, states
    assert ends == ["workflow.cancelled"] or not gates, "a gate is open after the end"


RUNNING = ("available", "claimed", "working")
_AFTER = {
    "task.claimed": "claimed",
    "task.released": "available",
    "task.lease_expired": "available",
    "task.stalled": "available",
    "task.lease_extended": "claimed",
    "task.blocked": "blocked",
    "task.unblocked": "available",
    "task.failed": "failed",
    "task.cancelled": "cancelled",
}


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plans(), st.integers(0, 2**32), st.integers(0, 80))
def test_every_run_of_every_plan_keeps_to_it_and_ends(plan: Plan, seed: int, acts: int) -> None:
    desk, done = live(plan, seed, acts)
    for name in set(done):
        event(name)
    event(desk.workflow.state)
    wires = check_topic(desk.store, desk.topic)
    check_run(plan, desk.run, wires)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=20)
@given(plans(), st.integers(0, 2**32))
def test_the_same_plan_and_seed_give_the_same_ledger_bytes(plan: Plan, seed: int) -> None:
    first, second = (live(plan, seed, 40)[0] for _ in range(2))
    ledgers = [desk.store.read(desk.topic, 0, 100_000) for desk in (first, second)]
    assert [(record.wire, record.timestamp, record.running_hash) for record in ledgers[0]] == [
        (record.wire, record.timestamp, record.running_hash) for record in ledgers[1]
    ]
