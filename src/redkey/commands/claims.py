"""Claims: how an agent asks for a task, or for the next one of a queue; who may, and who has been told before.

The commands of holders stand here too; what they do to a hold, and the fence before it, is `holds`'s.
"""

from __future__ import annotations

from typing import Any, cast, final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.reducers.claim import capabilities, default_lease, ineligible, next_tasks, open_to
from redkey.reducers.entities import Agent, Miss, Requirement, Task
from redkey.reducers.world import World
from redkey.wire.events import QueueClaimRequested, Ref, TaskClaimAttempted, TaskClaimMissed, TaskClaimRejected
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
    # Where they are, when that is elsewhere and fits a wire.
    uri: str = ""
    # The version that its document names.
    version: int = 0
    # Another artifact that it replaces.
    supersedes: str = ""
    # Of one that comes with a completion; those of a request by itself come with the request.
    extensions: dict[str, Any] | None = None


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
    return Draft(payload, f"agent:{agent.agent_id}", task.context_id, _claimant(world, agent, actor), wire_id=wire_id)


def _claimant(world: World, agent: Agent, actor: Actor) -> str:
    """The sender of a claim: it is the agent's own, also where a runner asks for it."""
    return f"agent:{agent.slug}" if actor.is_runner else actor.sender(world)


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
    lease, count = command.lease_seconds, command.count
    chosen, reason, detail = next_tasks(world, agent, queue, lease, count, now)
    if reason:
        answer = {"status": "rejected", "reason": reason}
        return Decision(answer={**answer, "detail": detail} if detail else answer)
    if not chosen:
        return Decision(answer={"status": "no_tasks"})
    if world.workspace.is_ordered:
        return Decision([request_next(world, command, agent, actor)])
    return Decision([_attempt(world, task, agent, actor, lease or default_lease(world, task), ids) for task in chosen])


def request_next(world: World, command: ClaimNext, agent: Agent, actor: Actor) -> Draft:
    """The request for the next tasks of a queue, where a network gives the order: judged at its place."""
    payload = QueueClaimRequested(
        queue_id=command.queue_id,
        agent_id=agent.agent_id,
        lease_seconds=command.lease_seconds or None,
        count=command.count if command.count > 1 else None,
    )
    return Draft(payload, f"agent:{agent.agent_id}", f"queue:{command.queue_id}", _claimant(world, agent, actor))


def could_claim(world: World, agent_id: str, queue_id: str, requirement: Requirement) -> bool:
    """True when a task that asks this much of an agent is one that claim-next would give it now."""
    agent, queue = world.agents.get(agent_id), world.queues[queue_id]
    if agent is None or not agent.active or queue.settings.paused:
        return False
    if agent.live_claims >= queue.settings.max_live_claims:
        return False
    roles, able = requirement
    return set(agent.roles).issuperset(roles) and capabilities(world, agent).issuperset(able)


def acting_agent(world: World, actor: Actor, agent_id: str) -> Agent:
    """The agent the actor speaks for; another's is answered like a missing one."""
    agent = world.agents.get(agent_id)
    if agent is None or not actor.may_act_as(agent_id):
        raise not_found("agent")
    return agent


def stream(task: Task) -> str:
    return task_stream(task.task_id, task.attempt)
