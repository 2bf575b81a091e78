"""Claims and holds: claim, claim-next, start, heartbeat, release, block, artifacts, plan, complete, fail.

The fence is here: every act of a holder names its claim, and only the attempt's current claim may write. A late
holder whose task nobody took since gets it back first, on the record.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.commands.caller import Caller
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.reducers.claim import CLAIM_LIFE_NANOSECONDS, capabilities, ineligible, lease_end, open_to
from redkey.reducers.entities import Agent, Task
from redkey.reducers.task import missing_outputs
from redkey.reducers.world import SECOND, World
from redkey.wire.ids import task_stream
from redkey.wire.times import write_time

Ref = dict[str, Any]


class ClaimTask(msgspec.Struct, frozen=True):
    task_id: str
    agent_id: str
    lease_seconds: int = 0
    # Who won a task that has left the world: (claim, agent, queue), read from its row by the caller.
    past: tuple[str, str, str] | None = None


class ClaimNext(msgspec.Struct, frozen=True):
    queue_id: str
    agent_id: str
    lease_seconds: int = 0
    count: int = 1


class StartClaim(msgspec.Struct, frozen=True):
    claim_id: str


class ReleaseClaim(msgspec.Struct, frozen=True):
    claim_id: str


class HeartbeatClaim(msgspec.Struct, frozen=True):
    claim_id: str


class BlockClaim(msgspec.Struct, frozen=True):
    claim_id: str
    blocker_type: str
    reason_ref: Ref
    depends_on: tuple[str, ...] = ()


class AddArtifact(msgspec.Struct, frozen=True):
    claim_id: str
    artifact_id: str
    name: str
    content_ref: Ref
    sha256: str
    bytes: int
    readiness: str = "ready"
    version: int = 1
    derived_from: tuple[str, ...] = ()


class PlanClaim(msgspec.Struct, frozen=True):
    claim_id: str
    plan_ref: Ref


class CompleteClaim(msgspec.Struct, frozen=True):
    claim_id: str
    artifact_ids: tuple[str, ...] = ()
    output_ref: Ref | None = None
    cost_usd: float = 0
    duration_seconds: int | None = None
    semantic: str = "skipped"
    attempts: int = 1
    claim_next: ClaimNext | None = None


class FailClaim(msgspec.Struct, frozen=True):
    claim_id: str
    kind: str
    reason_ref: Ref | None = None
    claim_next: ClaimNext | None = None


def claim_task(world: World, command: ClaimTask, caller: Caller, now: int, ids: Ids) -> Decision:
    agent = acting_agent(world, caller, command.agent_id)
    task = world.tasks.get(command.task_id)
    if task is None:
        return _claim_past(world, command, caller, agent, ids)
    if task.claim_id and task.agent_id == agent.agent_id and task.lease_expires_at > now:
        return Decision(answer={"held": task.claim_id})
    lease = command.lease_seconds or default_lease(world, task)
    told = world.misses.get(task.task_id, {}).get(agent.agent_id)
    if told is not None:
        reason, _ = ineligible(world, agent, task, lease)
        same_winner = not reason and not open_to(task, now) and told.winning_claim_id == task.winner_claim_id != ""
        if reason == told.reason or same_winner:
            return Decision(repeat=told.sequence)
    return Decision([_attempt(world, task.task_id, task.attempt, task.context_id, agent, caller, lease, ids)])


def _attempt(
    world: World, task_id: str, attempt: int, context_id: str, agent: Agent, caller: Caller, lease: int, ids: Ids
) -> Draft:
    payload = {"task_id": task_id, "attempt": attempt, "claim_id": "clm_" + ids.ulid(), "lease_seconds": lease}
    return Draft("task.claim_attempted", f"agent:{agent.agent_id}", payload, context_id, caller.sender(world))


def _claim_past(world: World, command: ClaimTask, caller: Caller, agent: Agent, ids: Ids) -> Decision:
    """A claim on a task that ended long ago: its row tells who won, or that nobody did."""
    if command.past is None:
        raise not_found("task", command.task_id)
    claim_id, agent_id, queue_id = command.past
    lease = command.lease_seconds or world.queues[queue_id].settings.lease_seconds
    attempted = _attempt(world, command.task_id, 1, f"queue:{queue_id}", agent, caller, lease, ids)
    attempted.wire_id = "wire_" + ids.ulid()
    payload: dict[str, Any] = {"task_id": command.task_id, "claim_id": attempted.payload["claim_id"]}
    if claim_id:
        outcome = "task.claim_missed"
        payload |= {
            "attempt": 1,
            "reason": "task_completed",
            "winning_claim_id": claim_id,
            "winning_agent_id": agent_id,
        }
    else:
        outcome = "task.claim_rejected"
        payload |= {"reason": "task_not_available"}
    settled = Draft(outcome, attempted.stream_id, payload, attempted.context_id, causation_id=attempted.wire_id)
    return Decision([attempted, settled])


def claim_next(world: World, command: ClaimNext, caller: Caller, now: int, ids: Ids) -> Decision:
    agent = acting_agent(world, caller, command.agent_id)
    queue = world.queues.get(command.queue_id)
    if queue is None:
        raise not_found("queue", command.queue_id)
    if not agent.active:
        return Decision(answer={"status": "rejected", "reason": "inactive_agent"})
    room = queue.settings.max_live_claims - agent.live_claims
    if room <= 0:
        return Decision(answer={"status": "rejected", "reason": "policy", "detail": "live_claims"})
    chosen = [] if queue.settings.paused else best_tasks(world, agent, queue.queue_id, min(command.count, room))
    if not chosen:
        return Decision(answer={"status": "no_tasks"})
    drafts = []
    for task in chosen:
        lease = command.lease_seconds or default_lease(world, task)
        drafts.append(_attempt(world, task.task_id, task.attempt, task.context_id, agent, caller, lease, ids))
    return Decision(drafts)


def best_tasks(world: World, agent: Agent, queue_id: str, count: int) -> list[Task]:
    """The agent's next tasks in a queue: by priority, then oldest first, among the sets it satisfies."""
    roles, able = set(agent.roles), capabilities(world, agent)
    sets = [key for key in world.heaps.get(queue_id, ()) if roles.issuperset(key[0]) and able.issuperset(key[1])]
    chosen: list[Task] = []
    while len(chosen) < count:
        offers = [offer for key in sets if (offer := world.first_offer(queue_id, key)) is not None]
        if not offers:
            break
        task = world.tasks[min(offers)[2]]
        # Set aside while looking for more; the attempts that follow reserve for good.
        task.reserved = "chosen"
        chosen.append(task)
    for task in chosen:
        task.reserved = ""
        world.put_back(task)
    return chosen


