"""What records mean for tasks: what each wire after `task.created` changes in the workspace.

`attempt` decides which wires apply and who holds the task then. This module updates the rest of the world: the index of
claims, the offers that claim-next reads, and the agenda. An event that ends a hold, frees a dependent or calls for a
retry puts the next step on the agenda; the wire that records the step takes it off again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from redkey.reducers import progress, steps
from redkey.reducers.attempt import ATTEMPT_ENDED, TaskEvent, apply
from redkey.reducers.entities import Artifact, StoredArtifact, Superseded, Task
from redkey.reducers.event import Event
from redkey.reducers.world import BLOCK_ROUTES, SECOND, SUPERVISOR_ROLE, World
from redkey.wire.events import (
    ArtifactReady,
    ArtifactSuperseded,
    TaskAvailable,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskComplete,
    TaskFailed,
    TaskLeaseExpired,
    TaskLeaseExtended,
    TaskReleased,
    TaskStalled,
    TaskStarted,
    TaskUnblocked,
)
from redkey.wire.times import parse_time

Void = str | None
P = TypeVar("P", bound=TaskEvent)

# The first version of the workspace rules under which acts on a task name the wire that they follow from.
LINEAGE_RULES = 2
# States that no act of a holder follows from: many tasks stay in them for long.
_OPEN_ENDED = frozenset({"created", "available", "completed"})


def is_done(world: World, task_id: str) -> bool:
    """True when dependents no longer wait for the task; one that has left the world was completed long ago."""
    task = world.tasks.get(task_id)
    return task is None or (task.state == "completed" and (task.gate is None or task.gate_passed))


def is_hopeless(task: Task) -> bool:
    """True when dependents of the task fail with it; under `on_failure: block` they wait for a person instead."""
    return task.state == "cancelled" or (task.on_failure != "block" and (task.state == "failed" or was_rejected(task)))


def retries(task: Task, kind: str) -> bool:
    """True when another attempt follows a failure: the policy has attempts left, and the task was not rejected."""
    if kind in ("rejected", "deadline", "dependency_failed"):
        return False
    return task.on_failure == "reopen" and task.attempt < task.max_attempts


def was_rejected(task: Task) -> bool:
    """True when the attempt was completed and its approver rejected it."""
    return task.state == "completed" and task.gate is not None and not task.gate_passed and not task.gate_id


def moved(world: World, e: Event, p: P, follow: Callable[[World, Task, Event, P, str], None] | None = None) -> Void:
    """Fold any wire after `task.created` into its attempt, then apply what follows from it in the workspace."""
    task = world.tasks.get(e.subject)
    if task is None:
        return "not_created"
    if task.attempt != e.attempt:
        return ATTEMPT_ENDED if e.attempt < task.attempt else "not_created"
    if e.stream.stream_seq > task.stream_seq:
        task.stream_seq = e.stream.stream_seq
        e.changes.touch("task", e.subject)
    if type(p) is TaskAvailable and _is_early(world, task, e):
        return "dependency_unsatisfied"
    before, claim_id, agent_id, expired = task.state, task.claim_id, task.agent_id, task.expired_claim_id
    reason = apply(task, p, world.workspace)
    if reason is not None:
        return reason
    task.updated_at = e.timestamp
    e.changes.touch("task", e.subject)
    if task.claim_id != claim_id:
        _hold_changed(world, task, e, claim_id, agent_id)
    if task.expired_claim_id != expired:
        world.expired.pop(expired, None)
        if task.expired_claim_id:
            world.expired[task.expired_claim_id] = task.task_id
    if follow is not None:
        follow(world, task, e, p, before)
    if task.state != before:
        if world.workspace.rules >= LINEAGE_RULES:
            task.moved_by = "" if task.state in _OPEN_ENDED else e.wire_id
        if before == "available":
            world.withdraw(task)
        if task.workflow_id:
            steps.moved(world, task, before, e)
    return None


def _hold_changed(world: World, task: Task, e: Event, claim_id: str, agent_id: str) -> None:
    """Update the index of claims and the agents' counts: the attempt has another hold than before, or none."""
    if claim_id:
        world.claims.pop(claim_id, None)
        _count_claim(world, agent_id, -1, e)
        # A hold that has ended has no lease that could expire.
        world.agenda.pop(("expire", task.task_id), None)
        task.lease_expires_at = 0
        if not task.expired_claim_id:
            task.lease_seconds_held = 0
    if task.claim_id:
        world.claims[task.claim_id] = task.task_id
        _count_claim(world, task.agent_id, 1, e)


