"""Claims: how an agent claims a task, or the next task of a queue; who may claim, and what repeats an earlier outcome.

The commands of holders are defined here too; `holds` decides them and checks that the claim is current.
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
    """Return a claimed task unfinished, so that others may claim it."""

    claim_id: str


@final
class HeartbeatClaim(msgspec.Struct, frozen=True):
    """Extend the lease of a claim."""

    claim_id: str
    # How long a holder without a handler has been idle.
    idle_seconds: int = 0


@final
class BlockClaim(msgspec.Struct, frozen=True):
    """Block the task until others have resolved something."""

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
    # False for the next version of an artifact that this attempt has.
    is_new: bool = True
    derived_from: tuple[str, ...] = ()
    # RedKey has not seen the bytes.
    unverified: bool = False
    # Where the bytes are, if they are elsewhere and the URI fits on the wire.
    uri: str = ""
    # The version in its document.
    version: int = 0
    # The other artifact that it replaces.
    supersedes: str = ""
    # Extensions of an artifact that comes with a completion; a request of its own carries its own extensions.
    extensions: dict[str, Any] | None = None


@final
class PlanClaim(msgspec.Struct, frozen=True):
    """Record the holder's plan for the work."""

    claim_id: str
    plan_ref: Ref


class Used(msgspec.Struct, frozen=True):
    """What was used on one model; `model` is empty if it is unknown."""

    model: str = ""
    cost_usd: float = 0
    input_tokens: int = 0
    output_tokens: int = 0


@final
class ReportUsage(msgspec.Struct, frozen=True):
    """Report what the work has used so far, by model, and what its next model call may cost if it begins one."""

    claim_id: str
    used: tuple[Used, ...] = ()
    reserve_usd: float | None = None


@final
class ReportProgress(msgspec.Struct, frozen=True):
    """Report how far the work has come."""

    claim_id: str
    percent: int | None = None
    text_ref: Ref | None = None


@final
class CompleteClaim(msgspec.Struct, frozen=True):
    """Complete the task and, if requested, claim the next one."""

    claim_id: str
    artifact_ids: tuple[str, ...] = ()
    output_ref: Ref | None = None
    cost_usd: float = 0
    duration_seconds: int | None = None
    semantic: str = "skipped"
    attempts: int = 1
    claim_next: ClaimNext | None = None
    # Artifacts that come with the completion, and artifacts made from its `output` for required outputs without one.
    artifacts: tuple[AddArtifact, ...] = ()
    outputs: tuple[AddArtifact, ...] = ()
    # Ids of artifacts without the unverified mark whose bytes are elsewhere: they are older than the mark.
    unseen: tuple[str, ...] = ()


@final
class FailClaim(msgspec.Struct, frozen=True):
    """End the attempt as failed."""

    claim_id: str
    kind: str
    reason_ref: Ref | None = None
    claim_next: ClaimNext | None = None


# Commands that only the holder of a claim may send.
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
    """Claim one task; a claim that would only repeat an earlier outcome writes nothing."""
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
        # No other agent won, so there is no miss to record.
        return Decision(answer={"reason": "completed_by_you", "detail": task.winner_claim_id})
    miss = _last_miss(world, past, task, agent)
    if miss is not None and _same_outcome(miss, world, task, agent, lease, now):
        return Decision(repeat=miss.sequence)
    attempted = _attempt(world, task, agent, actor, lease, ids)
    if live is not None:
        return Decision([attempted])
    return Decision([attempted, _settle_past(world, attempted, task, agent, max(0, lease), now)])


def _last_miss(world: World, past: Past, task: Task, agent: Agent) -> Miss | None:
    """The agent's last miss or rejection on this attempt, if any."""
    miss = world.misses.get(task.task_id, {}).get(agent.agent_id)
    if miss is None:
        miss = past.last_miss(task.task_id, agent.agent_id)
    return miss if miss is not None and miss.attempt == task.attempt else None


def _same_outcome(miss: Miss, world: World, task: Task, agent: Agent, lease: int, now: int) -> bool:
    """True when the claim would end as before: lost to the same winner, or refused for the same reason."""
    reason, detail = ineligible(world, agent, task, lease, now)
    if reason:
        return (reason, detail) == (miss.reason, miss.detail)
    return miss.winning_claim_id != "" and miss.winning_claim_id == task.winner_claim_id and not open_to(task, now)


def _attempt(world: World, task: Task, agent: Agent, actor: Actor, lease: int, ids: Ids) -> Draft:
    payload = TaskClaimAttempted(
        task_id=task.task_id,
        attempt=task.attempt,
        claim_id="clm_" + ids.ulid(),
        # An impossible lease is recorded too, and rejected by the outcome.
        lease_seconds=max(0, lease),
    )
    wire_id = "wire_" + ids.ulid()
    return Draft(payload, f"agent:{agent.agent_id}", task.context_id, _claimant(world, agent, actor), wire_id=wire_id)


def _claimant(world: World, agent: Agent, actor: Actor) -> str:
    """The sender of a claim: the agent itself, even if a runner sends the request."""
    return f"agent:{agent.slug}" if actor.is_runner else actor.sender(world)


def _settle_past(world: World, attempted: Draft, task: Task, agent: Agent, lease: int, now: int) -> Draft:
    """The outcome of a claim on a task that has left the world, decided by the task's row."""
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
    """Claim the next tasks of a queue, or answer that there are none."""
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
    """The request for the next tasks where a network provides the order: its place in the order decides."""
    payload = QueueClaimRequested(
        queue_id=command.queue_id,
        agent_id=agent.agent_id,
        lease_seconds=command.lease_seconds or None,
        count=command.count if command.count > 1 else None,
    )
    return Draft(payload, f"agent:{agent.agent_id}", f"queue:{command.queue_id}", _claimant(world, agent, actor))


def could_claim(world: World, agent_id: str, queue_id: str, requirement: Requirement) -> bool:
    """True when claim-next would give the agent a task with these requirements now."""
    agent, queue = world.agents.get(agent_id), world.queues[queue_id]
    if agent is None or not agent.active or queue.settings.paused:
        return False
    if agent.live_claims >= queue.settings.max_live_claims:
        return False
    roles, able = requirement
    return set(agent.roles).issuperset(roles) and capabilities(world, agent).issuperset(able)


def acting_agent(world: World, actor: Actor, agent_id: str) -> Agent:
    """The agent that the actor acts for; an agent of another key is reported as missing."""
    agent = world.agents.get(agent_id)
    if agent is None or not actor.may_act_as(agent_id):
        raise not_found("agent")
    return agent


def stream(task: Task) -> str:
    """The stream of the task's current attempt."""
    return task_stream(task.task_id, task.attempt)
