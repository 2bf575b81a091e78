"""What records mean for tasks: what follows in the workspace from every wire on a task's stream.

`attempt` says which wires move a task and who holds it then. Here the world keeps up: the indexes of claims, where
claim-next looks, and the agenda. What ends a hold, opens a dependent or calls for a retry puts it on the agenda; the
wire that says so takes it off again.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import TypeVar

import msgspec

from redkey.plans.structure import GatePolicy
from redkey.reducers import progress, workflow
from redkey.reducers.attempt import TaskEvent, apply
from redkey.reducers.entities import PRIORITIES, Artifact, Task
from redkey.reducers.event import Event
from redkey.reducers.world import BLOCK_ROUTES, SECOND, SUPERVISOR_ROLE, World
from redkey.wire.events import (
    ArtifactReady,
    TaskAvailable,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskComplete,
    TaskCreated,
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


class Needs(msgspec.Struct, frozen=True):
    """What a task asks of its holder."""

    roles: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    lease_seconds: int = 0
    deadline_seconds: int = 0
    # 0 is what the queue says.
    max_attempts: int = 0
    on_failure: str = "reopen"
    gate: GatePolicy | bool | None = None


def created(world: World, e: Event, p: TaskCreated) -> Void:
    queue = world.queues.get(p.queue_id)
    if queue is None:
        return "unknown_queue"
    refused = workflow.refuses(world, e, p) if p.workflow_id is not None else None
    if refused is not None:
        return refused
    before = world.tasks.get(e.subject)
    if before is not None and not (_may_retry(world, before) and e.attempt == before.attempt + 1):
        return "attempt_exists"
    try:
        needs, stream = _needs(world, e, p), e.stream
    except msgspec.ValidationError:
        return "structure_refused"
    task = Task(
        task_id=e.subject,
        attempt=e.attempt,
        state="created",
        queue_id=queue.queue_id,
        priority=PRIORITIES.index(p.priority),
        sequence=e.sequence,
        created_at=e.timestamp,
        updated_at=e.timestamp,
        content_sha256=p.content_ref.sha256,
        content_bytes=p.content_ref.bytes,
        context_id=intern(stream.context_id),
        roles=needs.roles,
        capabilities=needs.capabilities,
        outputs=needs.outputs,
        waits_for=tuple([key for key in needs.waits_for if not is_done(world, key)]) if needs.waits_for else (),
        lease_seconds=needs.lease_seconds,
        max_attempts=needs.max_attempts or queue.settings.max_attempts,
        on_failure=needs.on_failure,
        gate=GatePolicy() if needs.gate is True else needs.gate or None,
        workflow_id=p.workflow_id or "",
        plan_task=p.plan_task or "",
        reference_task_ids=stream.reference_task_ids or (),
        parent_task_id=stream.parent_task_id or "",
    )
    if p.structure_ref is not None:
        task.structure_sha256, task.structure_bytes = p.structure_ref.sha256, p.structure_ref.bytes
    if needs.deadline_seconds:
        task.deadline_at = e.timestamp + needs.deadline_seconds * SECOND
        world.at(task.deadline_at, "deadline", task.task_id)
    world.tasks[e.subject] = task
    world.misses.pop(e.subject, None)
    world.agenda.pop(("retry", e.subject), None)
    if before is not None:
        task.note_sha256 = before.note_sha256
        task.nano_usd = before.nano_usd
        task.gate = task.gate or before.gate
    e.changes.touch("task", e.subject)
    if task.workflow_id:
        workflow.opened(world, task, e)
    else:
        _join_run(world, task, e)
        _wait(world, task, e.wire_id)
    return None


def _join_run(world: World, task: Task, e: Event) -> None:
    """A simple task in the context of a live run belongs to it."""
    run = world.run_beside(task)
    if run is not None:
        run.extras.add(task.task_id)
        run.workflow.extras += task.attempt == 1
        e.changes.touch("workflow", run.workflow.workflow_id, run.workflow)


def _may_retry(world: World, task: Task) -> bool:
    """True when the attempt ended without success, or another is on the agenda."""
    return task.state in ("failed", "cancelled") or was_rejected(task) or ("retry", task.task_id) in world.agenda


def _needs(world: World, e: Event, p: TaskCreated) -> Needs:
    """What the task asks of its holder: on the wire, in the structure it names, or in the plan of its run."""
    if p.workflow_id is not None:
        run = world.runs[p.workflow_id]
        planned = run.plan.tasks[run.places[p.plan_task or ""]]
        return Needs(
            (planned.role,),
            planned.capabilities,
            planned.outputs,
            (),
            planned.lease_seconds,
            planned.deadline_seconds,
            planned.max_attempts,
            planned.on_failure,
            planned.gate,
        )
    if e.structure is not None:
        return msgspec.convert({name: stated for name, stated in e.structure.items() if stated}, Needs)
    return Needs(
        p.roles or (),
        p.capabilities or (),
        p.outputs or (),
        p.waits_for or (),
        p.lease_seconds or 0,
        p.deadline_seconds or 0,
        p.max_attempts or 0,
    )


def is_done(world: World, task_id: str) -> bool:
    """True when nothing of the task stands before others; one that has left the world was completed long ago."""
    task = world.tasks.get(task_id)
    return task is None or (task.state == "completed" and (task.gate is None or task.gate_passed))


def _wait(world: World, task: Task, cause: str) -> None:
    """Register what the task waits for, or say that nothing stands before it."""
    for dependency in task.waits_for:
        world.dependents.setdefault(dependency, []).append(task.task_id)
        if is_hopeless(world.tasks[dependency]):
            world.follows("dependency_failed", task.task_id, cause)
    if not task.waits_for:
        world.follows("available", task.task_id, cause)


def is_hopeless(task: Task) -> bool:
    """True when what waits for the task fails with it; a failure that blocks waits for somebody to step in."""
    return task.state == "cancelled" or (task.on_failure != "block" and (task.state == "failed" or was_rejected(task)))


def retries(task: Task, kind: str) -> bool:
    """Another attempt follows a failure while the policy has attempts left; a rejected task is never tried again."""
    if kind in ("rejected", "deadline", "dependency_failed"):
        return False
    return task.on_failure == "reopen" and task.attempt < task.max_attempts


def was_rejected(task: Task) -> bool:
    """True when the attempt was completed and not accepted."""
    return task.state == "completed" and task.gate is not None and not task.gate_passed and not task.gate_id


def moved(world: World, e: Event, p: P, follow: Callable[[World, Task, Event, P, str], None] | None = None) -> Void:
    """Any other wire on a task's stream: fold it into the attempt, and do what follows from it in the workspace."""
    task = world.tasks.get(e.subject)
    if task is None:
        return "not_created"
    if task.attempt != e.attempt:
        return "attempt_ended" if e.attempt < task.attempt else "not_created"
    if e.stream.stream_seq > task.stream_seq:
        task.stream_seq = e.stream.stream_seq
        e.changes.touch("task", e.subject)
    if type(p) is TaskAvailable and _is_early(world, task):
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
        if before == "available":
            world.withdraw(task)
        if task.workflow_id:
            workflow.moved(world, task, before, e)
    return None


