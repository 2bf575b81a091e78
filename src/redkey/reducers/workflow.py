"""What records mean for workflows: which tasks of a plan open, when a run pauses, and how it ends.

Agents never decide what comes next: the ordered events and the plan's structure do. A task opens when everything it
depends on is done, including gates, within the plan's parallelism. Another attempt exists as soon as it is called for,
and becomes available when there is room. Each event costs time for what it changes, not for the size of the plan. A run
ends once: completed when every task is done, failed when no task can make progress; then it leaves the world.
"""

from __future__ import annotations

from collections.abc import Iterator

from redkey.plans.structure import StructureRefused, read_structure
from redkey.reducers.entities import Task, Workflow
from redkey.reducers.event import Event
from redkey.reducers.run import Run
from redkey.reducers.steps import go_on, step_key
from redkey.reducers.world import World
from redkey.wire.events import (
    WorkflowCancelled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStarted,
)

Void = str | None


def started(world: World, e: Event, p: WorkflowStarted) -> Void:
    """Start a run of a plan and open its first tasks."""
    if e.subject in world.runs:
        return "workflow_exists"
    if p.queue_id not in world.queues:
        return "unknown_queue"
    if p.phase_id is not None:
        phase = world.phases.get(p.phase_id)
        if phase is None or phase.status == "completed":
            return "unknown_phase" if phase is None else "phase_completed"
    try:
        plan = read_structure(e.structure or {})
    except StructureRefused as refused:
        return refused.code
    workflow = Workflow(
        workflow_id=e.subject,
        queue_id=p.queue_id,
        state="running",
        started_at=e.timestamp,
        sequence=e.sequence,
        content_sha256=p.content_ref.sha256,
        content_bytes=p.content_ref.bytes,
        structure_sha256=p.structure_ref.sha256,
        structure_bytes=p.structure_ref.bytes,
        definition_id=p.definition_id or "",
        version=p.version or 0,
        total=len(plan.tasks),
        phase_id=p.phase_id or "",
        correlation_id=e.stream.correlation_id or "",
    )
    run = world.runs[e.subject] = Run(workflow, plan)
    e.changes.touch("workflow", e.subject, workflow)
    go_on(world, run, e)
    return None


def _advance(world: World, e: Event) -> Run | None:
    """Return the run whose stream the event is on, with its stream number updated."""
    run = world.runs.get(e.subject)
    if run is not None:
        run.workflow.stream_seq = max(run.workflow.stream_seq, e.stream.stream_seq)
        e.changes.touch("workflow", e.subject, run.workflow)
    return run


def paused(world: World, e: Event, p: WorkflowPaused) -> Void:
    """Pause a run: its available tasks cannot be claimed."""
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    if run.workflow.state == "paused":
        return "already_paused"
    run.workflow.state = "paused"
    for task in _waiting_tasks(world, run):
        world.withdraw(task)
    return None


def ended(world: World, e: Event, p: WorkflowCompleted | WorkflowFailed) -> Void:
    """End a run as completed or failed; the verdict of its steps must agree."""
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    state = "completed" if isinstance(p, WorkflowCompleted) else "failed"
    if state != run.verdict:
        return "not_finished"
    _end(world, run, state, e.timestamp)
    return None


def resumed(world: World, e: Event, p: WorkflowResumed) -> Void:
    """Resume a paused run: offer its tasks again and open what may open."""
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    if run.workflow.state != "paused":
        return "not_paused"
    run.workflow.state = "running"
    for task in _waiting_tasks(world, run):
        # The pause withdrew the task from the offers.
        world.offer(task, e.changes)
    go_on(world, run, e)
    return None


def _waiting_tasks(world: World, run: Run) -> Iterator[Task]:
    """The tasks of a run that may be claimed while it is not paused."""
    for step in run.steps:
        task = world.tasks.get(step.task_id) if step.state == "open" else None
        if task is not None and task.state == "available":
            yield task


def cancelled(world: World, e: Event, p: WorkflowCancelled) -> Void:
    """Cancel a run: its open tasks are cancelled and its open gates closed."""
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    for step in run.steps:
        # Nothing follows from the step any more.
        world.agenda.pop(("open", step_key(run, step)), None)
        for kind in ("available", "retry", "gate"):
            world.agenda.pop((kind, step.task_id), None)
        task = world.tasks.get(step.task_id)
        if task is None:
            continue
        if not task.ended_at:
            world.follows("cancel", step.task_id, e.wire_id)
        elif task.gate_id:
            world.close_gate(world.gates[task.gate_id], "cancelled", e.sender, e.timestamp, e.changes)
            world.fail_dependents(task, e.wire_id)
    for task_id in sorted(run.extras):
        task = world.tasks.get(task_id)
        if task is not None and not task.ended_at:
            for kind in ("available", "retry"):
                world.agenda.pop((kind, task_id), None)
            world.follows("cancel", task_id, e.wire_id)
    _end(world, run, "cancelled", e.timestamp)
    return None


def _end(world: World, run: Run, state: str, timestamp: int) -> None:
    run.workflow.state = state
    run.workflow.ended_at = timestamp
    world.agenda.pop(("end", run.workflow.workflow_id), None)
    del world.runs[run.workflow.workflow_id]
