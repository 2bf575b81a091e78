"""Claims: how an agent asks for a task, or for the next one of a queue; who may, and who has been told before.

The commands of holders stand here too; what they do to a hold, and the fence before it, is `holds`'s.
"""

from __future__ import annotations

from typing import cast, final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.reducers.claim import (
    LONGEST_LEASE_SECONDS,
    SHORTEST_LEASE_SECONDS,
    capabilities,
    ineligible,
    is_limited,
    open_to,
)
from redkey.reducers.entities import Agent, Miss, Requirement, Task
from redkey.reducers.spending import exhausted
from redkey.reducers.world import World, in_order
from redkey.wire.events import Ref, TaskClaimAttempted, TaskClaimMissed, TaskClaimRejected
from redkey.wire.ids import task_stream


@final
class ClaimTask(msgspec.Struct, frozen=True):
    """Claim one task for an agent."""

    task_id: str
    agent_id: str
    lease_seconds: int = 0


@final
class ClaimNext(msgspec.Struct, frozen=True):
    """Claim the next tasks of a queue that the agent may take, up to `count`."""

    queue_id: str
    agent_id: str
    lease_seconds: int = 0
    count: int = 1


@final
class StartClaim(msgspec.Struct, frozen=True):
    """Start work on a claimed task."""

    claim_id: str


@final
class ReleaseClaim(msgspec.Struct, frozen=True):
    """Give a claimed task back, unfinished."""

    claim_id: str


@final
class HeartbeatClaim(msgspec.Struct, frozen=True):
    """Extend the lease of a claim."""

    claim_id: str
    # For how long a holder without a handler has done nothing.
    idle_seconds: int = 0


@final
class BlockClaim(msgspec.Struct, frozen=True):
    """Block the task: others must resolve something first."""

    claim_id: str
    blocker_type: str
    reason_ref: Ref
    depends_on: tuple[str, ...] = ()


@final
class AddArtifact(msgspec.Struct, frozen=True):
    """Record an artifact of the attempt, or its next version."""

    claim_id: str
    artifact_id: str
    name: str
    content_ref: Ref
    sha256: str
    bytes: int
    readiness: str = "ready"
    # Otherwise it is the next version of one that this attempt has.
    is_new: bool = True
    derived_from: tuple[str, ...] = ()
    # RedKey did not see the bytes.
    unverified: bool = False


@final
class PlanClaim(msgspec.Struct, frozen=True):
    """Record how the holder will do the work."""

    claim_id: str
    plan_ref: Ref


class Used(msgspec.Struct, frozen=True):
    """What was used on one model; without a name, on one that nobody names."""

    model: str = ""
    cost_usd: float = 0
    input_tokens: int = 0
    output_tokens: int = 0


@final
class ReportUsage(msgspec.Struct, frozen=True):
    claim_id: str
    used: tuple[Used, ...] = ()


@final
class ReportProgress(msgspec.Struct, frozen=True):
    """Say how far the work has come."""

    claim_id: str
    percent: int | None = None
    text_ref: Ref | None = None


@final
class CompleteClaim(msgspec.Struct, frozen=True):
    """Complete the task, and claim the next one if asked to."""

    claim_id: str
    artifact_ids: tuple[str, ...] = ()
    output_ref: Ref | None = None
    cost_usd: float = 0
    duration_seconds: int | None = None
    semantic: str = "skipped"
    attempts: int = 1
    claim_next: ClaimNext | None = None
    # Artifacts that come with the completion, and those that stand for required outputs which have none.
    artifacts: tuple[AddArtifact, ...] = ()
    outputs: tuple[AddArtifact, ...] = ()
    # Artifacts that are not marked as unverified, and whose bytes are elsewhere: they are older than the mark.
    unseen: tuple[str, ...] = ()


@final
class FailClaim(msgspec.Struct, frozen=True):
    """End the attempt as failed."""

    claim_id: str
    kind: str
    reason_ref: Ref | None = None
    claim_next: ClaimNext | None = None


# What only the holder of a claim may ask for.
HolderCommand = (
    StartClaim
    | ReleaseClaim
    | HeartbeatClaim
    | BlockClaim
    | AddArtifact
    | PlanClaim
    | ReportUsage
    | ReportProgress
    | CompleteClaim
    | FailClaim
)