def _is_early(world: World, task: Task, e: Event) -> bool:
    """True while the task must wait: for a dependency, for its time, or for room in its run."""
    if task.state != "created":
        return False
    return task.opens_at > e.timestamp or bool(steps.is_early(world, task) if task.workflow_id else task.waits_for)


def available(world: World, task: Task, e: Event, p: TaskAvailable, before: str) -> None:
    """Offer the task to claims."""
    world.agenda.pop(("available", task.task_id), None)
    world.offer(task, e.changes)


def claimed(world: World, task: Task, e: Event, p: TaskClaimed, before: str) -> None:
    """Start a hold with its lease."""
    task.winner_claim_id, task.winner_agent_id = task.claim_id, task.agent_id
    task.claimed_at, task.started_at = e.timestamp, 0
    task.claim_nano_usd = task.reserved_nano_usd = 0
    progress.forget(task)
    pending = world.pending.pop(task.claim_id, None)
    task.reserved = ""
    _hold_until(world, task, parse_time(p.lease_expires_at) if p.lease_expires_at is not None else 0)
    task.lease_seconds_held = pending.lease_seconds if pending else (task.lease_expires_at - e.timestamp) // SECOND


def _hold_until(world: World, task: Task, when: int) -> None:
    task.lease_expires_at = when
    if when:
        world.at(when, "lease", task.task_id)


def _count_claim(world: World, agent_id: str, change: int, e: Event) -> None:
    agent = world.agents.get(agent_id)
    if agent is not None:
        agent.live_claims += change
        e.changes.touch("agent", agent_id)


def started(world: World, task: Task, e: Event, p: TaskStarted, before: str) -> None:
    """Store when the work began."""
    task.started_at = e.timestamp


def extended(world: World, task: Task, e: Event, p: TaskLeaseExtended, before: str) -> None:
    """Extend the lease, or resume a hold whose lease expired."""
    if before == "available":
        # Claims made in the meantime lose to the hold that was resumed.
        task.reserved = ""
        world.agenda.pop(("lease_losses", task.task_id), None)
    _hold_until(world, task, parse_time(p.lease_expires_at))


def expired(world: World, task: Task, e: Event, p: TaskLeaseExpired | TaskStalled, before: str) -> None:
    """Offer the task again, or fail it if it lost too many leases."""
    if task.lease_losses >= world.queues[task.queue_id].settings.lease_losses:
        world.follows("lease_losses", task.task_id, e.wire_id)
    else:
        world.offer(task, e.changes)


def released(world: World, task: Task, e: Event, p: TaskReleased, before: str) -> None:
    """Offer the task again: its holder gave it up."""
    world.offer(task, e.changes)


def blocked(world: World, task: Task, e: Event, p: TaskBlocked, before: str) -> None:
    """Store the blocker, wait for the tasks it depends on, and notify those who can resolve it."""
    task.blocker_type = p.blocker_type
    task.reason_sha256, task.reason_bytes = p.reason_ref.sha256, p.reason_ref.bytes
    unfinished = [key for key in p.depends_on or () if not is_done(world, key)]
    task.blocked_by = tuple(unfinished)
    for dependency in unfinished:
        world.dependents.setdefault(dependency, []).append(task.task_id)
    if task.blocker_type == "dependency" and p.depends_on and not unfinished:
        world.follows("unblocked", task.task_id, e.wire_id)
    for recipient in recipients(world, task.blocker_type):
        world.follows(f"mail:{recipient}", task.task_id, e.wire_id)


def recipients(world: World, blocker_type: str) -> list[str]:
    """Who is notified of a block: each active agent with a role that can resolve it, and always the humans."""
    roles = (*block_route(world, blocker_type), SUPERVISOR_ROLE)
    agents = [agent_id for role in roles if role in world.roles for agent_id in world.roles[role].agents]
    active = dict.fromkeys(f"agent:{agent_id}" for agent_id in agents if world.agents[agent_id].active)
    return [*active, "human"]