def _hold_changed(world: World, task: Task, e: Event, claim_id: str, agent_id: str) -> None:
    """The attempt has another hold than before, or none: the index of claims and the agents' counts follow."""
    if claim_id:
        world.claims.pop(claim_id, None)
        _count_claim(world, agent_id, -1, e)
        # A hold that has ended has no lease to run out.
        world.agenda.pop(("expire", task.task_id), None)
        task.lease_expires_at = 0
        if not task.expired_claim_id:
            task.lease_seconds_held = 0
    if task.claim_id:
        world.claims[task.claim_id] = task.task_id
        _count_claim(world, task.agent_id, 1, e)


def _is_early(world: World, task: Task) -> bool:
    """True while something stands before the task, or it has to wait for its turn in a run."""
    return task.state == "created" and bool(workflow.is_early(world, task) if task.workflow_id else task.waits_for)


def available(world: World, task: Task, e: Event, p: TaskAvailable, before: str) -> None:
    world.agenda.pop(("available", task.task_id), None)
    world.offer(task, e.changes)


def claimed(world: World, task: Task, e: Event, p: TaskClaimed, before: str) -> None:
    task.winner_claim_id, task.winner_agent_id = task.claim_id, task.agent_id
    task.claimed_at, task.started_at, task.claim_nano_usd = e.timestamp, 0, 0
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
    task.started_at = e.timestamp