def claim_task(world: World, command: ClaimTask, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    agent = acting_agent(world, actor, command.agent_id)
    live = world.tasks.get(command.task_id)
    task = live or past.task(command.task_id)
    if task is None:
        raise not_found("task")
    if task.claim_id and task.agent_id == agent.agent_id and task.lease_expires_at > now:
        return Decision(answer={"held": task.claim_id})
    lease = command.lease_seconds or default_lease(world, task)
    own = task.state == "completed" and task.winner_agent_id == agent.agent_id
    if own and not ineligible(world, agent, task, lease, now)[0]:
        # Nobody else won: there is no miss to record.
        return Decision(answer={"reason": "completed_by_you", "detail": task.winner_claim_id})
    told = _told(world, past, task, agent)
    if told is not None and _as_before(told, world, task, agent, lease, now):
        return Decision(repeat=told.sequence)
    attempted = _attempt(world, task, agent, actor, lease, ids)
    if live is not None:
        return Decision([attempted])
    return Decision([attempted, _settle_past(world, attempted, task, agent, max(0, lease), now)])


def _told(world: World, past: Past, task: Task, agent: Agent) -> Miss | None:
    """What the agent was told for this attempt, if it lost or was refused before."""
    told = world.misses.get(task.task_id, {}).get(agent.agent_id)
    if told is None:
        told = past.told(task.task_id, agent.agent_id)
    return told if told is not None and told.attempt == task.attempt else None


def _as_before(told: Miss, world: World, task: Task, agent: Agent, lease: int, now: int) -> bool:
    """True when the claim would end as the agent was told before: lost to the same winner, or refused alike."""
    reason, detail = ineligible(world, agent, task, lease, now)
    if reason:
        return (reason, detail) == (told.reason, told.detail)
    return told.winning_claim_id != "" and told.winning_claim_id == task.winner_claim_id and not open_to(task, now)


def _attempt(world: World, task: Task, agent: Agent, actor: Actor, lease: int, ids: Ids) -> Draft:
    payload = TaskClaimAttempted(
        task_id=task.task_id,
        attempt=task.attempt,
        claim_id="clm_" + ids.ulid(),
        # A lease that nobody can have is asked for on the record too, and rejected there.
        lease_seconds=max(0, lease),
    )
    wire_id = "wire_" + ids.ulid()
    # A claim is the agent's own, also where a runner asks for it.
    sender = f"agent:{agent.slug}" if actor.is_runner else actor.sender(world)
    return Draft(payload, f"agent:{agent.agent_id}", task.context_id, sender, wire_id=wire_id)


def _settle_past(world: World, attempted: Draft, task: Task, agent: Agent, lease: int, now: int) -> Draft:
    """The outcome of a claim on a task that has left the world: its row tells what the world no longer can."""
    reason, detail = ineligible(world, agent, task, lease, now)
    claim_id = cast(TaskClaimAttempted, attempted.payload).claim_id
    payload: TaskClaimRejected | TaskClaimMissed
    if reason or not task.winner_claim_id:
        payload = TaskClaimRejected(
            task_id=task.task_id, claim_id=claim_id, reason=reason or "task_not_available", detail=detail or None
        )
    else:
        payload = TaskClaimMissed(
            task_id=task.task_id,
            claim_id=claim_id,
            attempt=task.attempt,
            reason="task_completed",
            winning_claim_id=task.winner_claim_id,
            winning_agent_id=task.winner_agent_id,
        )
    return Draft(payload, attempted.stream_id, attempted.context_id, causation_id=attempted.wire_id)


def claim_next(world: World, command: ClaimNext, actor: Actor, now: int, ids: Ids) -> Decision:
    agent = acting_agent(world, actor, command.agent_id)
    queue = world.queues.get(command.queue_id)
    if queue is None:
        raise not_found("queue")
    if not agent.active:
        return Decision(answer={"status": "rejected", "reason": "inactive_agent"})
    if command.lease_seconds and not SHORTEST_LEASE_SECONDS <= command.lease_seconds <= LONGEST_LEASE_SECONDS:
        bounds = f"{SHORTEST_LEASE_SECONDS}-{LONGEST_LEASE_SECONDS}"
        return Decision(answer={"status": "rejected", "reason": "invalid_lease", "detail": bounds})
    room = queue.settings.max_live_claims - agent.live_claims
    if room <= 0:
        return Decision(answer={"status": "rejected", "reason": "policy", "detail": "live_claims"})
    if cap := exhausted(world, agent, now):
        return Decision(answer={"status": "rejected", "reason": "policy", "detail": f"cost_{cap}"})
    if is_limited(agent, now):
        return Decision(answer={"status": "rejected", "reason": "policy", "detail": "usage_limit"})
    chosen = [] if queue.settings.paused else best_tasks(world, agent, queue.queue_id, min(command.count, room))
    if not chosen:
        return Decision(answer={"status": "no_tasks"})
    drafts = []
    for task in chosen:
        lease = command.lease_seconds or default_lease(world, task)
        drafts.append(_attempt(world, task, agent, actor, lease, ids))
    return Decision(drafts)


def could_claim(world: World, agent_id: str, queue_id: str, requirement: Requirement) -> bool:
    """True when a task that asks this much of an agent is one that claim-next would give it now."""
    agent, queue = world.agents.get(agent_id), world.queues[queue_id]
    if agent is None or not agent.active or queue.settings.paused:
        return False
    if agent.live_claims >= queue.settings.max_live_claims:
        return False
    roles, able = requirement
    return set(agent.roles).issuperset(roles) and capabilities(world, agent).issuperset(able)


def best_tasks(world: World, agent: Agent, queue_id: str, count: int) -> list[Task]:
    """The agent's next tasks in a queue: by priority, then oldest first, among the sets it satisfies."""
    sets = world.heaps.get(queue_id)
    if not sets:
        return []
    roles, able = set(agent.roles), capabilities(world, agent)
    heaps = [heap for key, heap in sets.items() if roles.issuperset(key[0]) and able.issuperset(key[1])]
    if not heaps:
        return []
    if count == 1:
        # The best of each set is a true offer.
        best = heaps[0][0] if len(heaps) == 1 else min([heap[0] for heap in heaps])
        return [world.tasks[best[2]]]
    # What is passed over here is no longer true, and is dropped by the fold of the attempts that follow.
    true = (entry[2] for entry in in_order(heaps) if world.is_offer(entry))
    chosen: dict[str, Task] = {}
    for task_id in true:
        chosen[task_id] = world.tasks[task_id]
        if len(chosen) == count:
            break
    return [*chosen.values()]


def default_lease(world: World, task: Task) -> int:
    return task.lease_seconds or world.queues[task.queue_id].settings.lease_seconds


def acting_agent(world: World, actor: Actor, agent_id: str) -> Agent:
    """The agent the actor speaks for; another's is answered like a missing one."""
    agent = world.agents.get(agent_id)
    if agent is None or not actor.may_act_as(agent_id):
        raise not_found("agent")
    return agent


def stream(task: Task) -> str:
    return task_stream(task.task_id, task.attempt)
