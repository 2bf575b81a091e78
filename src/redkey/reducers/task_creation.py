"""What `task.created` means: a task, or another attempt at one, with its requirements and what it waits for."""

from __future__ import annotations

from sys import intern

import msgspec

from redkey.plans.structure import GatePolicy
from redkey.reducers import steps
from redkey.reducers.attempt import ATTEMPT_EXISTS, CONTEXT_CHANGED, RETRIED
from redkey.reducers.entities import PRIORITIES, Queue, Task
from redkey.reducers.event import Event
from redkey.reducers.retrying import RetryDelay, pause_nanoseconds
from redkey.reducers.task import LINEAGE_RULES, is_done, is_hopeless, was_rejected
from redkey.reducers.world import SECOND, World
from redkey.wire.events import (
    TaskCreated,
)

Void = str | None


class Needs(msgspec.Struct, frozen=True):
    """The requirements of a task and the terms it runs under."""

    roles: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    lease_seconds: int = 0
    deadline_seconds: int = 0
    # 0 means the queue's setting.
    max_attempts: int = 0
    on_failure: str = "reopen"
    gate: GatePolicy | bool | None = None
    retry: RetryDelay | None = None
    # Earlier tasks that it refers to, if there are more than a wire can name.
    references: tuple[str, ...] = ()


def created(world: World, e: Event, p: TaskCreated) -> Void:
    """Create a task, or another attempt at one."""
    queue = world.queues.get(p.queue_id)
    if queue is None:
        return "unknown_queue"
    refused = steps.refuses(world, e, p) if p.workflow_id is not None else None
    if refused is not None:
        return refused
    before = world.tasks.get(e.subject)
    if before is not None and not (_may_retry(world, before) and e.attempt == before.attempt + 1):
        return ATTEMPT_EXISTS
    if before is not None and world.workspace.rules >= LINEAGE_RULES and e.stream.context_id != before.context_id:
        return CONTEXT_CHANGED
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
        max_attempts=needs.max_attempts or _default_attempts(world, queue, before),
        on_failure=needs.on_failure,
        gate=GatePolicy() if needs.gate is True else needs.gate or None,
        workflow_id=p.workflow_id or "",
        plan_task=p.plan_task or "",
        reference_task_ids=stream.reference_task_ids or needs.references,
        parent_task_id=stream.parent_task_id or "",
        correlation_id=stream.correlation_id or "",
        extensions=e.extensions,
    )
    if p.structure_ref is not None:
        task.structure_sha256, task.structure_bytes = p.structure_ref.sha256, p.structure_ref.bytes
    if needs.deadline_seconds:
        task.deadline_at = e.timestamp + needs.deadline_seconds * SECOND
        world.at(task.deadline_at, "deadline", task.task_id)
    world.tasks[e.subject] = task
    world.misses.pop(e.subject, None)
    is_automatic = world.agenda.pop(("retry", e.subject), None) is not None
    task.retry = needs.retry or _default_delay(world, before)
    if before is not None:
        if is_automatic and before.state == "failed" and task.retry is not None:
            task.opens_at = e.timestamp + pause_nanoseconds(task.retry, before.attempt, e.wire_id)
        task.note_sha256 = before.note_sha256
        task.nano_usd = before.nano_usd
        task.gate = task.gate or before.gate
        task.correlation_id = task.correlation_id or before.correlation_id
        task.extensions = task.extensions or before.extensions
    e.changes.touch("task", e.subject)
    if task.workflow_id:
        steps.opened(world, task, e)
    else:
        _join_run(world, task, e)
        _wait(world, task, e.wire_id)
    return None


def _default_attempts(world: World, queue: Queue, before: Task | None) -> int:
    """How often a task without its own setting is tried: by its queue's setting, else by the workspace's policy."""
    policy = world.workspace.retry
    if policy is None or queue.settings.max_attempts > 1:
        return queue.settings.max_attempts
    return before.max_attempts if before is not None else policy.max_attempts


def _default_delay(world: World, before: Task | None) -> RetryDelay | None:
    """The pause between attempts of a task without its own setting; every attempt keeps that of the first."""
    if before is not None:
        return before.retry
    policy = world.workspace.retry
    return policy.delay if policy is not None and policy.delay.delay_ms else None


def _join_run(world: World, task: Task, e: Event) -> None:
    """Add a simple task to the live run whose context it is in."""
    run = world.run_beside(task)
    if run is not None:
        run.extras.add(task.task_id)
        run.workflow.extras += task.attempt == 1
        e.changes.touch("workflow", run.workflow.workflow_id, run.workflow)


def _may_retry(world: World, task: Task) -> bool:
    """True when the attempt ended without success, or another attempt is on the agenda."""
    return task.state in RETRIED or was_rejected(task) or ("retry", task.task_id) in world.agenda


def _needs(world: World, e: Event, p: TaskCreated) -> Needs:
    """Read what a task needs from its wire, from the structure it names, or from the plan of its run."""
    if p.workflow_id is not None:
        run = world.runs[p.workflow_id]
        planned = run.plan.tasks[run.places[p.plan_task or ""]]
        return Needs(
            roles=(planned.role,),
            capabilities=planned.capabilities,
            outputs=planned.outputs,
            lease_seconds=planned.lease_seconds,
            deadline_seconds=planned.deadline_seconds,
            max_attempts=planned.max_attempts,
            on_failure=planned.on_failure,
            gate=planned.gate,
        )
    if e.structure is not None:
        return msgspec.convert({name: setting for name, setting in e.structure.items() if setting}, Needs)
    return Needs(
        roles=p.roles or (),
        capabilities=p.capabilities or (),
        outputs=p.outputs or (),
        waits_for=p.waits_for or (),
        lease_seconds=p.lease_seconds or 0,
        deadline_seconds=p.deadline_seconds or 0,
        max_attempts=p.max_attempts or 0,
    )


def _wait(world: World, task: Task, cause: str) -> None:
    """Register the task's dependencies, or make it available if it has none."""
    for dependency in task.waits_for:
        world.dependents.setdefault(dependency, []).append(task.task_id)
        if is_hopeless(world.tasks[dependency]):
            world.follows("dependency_failed", task.task_id, cause)
    if not task.waits_for:
        world.opens(task, cause)
