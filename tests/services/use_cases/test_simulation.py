"""Simulated plans by their use case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.simulation import simulate_plan
from redkey.shapes.definitions import PlanSimulation
from tests.harness.callers import Callers, with_callers
from tests.harness.runs import plan_of, step

PLAN = plan_of(step("a"), step("b"), step("c", "a", "b"))


def test_a_simulation_takes_as_long_as_its_agents_need_and_records_nothing(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        one = await callers.call(simulate_plan, PlanSimulation(plan=PLAN, each_seconds=60))
        two = await callers.call(simulate_plan, PlanSimulation(plan=PLAN, each_seconds=60, agents={"writer": 2}))
        assert (one.finished, one.left, two.left) == (True, (), ())
        assert one.critical_path_seconds == two.critical_path_seconds
        assert one.makespan_seconds - two.makespan_seconds == pytest.approx(60, abs=5)
        assert (one.most_at_work, two.most_at_work) == (1, 2)
        assert callers.head == head

    with_callers(tmp_path, test)


@pytest.mark.parametrize("plan", [{}, plan_of(step("a", "b"), step("b", "a"))])
def test_a_plan_that_is_not_valid_is_refused(tmp_path: Path, plan: dict[str, Any]) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(Refused) as failed:
            await callers.call(simulate_plan, PlanSimulation(plan=plan))
        assert failed.value.status == 422
        assert all(one.pointer.startswith("/plan") for one in failed.value.findings())

    with_callers(tmp_path, test)


def test_a_caller_without_a_scope_simulates_nothing(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(InsufficientScope):
            await callers.call(simulate_plan, PlanSimulation(plan=PLAN), caller=callers.caller())

    with_callers(tmp_path, test)
