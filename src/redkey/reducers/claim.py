"""What claim wires mean: a claim attempt is judged at its place in the order; the outcome wire that follows settles it.

The first valid attempt reserves the task; later attempts lose to it, no matter which server writes the outcomes or
when. The checks run in a fixed order and the first that fails is the reason: active, role, capability, policy, lease,
dependency, task state, race.
"""

from __future__ import annotations

from redkey.reducers.entities import Agent, Miss, Pending, Queue, Task
from redkey.reducers.event import Event
from redkey.reducers.spending import exhausted
from redkey.reducers.world import SECOND, World, in_order
from redkey.wire.events import QueueClaimRequested, TaskClaimAttempted, TaskClaimMissed, TaskClaimRejected

SHORTEST_LEASE_SECONDS = 5
LONGEST_LEASE_SECONDS = 24 * 3600
CLAIM_LIFE_NANOSECONDS = 7 * 24 * 3600 * SECOND
# Agenda kind: the claim attempt that follows from a request for the next task of a queue.
ATTEMPT = "attempt:"
# Why a request for the next task is void when the queue has none for the agent.
NO_TASKS = "no_tasks"

Void = str | None


def attempted(world: World, e: Event, p: TaskClaimAttempted) -> Void:
    """An agent tries to claim a task: reserve it if the claim wins, and remember the attempt until its outcome."""
    agent = world.agents.get(e.subject)
    if agent is None:
        return "unknown_agent"
    _advance(world, agent, e)
    claim_id, task_id = p.claim_id, p.task_id
    if world.agenda:
        # This may be the attempt that follows from a request for the next task.
        world.agenda.pop((f"{ATTEMPT}{agent.agent_id}:{p.lease_seconds}", task_id), None)
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


def requested(world: World, e: Event, p: QueueClaimRequested) -> Void:
    """An agent asks for the next tasks of a queue: put a claim attempt for each of them on the agenda."""
    agent = world.agents.get(e.subject)
    if agent is None:
        return "unknown_agent"
    _advance(world, agent, e)
    queue = world.queues.get(p.queue_id)
    if queue is None:
        return "unknown_queue"
    lease = p.lease_seconds or 0
    chosen, reason, detail = next_tasks(world, agent, queue, lease, p.count or 1, e.timestamp)
    if not chosen:
        return detail or reason or NO_TASKS
    for task in chosen:
        world.follows(f"{ATTEMPT}{agent.agent_id}:{lease or default_lease(world, task)}", task.task_id, e.wire_id)
    return None


def next_tasks(
    world: World, agent: Agent, queue: Queue, lease_seconds: int, count: int, now: int
) -> tuple[list[Task], str, str]:
    """The tasks that an agent would get from a queue now; if none, why the agent may not ask: (reason, detail).

    With `lease_seconds` 0 the lease of each task or of its queue applies.
    """
    if not agent.active:
        return [], "inactive_agent", ""
    if lease_seconds and not SHORTEST_LEASE_SECONDS <= lease_seconds <= LONGEST_LEASE_SECONDS:
        return [], "invalid_lease", f"{SHORTEST_LEASE_SECONDS}-{LONGEST_LEASE_SECONDS}"
    room = queue.settings.max_live_claims - agent.live_claims
    if room <= 0:
        return [], "policy", "live_claims"
    if cap := exhausted(world, agent, now):
        return [], "policy", f"cost_{cap}"
    if is_limited(agent, now):
        return [], "policy", "usage_limit"
    return [] if queue.settings.paused else best_tasks(world, agent, queue.queue_id, min(count, room)), "", ""


def best_tasks(world: World, agent: Agent, queue_id: str, count: int) -> list[Task]:
    """The agent's next tasks in a queue: by priority, then oldest first, among the requirements it meets."""
    sets = world.heaps.get(queue_id)
    if not sets:
        return []
    roles, able = set(agent.roles), capabilities(world, agent)
    heaps = [heap for key, heap in sets.items() if roles.issuperset(key[0]) and able.issuperset(key[1])]
    if not heaps:
        return []
    if count == 1:
        # The top entry of each heap is always valid.
        best = heaps[0][0] if len(heaps) == 1 else min([heap[0] for heap in heaps])
        return [world.tasks[best[2]]]
    # Entries skipped here are stale; the fold of the attempts that follow drops them.
    valid_ids = (entry[2] for entry in in_order(heaps) if world.is_offer(entry))
    chosen: dict[str, Task] = {}
    for task_id in valid_ids:
        chosen[task_id] = world.tasks[task_id]
        if len(chosen) == count:
            break
    return [*chosen.values()]


def default_lease(world: World, task: Task) -> int:
    """The lease of a claim that does not ask for one."""
    return task.lease_seconds or world.queues[task.queue_id].settings.lease_seconds


def open_to(task: Task, now: int) -> bool:
    """True when an eligible claim made now would win: the attempt has no holder, or the holder's lease expired."""
    if task.reserved:
        return False
    if task.state == "available":
        return True
    return task.claim_id != "" and 0 < task.lease_expires_at <= now


def ineligible(world: World, agent: Agent, task: Task, lease_seconds: int, now: int) -> tuple[str, str]:
    """Why the agent may not claim the task, other than losing the race: (reason, detail), or empty strings."""
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
    """True while the agent's account is at its usage limit. Pauses for other reasons do not stop claims."""
    return agent.account != "" and agent.pause == "usage_limit" and agent.paused_until > now


def capabilities(world: World, agent: Agent) -> set[str]:
    """An agent's capabilities: its own and those of its roles."""
    able = set(agent.capabilities)
    for role in agent.roles:
        able.update(world.roles[role].capabilities)
    return able


def lost(world: World, e: Event, p: TaskClaimMissed | TaskClaimRejected) -> Void:
    """A claim attempt was missed or rejected: settle it and keep the outcome for the agent."""
    agent = world.agents.get(e.subject)
    if agent is None:
        return "unknown_agent"
    _advance(world, agent, e)
    pending = world.pending.get(p.claim_id)
    if pending is None:
        return "not_pending"
    del world.pending[pending.claim_id]
    if type(p) is TaskClaimMissed:
        miss = Miss(pending.attempt, p.reason, "", p.winning_claim_id, e.sequence)
    else:
        miss = Miss(pending.attempt, p.reason, p.detail or "", "", e.sequence)
    task = world.tasks.get(pending.task_id)
    if task is not None:
        if task.reserved == pending.claim_id:
            task.reserved = ""
            world.put_back(task)
            e.changes.touch("task", task.task_id)
        world.misses.setdefault(pending.task_id, {})[pending.agent_id] = miss
    e.changes.touch("miss", f"{pending.task_id}/{pending.agent_id}", miss)
    return None


def _advance(world: World, agent: Agent, e: Event) -> None:
    agent.stream_seq = max(agent.stream_seq, e.stream.stream_seq)
    e.changes.touch("agent", agent.agent_id)


def lease_end(task: Task, now: int) -> int:
    """When a lease that is extended now ends: one lease from now, but not beyond the maximum life of a claim."""
    return min(now + task.lease_seconds_held * SECOND, task.claimed_at + CLAIM_LIFE_NANOSECONDS)
