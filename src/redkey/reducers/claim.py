"""What claim wires mean: an attempt is judged at its place in the order, and settled by the outcome that follows.

The first valid attempt reserves the task; later ones have lost to it, whoever writes the outcomes and when.
Checks stand in one order and the first that fails is the reason: active, role, capability, policy, lease,
dependency, task state, race.
"""

from __future__ import annotations

from redkey.reducers.entities import Agent, Miss, Pending, Task
from redkey.reducers.event import Event
from redkey.reducers.spending import exhausted
from redkey.reducers.world import SECOND, World
from redkey.wire.events import TaskClaimAttempted, TaskClaimMissed, TaskClaimRejected

SHORTEST_LEASE_SECONDS = 5
LONGEST_LEASE_SECONDS = 24 * 3600
CLAIM_LIFE_NANOSECONDS = 7 * 24 * 3600 * SECOND

Void = str | None


def attempted(world: World, e: Event, p: TaskClaimAttempted) -> Void:
    agent = world.agents.get(e.subject)
    if agent is None:
        return "unknown_agent"
    _advance(world, agent, e)
    claim_id, task_id = p.claim_id, p.task_id
    if claim_id in world.claims or claim_id in world.pending or claim_id in world.expired:
        return "duplicate_claim"
    task = world.tasks.get(task_id)
    reason, detail = "", ""
    if task is not None and task.attempt == p.attempt:
        reason, detail = ineligible(world, agent, task, p.lease_seconds, e.timestamp)
        if not reason and open_to(task, e.timestamp):
            task.reserved = claim_id
            world.withdraw(task)
            e.changes.touch("task", task.task_id)
            if task.claim_id:
                world.follows("expire", task_id, e.wire_id)
    world.pending[claim_id] = Pending(
        claim_id,
        task_id,
        p.attempt,
        e.subject,
        p.lease_seconds,
        e.wire_id,
        e.timestamp,
        reason,
        detail,
    )
    return None


def open_to(task: Task, now: int) -> bool:
    """True when an eligible claim made now would win: nobody holds the attempt, or only by an expired lease."""
    if task.reserved:
        return False
    if task.state == "available":
        return True
    return task.claim_id != "" and 0 < task.lease_expires_at <= now


def ineligible(world: World, agent: Agent, task: Task, lease_seconds: int, now: int) -> tuple[str, str]:
    """Why the agent may not claim the task, apart from the race: (reason, detail), or empty strings."""
    if not agent.active:
        return "inactive_agent", ""
    for role in task.roles:
        if role not in agent.roles:
            return "missing_role", role
    if task.capabilities:
        able = capabilities(world, agent)
        for capability in task.capabilities:
            if capability not in able:
                return "missing_capability", capability
    queue = world.queues[task.queue_id]
    if agent.live_claims >= queue.settings.max_live_claims:
        return "policy", "live_claims"
    if cap := exhausted(world, agent, now):
        return "policy", f"cost_{cap}"
    if is_limited(agent, now):
        return "policy", "usage_limit"
    if not SHORTEST_LEASE_SECONDS <= lease_seconds <= LONGEST_LEASE_SECONDS:
        return "invalid_lease", f"{SHORTEST_LEASE_SECONDS}-{LONGEST_LEASE_SECONDS}"
    if task.state == "created":
        return "dependency_unsatisfied", min(task.waits_for, default="")
    if task.state in ("blocked", "failed", "cancelled"):
        return "task_not_available", task.state
    if (queue.settings.paused or not world.is_running(task)) and open_to(task, now):
        return "task_not_available", "paused"
    return "", ""


def is_limited(agent: Agent, now: int) -> bool:
    """True while the account of the agent is at its usage limit. Other pauses are the agent's own affair."""
    return agent.account != "" and agent.pause == "usage_limit" and agent.paused_until > now


def capabilities(world: World, agent: Agent) -> set[str]:
    """What an agent can do: its own capabilities and those of the roles it was granted."""
    able = set(agent.capabilities)
    for role in agent.roles:
        able.update(world.roles[role].capabilities)
    return able


def lost(world: World, e: Event, p: TaskClaimMissed | TaskClaimRejected) -> Void:
    """A miss or a rejection: the attempt is settled, and the agent was told why."""
    agent = world.agents.get(e.subject)
    if agent is None:
        return "unknown_agent"
    _advance(world, agent, e)
    pending = world.pending.get(p.claim_id)
    if pending is None:
        return "not_pending"
    del world.pending[pending.claim_id]
    if type(p) is TaskClaimMissed:
        told = Miss(pending.attempt, p.reason, "", p.winning_claim_id, e.sequence)
    else:
        told = Miss(pending.attempt, p.reason, p.detail or "", "", e.sequence)
    task = world.tasks.get(pending.task_id)
    if task is not None:
        if task.reserved == pending.claim_id:
            task.reserved = ""
            world.put_back(task)
            e.changes.touch("task", task.task_id)
        world.misses.setdefault(pending.task_id, {})[pending.agent_id] = told
    e.changes.touch("miss", f"{pending.task_id}/{pending.agent_id}", told)
    return None


def _advance(world: World, agent: Agent, e: Event) -> None:
    agent.stream_seq = max(agent.stream_seq, e.stream.stream_seq)
    e.changes.touch("agent", agent.agent_id)


def lease_end(task: Task, now: int) -> int:
    """When a hold that is extended now ends: a lease from now, but never beyond the life of a claim."""
    return min(now + task.lease_seconds_held * SECOND, task.claimed_at + CLAIM_LIFE_NANOSECONDS)