def default_lease(world: World, task: Task) -> int:
    return task.lease_seconds or world.queues[task.queue_id].settings.lease_seconds


def acting_agent(world: World, caller: Caller, agent_id: str) -> Agent:
    """The agent the caller speaks for; another's is answered like a missing one."""
    agent = world.agents.get(agent_id)
    if agent is None or not caller.may_act_as(agent_id):
        raise not_found("agent", agent_id)
    return agent


class Hold(msgspec.Struct):
    """A holder's standing: its task, and the drafts that take an expired hold up again."""

    task: Task
    agent: Agent
    drafts: list[Draft]


def holding(world: World, caller: Caller, claim_id: str, now: int) -> Hold:
    """The fence: the task this claim holds now, or a refusal that says what became of it."""
    task = world.tasks.get(world.claims.get(claim_id, ""))
    if task is not None:
        return Hold(task, acting_agent(world, caller, task.agent_id), [])
    return _reacquire(world, caller, claim_id, now)


def _reacquire(world: World, caller: Caller, claim_id: str, now: int) -> Hold:
    task = world.tasks.get(world.expired.get(claim_id, ""))
    if task is None or task.expired_claim_id != claim_id:
        raise not_found("claim", claim_id)
    agent = acting_agent(world, caller, task.expired_agent_id)
    if task.state != "available" or task.reserved:
        raise lease_lost(task)
    lease = default_lease(world, task)
    payload = {
        "claim_id": claim_id,
        "agent_id": agent.agent_id,
        "lease_expires_at": write_time(now + lease * SECOND),
        "reacquired": True,
    }
    again = Draft("task.lease_extended", stream(task), payload, task.context_id, caller.sender(world))
    return Hold(task, agent, [again])


def lease_lost(task: Task) -> Refused:
    now = task.agent_id and f" {task.agent_id} holds it now."
    return Refused(409, "lease_lost", f"This claim no longer holds {task.task_id}.{now} Stop working on it.")


def stream(task: Task) -> str:
    return task_stream(task.task_id, task.attempt)


def _act(
    world: World, caller: Caller, claim_id: str, now: int, event: str, payload: dict[str, Any]
) -> tuple[Hold, Decision]:
    hold = holding(world, caller, claim_id, now)
    body = {"claim_id": claim_id, "agent_id": hold.agent.agent_id, **payload}
    draft = Draft(event, stream(hold.task), body, hold.task.context_id, caller.sender(world))
    return hold, Decision([*hold.drafts, draft])


