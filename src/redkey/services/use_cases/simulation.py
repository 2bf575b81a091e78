"""Plans simulated before agents are paid for them."""

from __future__ import annotations

import msgspec

from redkey.commands.decision import Refused
from redkey.services.caller import Caller
from redkey.services.costs import cost_of_tasks
from redkey.services.simulation import Assumptions, SimulatedClock, simulate
from redkey.services.use_case import use_case
from redkey.services.use_cases.plans import checked, plan_invalid
from redkey.shapes import definitions
from redkey.shapes.definitions import PlanForecast, PlanSimulation
from redkey.wire.names import role_id

_MOST_TASKS = 1000


@use_case(definitions.SIMULATE_PLAN)
async def simulate_plan(caller: Caller, asked: PlanSimulation) -> PlanForecast:
    """Run a plan in memory under a simulated clock."""
    found = await checked(caller, asked.plan)
    if not found.valid:
        raise plan_invalid(found, "/plan")
    tasks = len(asked.plan["tasks"])
    if tasks > _MOST_TASKS:
        detail = f"A plan of up to {_MOST_TASKS:,} tasks can be simulated here; `redkey plan simulate` takes any."
        raise Refused(422, "plan_too_large", detail)
    # A simulated task costs about as much as a recorded one.
    caller.charge(cost_of_tasks(tasks))
    agents = {role_id(name): count for name, count in asked.agents.items()}
    assumed = Assumptions(agents, asked.seconds, asked.each_seconds, asked.gate_seconds)

    def run() -> PlanForecast:
        clock = SimulatedClock()
        report = simulate(asked.plan, assumed, caller.means.scratch_store(clock), clock)
        return msgspec.convert(report, PlanForecast, from_attributes=True)

    return await caller.in_thread(run)
