"""Costs on the ledger: counted once, however they are reported, and compared with the caps of the workspace."""

from __future__ import annotations

import pytest

from redkey.commands.claims import ClaimNext, ClaimTask, CompleteClaim, FailClaim, ReleaseClaim, ReportUsage, Used
from redkey.commands.policies import SetPolicy
from redkey.ledger.ports import Reader
from redkey.readmodel.usage import usage_of
from redkey.reducers.spending import NANO, left
from redkey.services.reconcile import reconcile
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.invariants import check_topic


def spent(desk: Desk, task_id: str) -> float:
    return desk.world.tasks[task_id].nano_usd / NANO


def by(reader: Reader, topic: str, group: str) -> dict[str, float]:
    report = usage_of(reader, topic, "", "", group)  # type: ignore[arg-type]
    return {one.model or one.agent_id or one.task_id or "": one.cost_usd for one in report.items if one.cost_usd}


def test_reports_of_failed_and_released_claims_count_and_a_completion_adds_only_what_is_new(desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    task = desk.task(max_attempts=2)
    first = desk.hold(task, ada)
    desk.do(ReportUsage(first, (Used("gpt-5", 0.1, 1000, 20), Used("gpt-5-mini", 0.02))))
    desk.do(ReleaseClaim(first))
    second = desk.hold(task, ada)
    desk.do(ReportUsage(second, (Used("gpt-5", 0.3),)))
    desk.do(FailClaim(second, "error", ref_of("why")))
    third = desk.hold(task, bob)
    desk.do(ReportUsage(third, (Used("gpt-5", 0.2),)))
    desk.do(CompleteClaim(third, cost_usd=0.25))
    assert spent(desk, task) == 0.67
    other = desk.task()
    desk.do(CompleteClaim(desk.hold(other, bob), cost_usd=0.5))
    assert by(desk.store, desk.topic, "model") == {"gpt-5": 0.6, "gpt-5-mini": 0.02, "unnamed": 0.55}
    assert by(desk.store, desk.topic, "agent") == {ada: 0.42, bob: 0.75}
    assert by(desk.store, desk.topic, "task") == {task: 0.67, other: 0.5}
    total = usage_of(desk.store, desk.topic, "", "", "day").total
    assert (total.cost_usd, total.input_tokens, total.output_tokens) == (1.17, 1000, 20)
    (counted,) = reconcile(desk.store)
    assert counted.differences == []
    desk.reload()
    assert spent(desk, task) == 0.67
    check_topic(desk.store, desk.topic)


def test_many_small_amounts_add_up_exactly(desk: Desk) -> None:
    ada, task = desk.agent("ada"), desk.task()
    claim = desk.hold(task, ada)
    for _ in range(300):
        desk.do(ReportUsage(claim, (Used("m", 0.000001),)))
    desk.do(CompleteClaim(claim, cost_usd=0.0003))
    assert spent(desk, task) == 0.0003


@pytest.mark.parametrize("scope", ["agent", "day"])
def test_a_cap_of_an_agent_or_a_day_leaves_no_claims(scope: str, desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    first, second = desk.task(), desk.task()
    desk.do(SetPolicy(cost_caps={scope: 1}))
    claim = desk.hold(first, ada)
    desk.do(ReportUsage(claim, (Used("m", 1.25),)))
    desk.do(CompleteClaim(claim, cost_usd=1.25))
    answer = desk.do(ClaimNext(QUEUE, ada, 60)).answer
    assert answer == {"status": "rejected", "reason": "policy", "detail": f"cost_{scope}"}
    rejected = desk.do(ClaimTask(second, ada, 60)).records[-1].event
    assert (rejected.type, rejected.payload.detail) == ("task.claim_rejected", f"cost_{scope}")
    if scope == "agent":
        assert desk.hold(second, bob)
    else:
        desk.tick(86_400)
        assert desk.hold(second, ada)


def test_the_rest_of_the_tightest_cap_is_shown_and_a_cap_can_be_removed(desk: Desk) -> None:
    ada, task = desk.agent("ada"), desk.task()
    claim = desk.hold(task, ada)
    world, agent = desk.world, desk.world.agents[ada]
    assert left(world, world.tasks[task], agent, world.timestamp) is None
    desk.do(SetPolicy(cost_caps={"task": 1, "agent": 5, "workflow": 0.1}))
    desk.do(ReportUsage(claim, (Used("m", 0.75),)))
    assert left(world, world.tasks[task], agent, world.timestamp) == (NANO // 4, "task")
    desk.do(ReportUsage(claim, (Used("m", 0.75),)))
    assert left(world, world.tasks[task], agent, world.timestamp) == (0, "task")
    desk.do(SetPolicy(cost_caps={"task": None}))
    assert left(world, world.tasks[task], agent, world.timestamp) == (NANO * 7 // 2, "agent")
    assert desk.do(SetPolicy(cost_caps={"task": None})).answer == {"unchanged": True}


@pytest.mark.parametrize("scope", ["agent", "day"])
def test_a_call_begins_only_while_the_calls_of_other_claims_leave_something(scope: str, desk: Desk) -> None:
    """A dollar a call and a cap of 2.50: with four claims, three calls are allowed, the third alone."""
    ada = desk.agent("ada")
    desk.do(SetPolicy(cost_caps={scope: 2.5, "task": 9}))
    claims = [desk.hold(desk.task(), ada) for _ in range(4)]

    def asks(claim: str, *used: Used, usd: float = 1.0) -> bool:
        decided = desk.do(ReportUsage(claim, used, usd))
        return any(one.event.payload.reserved_usd is not None for one in decided.records)

    assert asks(claims[0], usd=1_000_000)
    # The cost of the first call is not known yet.
    assert not asks(claims[1])
    assert desk.do(ReportUsage(claims[0], (Used("m", 1.0),))).records
    assert asks(claims[1])
    assert asks(claims[2])
    # Two calls may cost 2 dollars, and 1.50 is left.
    assert not asks(claims[3])
    desk.do(ReportUsage(claims[1], (Used("m", 1.0),)))
    assert not asks(claims[3])
    # An empty report frees what was reserved, once; a call that failed has cost nothing.
    assert len(desk.do(ReportUsage(claims[2])).records) == 1
    assert not desk.do(ReportUsage(claims[2])).records
    assert asks(claims[3])
    desk.do(FailClaim(claims[3], "error", ref_of("why")))
    assert asks(claims[0])
    desk.do(ReportUsage(claims[0], (Used("m", 1.0),)))
    assert not asks(claims[1])
    assert spent(desk, desk.world.claims[claims[0]]) == 2.0
    desk.reload()
    check_topic(desk.store, desk.topic)


def test_calls_of_another_agent_or_run_do_not_count_against_an_agents_cap(desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    desk.do(SetPolicy(cost_caps={"agent": 1}))
    first, second = desk.hold(desk.task(), ada), desk.hold(desk.task(), bob)
    assert desk.do(ReportUsage(first, (), 5.0)).records
    assert desk.do(ReportUsage(second, (), 5.0)).records
    # Only a task is capped: its one claim needs no reservation.
    desk.do(SetPolicy(cost_caps={"agent": None, "task": 1}))
    desk.do(ReportUsage(first))
    assert not desk.do(ReportUsage(first, (), 5.0)).records