def start(world: World, command: StartClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    hold, decision = _act(world, caller, command.claim_id, now, "task.started", {})
    if hold.task.state == "working" or hold.task.expired_state == "working":
        raise Refused(409, "already_started", "This claim has been started before.")
    return decision


def release(world: World, command: ReleaseClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    return _act(world, caller, command.claim_id, now, "task.released", {})[1]


def heartbeat(world: World, command: HeartbeatClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    """Extend a hold of which less than half is left; else the durable deadline is the answer."""
    hold = holding(world, caller, command.claim_id, now)
    task = hold.task
    if hold.drafts:
        return Decision(hold.drafts)
    lease = task.lease_seconds_held or default_lease(world, task)
    until = lease_end(task, task.claimed_at, now, lease)
    if task.lease_expires_at - now >= lease * SECOND // 2 or until <= task.lease_expires_at:
        return Decision(answer={"state": "held", "lease_expires_at": task.lease_expires_at})
    payload = {"claim_id": command.claim_id, "agent_id": task.agent_id, "lease_expires_at": write_time(until)}
    return Decision([Draft("task.lease_extended", stream(task), payload, task.context_id, caller.sender(world))])


def block(world: World, command: BlockClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    payload: dict[str, Any] = {"blocker_type": command.blocker_type, "reason_ref": command.reason_ref}
    if command.depends_on:
        payload["depends_on"] = list(command.depends_on)
    hold, decision = _act(world, caller, command.claim_id, now, "task.blocked", payload)
    for dependency in command.depends_on:
        if dependency not in world.tasks or dependency == hold.task.task_id:
            raise Refused(422, "unknown_dependency", f"{dependency[:64]!r} is not another live task.", "/dependsOn")
    decision.drafts[-1].payload["attempts"] = hold.task.attempt
    return decision


def add_artifact(world: World, command: AddArtifact, caller: Caller, now: int, ids: Ids) -> Decision:
    hold = holding(world, caller, command.claim_id, now)
    payload: dict[str, Any] = {
        "claim_id": command.claim_id,
        "artifact_id": command.artifact_id,
        "name": command.name,
        "version": command.version,
        "content_ref": command.content_ref,
        "sha256": command.sha256,
        "bytes": command.bytes,
        "readiness": command.readiness,
    }
    if command.derived_from:
        payload["derived_from"] = list(command.derived_from)
    draft = Draft("artifact.ready", stream(hold.task), payload, hold.task.context_id, caller.sender(world))
    return Decision([*hold.drafts, draft])


def plan(world: World, command: PlanClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    return _act(world, caller, command.claim_id, now, "task.plan.created", {"plan_ref": command.plan_ref})[1]


def complete(world: World, command: CompleteClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    hold = holding(world, caller, command.claim_id, now)
    task = hold.task
    ready = [artifact.artifact_id for artifact in task.artifacts if artifact.readiness != "draft"]
    artifact_ids = list(command.artifact_ids) or ready[:6]
    missing = missing_outputs(task, artifact_ids)
    if missing:
        names = ", ".join(missing[:8])
        raise Refused(422, "missing_artifact", f"No ready artifact on this attempt for: {names}.", "/artifactIds")
    duration = command.duration_seconds
    if duration is None:
        duration = max(0, now - (task.started_at or task.claimed_at)) // SECOND
    payload: dict[str, Any] = {
        "claim_id": command.claim_id,
        "agent_id": hold.agent.agent_id,
        "artifact_ids": artifact_ids,
        "cost_usd": command.cost_usd,
        "duration_seconds": min(duration, CLAIM_LIFE_NANOSECONDS // SECOND),
        "verification": {"mechanical": "pass", "semantic": command.semantic, "attempts": command.attempts},
    }
    if command.output_ref is not None:
        payload["output_ref"] = command.output_ref
    draft = Draft("task.complete", stream(task), payload, task.context_id, caller.sender(world))
    return Decision([*hold.drafts, draft])


def fail(world: World, command: FailClaim, caller: Caller, now: int, ids: Ids) -> Decision:
    hold = holding(world, caller, command.claim_id, now)
    payload: dict[str, Any] = {
        "claim_id": command.claim_id,
        "agent_id": hold.agent.agent_id,
        "kind": command.kind,
        "retry": retries(hold.task, command.kind),
    }
    if command.reason_ref is not None:
        payload["reason_ref"] = command.reason_ref
    draft = Draft("task.failed", stream(hold.task), payload, hold.task.context_id, caller.sender(world))
    return Decision([*hold.drafts, draft])


def retries(task: Task, kind: str) -> bool:
    """Another attempt follows a failure while the policy has attempts left; a rejected task is never tried again."""
    return kind not in ("rejected", "deadline", "dependency_failed") and task.attempt < task.max_attempts
