"""Why a task is not running: every reason that applies now, each with one next step."""

from __future__ import annotations

from redkey.ledger.record import iso_time
from redkey.reducers.claim import capabilities
from redkey.reducers.entities import Agent, Task
from redkey.reducers.world import World
from redkey.shapes.problem import NextStep
from redkey.shapes.tasks import Explanation, Reason


def explain(world: World, task: Task) -> Explanation:
    """Explain why the task is not running; no reasons if an agent is working on it."""
    reasons = _REASONS[task.state](world, task)
    running = task.state in ("claimed", "working")
    return Explanation(task_id=task.task_id, state=task.shown_state, running=running, reasons=tuple(reasons))


def _created(world: World, task: Task) -> list[Reason]:
    if task.opens_at > world.timestamp:
        message = f"Attempt {task.attempt - 1} failed; the next one opens at {iso_time(task.opens_at)}."
        return [Reason(code="retry_pause", message=message, next=NextStep(action="wait", task_id=task.task_id))]
    if task.workflow_id:
        return [_turn(world, task)]
    return _unmet(world, task.waits_for, "unmet_dependency", "It waits for {task}, which is {state}.")


def _unmet(world: World, dependencies: tuple[str, ...], code: str, sentence: str) -> list[Reason]:
    """Name each task that must complete first."""
    return [
        Reason(
            code=code,
            message=sentence.format(task=task_id, state=_state(world, task_id)),
            next=NextStep(action="complete_dependency", task_id=task_id),
        )
        for task_id in dependencies
    ]


def _turn(world: World, task: Task) -> Reason:
    """Explain why another attempt at a plan's task waits: the run is paused, or has enough open tasks."""
    if not world.is_running(task):
        return _paused(task)
    message = "As many tasks of its workflow are open as the plan allows."
    return Reason(
        code="parallel_limit", message=message, next=NextStep(action="complete_other_tasks", detail=task.workflow_id)
    )


def _paused(task: Task) -> Reason:
    message = f"Its workflow {task.workflow_id} is paused."
    return Reason(
        code="workflow_paused", message=message, next=NextStep(action="resume_workflow", detail=task.workflow_id)
    )


def _state(world: World, task_id: str) -> str:
    upstream = world.tasks.get(task_id)
    if upstream is None:
        return "gone"
    return "completed and waits for approval" if upstream.gate_id else upstream.state


def _available(world: World, task: Task) -> list[Reason]:
    reasons = []
    if world.queues[task.queue_id].settings.paused:
        resume = NextStep(action="resume_queue", queue_id=task.queue_id)
        reasons.append(Reason(code="queue_paused", message="Its queue is paused.", next=resume))
    if not world.is_running(task):
        reasons.append(_paused(task))
    # While something is paused, nobody may claim it.
    return reasons + [one for one in _claimants(world, task) if not (reasons and one.code == "not_claimed")]


def _claimants(world: World, task: Task) -> list[Reason]:
    """List what keeps agents from claiming it, the most general reason first."""
    holders = list(world.agents.values())
    for role in task.roles:
        holders = [agent for agent in holders if role in agent.roles]
        if not holders:
            grant = NextStep(action="grant_role", role_id=role)
            return [Reason(code="missing_role", message=f"No agent was granted {role}.", next=grant)]
    able = [agent for agent in holders if capabilities(world, agent).issuperset(task.capabilities)]
    if not able:
        wanted = ", ".join(task.capabilities) or "what it needs"
        register = NextStep(action="register_agent", detail=wanted)
        return [Reason(code="missing_capability", message=f"No agent with its roles can do {wanted}.", next=register)]
    alive = [agent for agent in able if agent.active and not agent.lost]
    if not alive:
        return [_none_alive(able)]
    awake = [agent for agent in alive if agent.paused_until <= world.timestamp]
    if not awake:
        return [_all_paused(alive)]
    alive = awake
    limit = world.queues[task.queue_id].settings.max_live_claims
    free = [agent for agent in alive if agent.live_claims < limit and not _full(agent)]
    if not free:
        wait = NextStep(action="wait_or_add_agents", queue_id=task.queue_id)
        return [Reason(code="all_saturated", message="Every eligible agent is at its capacity.", next=wait)]
    names = ", ".join(agent.slug for agent in free[:3])
    claim = NextStep(action="claim", task_id=task.task_id, queue_id=task.queue_id, agent_id=free[0].agent_id)
    return [
        Reason(
            code="not_claimed",
            message=f"It may be claimed, for example by {names}; no agent has asked yet.",
            next=claim,
        )
    ]


def _none_alive(able: list[Agent]) -> Reason:
    lost = next((agent for agent in able if agent.active), None)
    if lost is not None:
        message = f"No eligible agent is alive; {lost.slug} was last seen at {iso_time(lost.last_act_at)}."
        return Reason(
            code="no_agent_alive", message=message, next=NextStep(action="start_agent", agent_id=lost.agent_id)
        )
    message = "Every eligible agent is deactivated."
    step = NextStep(action="activate_agent", agent_id=able[0].agent_id)
    return Reason(code="no_agent_active", message=message, next=step)


def _all_paused(alive: list[Agent]) -> Reason:
    first = min(alive, key=lambda agent: agent.paused_until)
    why = first.pause.replace("_", " ")
    message = f"Every eligible agent is paused; {first.slug} until {iso_time(first.paused_until)} ({why})."
    return Reason(code="agents_paused", message=message, next=NextStep(action="wait", agent_id=first.agent_id))


def _full(agent: Agent) -> bool:
    return 0 <= agent.capacity <= max(agent.in_use, agent.live_claims)


def _held(world: World, task: Task) -> list[Reason]:
    return []


def _blocked(world: World, task: Task) -> list[Reason]:
    if task.blocker_type == "dependency" and task.blocked_by:
        sentence = "It is blocked until {task} completes, which is {state}."
        return _unmet(world, task.blocked_by, "blocked", sentence)
    message = f"An agent blocked it: {task.blocker_type}. The reason is in the task and in the inbox of who can help."
    return [Reason(code="blocked", message=message, next=NextStep(action="unblock", task_id=task.task_id))]


def _completed(world: World, task: Task) -> list[Reason]:
    if not task.gate_id:
        return [Reason(code="completed", message="It is done.", next=NextStep(action="none"))]
    step = NextStep(action="approve_or_reject", detail=task.gate_id)
    return [Reason(code="gate", message="It is done and waits for approval.", next=step)]


def _failed(world: World, task: Task) -> list[Reason]:
    message = f"It failed ({task.failure_kind}) in attempt {task.attempt} of {task.max_attempts}."
    return [Reason(code="failed", message=message, next=NextStep(action="retry", task_id=task.task_id))]


def _cancelled(world: World, task: Task) -> list[Reason]:
    message = f"It was cancelled ({task.cause})."
    return [Reason(code="cancelled", message=message, next=NextStep(action="retry", task_id=task.task_id))]


_REASONS = {
    "created": _created,
    "available": _available,
    "claimed": _held,
    "working": _held,
    "blocked": _blocked,
    "completed": _completed,
    "failed": _failed,
    "cancelled": _cancelled,
}
