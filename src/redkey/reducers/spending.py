"""What work costs: dollars per task, run, agent and day, and what the workspace's caps leave.

A holder reserves what its next model call may cost. Calls that run at the same time reach a cap together, so a call
begins only while those that already run leave something.

Only reports of holders count (`task.usage_reported`): any cost in a completion that was not reported yet is reported
with the completion. Amounts are whole billionths of a dollar, so sums are exact.
"""

from __future__ import annotations

from typing import Final

from redkey.reducers.entities import Agent, Task
from redkey.reducers.event import Event
from redkey.reducers.world import SECOND, World
from redkey.wire.events import TaskUsageReported

NANO: Final = 1_000_000_000
# The first version of the workspace rules that counts costs.
SPENDING_RULES: Final = 2
_DAY_NANOSECONDS: Final = 86_400 * SECOND


def nano_usd(usd: float) -> int:
    """Convert dollars to whole billionths of a dollar."""
    return round(usd * NANO)


def reported(world: World, task: Task, e: Event, p: TaskUsageReported, before: str) -> None:
    """Add the reported cost to the task, its run, its agent and the day."""
    nano = nano_usd(p.cost_usd)
    task.claim_nano_usd += nano
    task.nano_usd += nano
    task.reserved_nano_usd = nano_usd(p.reserved_usd or 0)
    run = world.runs.get(task.workflow_id)
    if run is not None:
        run.workflow.nano_usd += nano
        e.changes.touch("workflow", task.workflow_id, run.workflow)
    agent = world.agents.get(task.agent_id)
    if agent is not None:
        agent.nano_usd += nano
        e.changes.touch("agent", agent.agent_id)
    workspace, day = world.workspace, e.timestamp // _DAY_NANOSECONDS
    if workspace.spent_day != day:
        workspace.spent_day, workspace.day_nano_usd = day, 0
    workspace.day_nano_usd += nano
    e.changes.touch("workspace", "")


def exhausted(world: World, agent: Agent, now: int) -> str:
    """The exhausted cap that stops the agent from any work: `agent` or `day`; empty when there is none."""
    caps = world.workspace.cost_caps
    if not caps:
        return ""
    spent = {"agent": agent.nano_usd, "day": _spent_today(world, now)}
    return next((scope for scope, nano in spent.items() if scope in caps and nano >= caps[scope]), "")


def left(world: World, task: Task, agent: Agent, now: int) -> tuple[int, str] | None:
    """What the tightest cap leaves for a task, never below zero, and the name of that cap; None without caps."""
    spent, caps = _spent(world, task, agent, now), world.workspace.cost_caps
    return min(((max(0, caps[scope] - spent[scope]), scope) for scope in spent if scope in caps), default=None)


def is_shared(world: World) -> bool:
    """Whether calls under several claims can reach a cap together: any cap but that of a task, which has one claim."""
    return any(scope != "task" for scope in world.workspace.cost_caps)


def may_call(world: World, task: Task, agent: Agent, used: int, now: int) -> bool:
    """Whether the holder of a task may begin a model call, after `used` more billionths of a dollar are counted.

    All caps must leave something after the calls that run now under other claims, at what these have reserved.
    """
    spent, caps = _spent(world, task, agent, now), world.workspace.cost_caps
    others = [world.tasks[task_id] for task_id in world.claims.values() if task_id != task.task_id]
    for other in others:
        spent["day"] += other.reserved_nano_usd
        if other.agent_id == task.agent_id:
            spent["agent"] += other.reserved_nano_usd
        if "workflow" in spent and other.workflow_id == task.workflow_id:
            spent["workflow"] += other.reserved_nano_usd
    return all(nano + used < caps[scope] for scope, nano in spent.items() if scope in caps)


def _spent(world: World, task: Task, agent: Agent, now: int) -> dict[str, int]:
    """What is spent under each cap that holds for a task."""
    spent = {"task": task.nano_usd, "agent": agent.nano_usd, "day": _spent_today(world, now)}
    if (run := world.runs.get(task.workflow_id)) is not None:
        spent["workflow"] = run.workflow.nano_usd
    return spent


def _spent_today(world: World, now: int) -> int:
    return world.workspace.day_nano_usd if world.workspace.spent_day == now // _DAY_NANOSECONDS else 0