def extended(world: World, task: Task, e: Event, p: TaskLeaseExtended, before: str) -> None:
    if before == "available":
        # Whoever attempted meanwhile has lost to the hold that goes on.
        task.reserved = ""
        world.agenda.pop(("lease_losses", task.task_id), None)
    _hold_until(world, task, parse_time(p.lease_expires_at))


def expired(world: World, task: Task, e: Event, p: TaskLeaseExpired | TaskStalled, before: str) -> None:
    if task.lease_losses >= world.queues[task.queue_id].settings.lease_losses:
        world.follows("lease_losses", task.task_id, e.wire_id)
    else:
        world.offer(task, e.changes)


def released(world: World, task: Task, e: Event, p: TaskReleased, before: str) -> None:
    world.offer(task, e.changes)


def blocked(world: World, task: Task, e: Event, p: TaskBlocked, before: str) -> None:
    task.blocker_type = p.blocker_type
    task.reason_sha256, task.reason_bytes = p.reason_ref.sha256, p.reason_ref.bytes
    open_ones = [key for key in p.depends_on or () if not is_done(world, key)]
    task.blocked_by = tuple(open_ones)
    for dependency in open_ones:
        world.dependents.setdefault(dependency, []).append(task.task_id)
    if task.blocker_type == "dependency" and p.depends_on and not open_ones:
        world.follows("unblocked", task.task_id, e.wire_id)
    for recipient in recipients(world, task.blocker_type):
        world.follows(f"mail:{recipient}", task.task_id, e.wire_id)


def recipients(world: World, blocker_type: str) -> list[str]:
    """Who is told of a block: each active holder of the roles that can lift it; without one, the humans."""
    roles = (*block_route(world, blocker_type), SUPERVISOR_ROLE)
    agents = [agent_id for role in roles if role in world.roles for agent_id in world.roles[role].agents]
    told = dict.fromkeys(f"agent:{agent_id}" for agent_id in agents if world.agents[agent_id].active)
    return [*told, "human"]


def block_route(world: World, blocker_type: str) -> tuple[str, ...]:
    """The roles that are told of a block: by the policy of the workspace, else by the rules."""
    found = world.workspace.block_routes.get(blocker_type)
    return BLOCK_ROUTES.get(blocker_type, ()) if found is None else found


def unblocked(world: World, task: Task, e: Event, p: TaskUnblocked, before: str) -> None:
    world.agenda.pop(("unblocked", task.task_id), None)
    task.blocker_type, task.blocked_by = "", ()
    if p.answer_ref is not None:
        task.answer_sha256 = p.answer_ref.sha256
    world.offer(task, e.changes)


def artifact_ready(world: World, task: Task, e: Event, p: ArtifactReady, before: str) -> None:
    made = Artifact(
        p.artifact_id,
        p.name,
        p.readiness,
        p.version,
        p.sha256,
        p.bytes,
        p.content_ref.sha256,
        p.unverified is not None,
    )
    kept = tuple(artifact for artifact in task.artifacts if artifact.artifact_id != made.artifact_id)
    task.artifacts = (*kept, made)


def completed(world: World, task: Task, e: Event, p: TaskComplete, before: str) -> None:
    if p.output_ref is not None:
        task.output_sha256 = p.output_ref.sha256
    _end(world, task, e)
    if task.gate is None:
        world.release_dependents(task, e.wire_id, e.changes)
    else:
        world.follows("gate", task.task_id, e.wire_id)


def failed(world: World, task: Task, e: Event, p: TaskFailed, before: str) -> None:
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
    world.ends(task)