def block_route(world: World, blocker_type: str) -> tuple[str, ...]:
    """The roles that are notified of a block: by the policy of the workspace, else the defaults."""
    route = world.workspace.block_routes.get(blocker_type)
    return BLOCK_ROUTES.get(blocker_type, ()) if route is None else route


def unblocked(world: World, task: Task, e: Event, p: TaskUnblocked, before: str) -> None:
    """End the block and offer the task again."""
    world.agenda.pop(("unblocked", task.task_id), None)
    task.blocker_type, task.blocked_by = "", ()
    if p.answer_ref is not None:
        task.answer_sha256 = p.answer_ref.sha256
    world.offer(task, e.changes)


def artifact_ready(world: World, task: Task, e: Event, p: ArtifactReady, before: str) -> None:
    """Store a version of an artifact; it replaces the version before it."""
    artifact = Artifact(
        p.artifact_id,
        p.name,
        p.readiness,
        p.version,
        p.sha256,
        p.bytes,
        p.content_ref.sha256,
        p.unverified is not None,
    )
    replaced = next((other for other in task.artifacts if other.artifact_id == artifact.artifact_id), None)
    task.artifacts = (*(other for other in task.artifacts if other is not replaced), artifact)
    if world.workspace.rules >= LINEAGE_RULES:
        stored = StoredArtifact(artifact, task.task_id, task.attempt, e.timestamp, e.sequence)
        e.changes.touch("artifact", artifact.artifact_id, stored)
        if replaced is not None:
            # The artifact's own stream records which version replaces which.
            step = f"superseded:{artifact.artifact_id}:{replaced.version}:{artifact.version}"
            world.follows(step, task.task_id, e.wire_id)


def superseded(world: World, e: Event, p: ArtifactSuperseded) -> Void:
    """Record that a newer version, or another artifact, replaces a version of an artifact."""
    if p.by_artifact_id is None:
        world.agenda.pop((f"superseded:{e.subject}:{p.version}:{p.by_version}", p.task_id), None)
    else:
        row = Superseded(p.version, p.by_artifact_id, p.by_version, e.timestamp, e.sequence)
        e.changes.touch("superseded", e.subject, row)
    return None


def completed(world: World, task: Task, e: Event, p: TaskComplete, before: str) -> None:
    """End the task: release its dependents, or open its gate first."""
    if p.output_ref is not None:
        task.output_sha256 = p.output_ref.sha256
    _end(world, task, e)
    if task.gate is None:
        world.release_dependents(task, e.wire_id, e.changes)
    else:
        world.follows("gate", task.task_id, e.wire_id)


def failed(world: World, task: Task, e: Event, p: TaskFailed, before: str) -> None:
    """End the attempt: retry it, fail its dependents, or notify a person."""
    task.failure_kind = p.kind
    if p.reason_ref is not None:
        task.reason_sha256, task.reason_bytes = p.reason_ref.sha256, p.reason_ref.bytes
    _end(world, task, e)
    if p.retry:
        world.follows("retry", task.task_id, e.wire_id)
    elif is_hopeless(task):
        world.fail_dependents(task, e.wire_id)
    elif not task.workflow_id:
        world.follows("mail:human", task.task_id, e.wire_id)


def cancelled(world: World, task: Task, e: Event, p: TaskCancelled, before: str) -> None:
    """End the task and fail its dependents."""
    task.cause = p.cause
    _end(world, task, e)
    world.fail_dependents(task, e.wire_id)


def _end(world: World, task: Task, e: Event) -> None:
    task.lease_expires_at = task.lease_seconds_held = 0
    task.reserved = ""
    task.ended_at = e.timestamp
    task.ended_by = e.sender
    run = world.run_beside(task)
    if run is not None and task.gate is None:
        run.extras.discard(task.task_id)
    if world.agenda:
        for kind in ("available", "unblocked", "dependency_failed", "lease_losses", "expire", "cancel"):
            world.agenda.pop((kind, task.task_id), None)
    world.add_tombstone(task)
