"""What records mean for workflows: which tasks of a plan open, when a run waits, and how it ends.

Agents never decide what comes next: ordered events and the plan's structure do. A task opens when everything it
depends on is done and its gates are approved, within the plan's parallelism. Each event costs what it changes, never
the size of the plan. A run ends once: completed when every task is done, failed when nothing more can be.
"""

from __future__ import annotations

from heapq import heappop, heappush

from redkey.plans.structure import read_structure
from redkey.reducers.entities import Task, Workflow
from redkey.reducers.event import Event
from redkey.reducers.run import Run
from redkey.reducers.world import World

Void = str | None

ENDED = ("completed", "failed", "cancelled")
# Task states that count against the plan's parallelism.
ACTIVE = frozenset({"created", "available", "claimed", "working"})


def started(world: World, e: Event) -> Void:
    if e.subject in world.runs:
        return "workflow_exists"
    payload = e.payload
    if payload["queue_id"] not in world.queues:
        return "unknown_queue"
    if e.structure is None:
        return "structure_missing"
    content, pinned = payload["content_ref"], payload["structure_ref"]
    workflow = Workflow(
        workflow_id=e.subject,
        queue_id=payload["queue_id"],
        state="running",
        started_at=e.timestamp,
        sequence=e.sequence,
        content_sha256=content["sha256"],
        content_bytes=content["bytes"],
        structure_sha256=pinned["sha256"],
        structure_bytes=pinned["bytes"],
        definition_id=payload.get("definition_id", ""),
        version=payload.get("version", 0),
    )
    run = world.runs[e.subject] = Run(workflow, read_structure(e.structure))
    workflow.total = len(run.steps)
    world.touch("workflow", e.subject)
    _go_on(world, run, e.wire_id)
    return None


def changed(world: World, e: Event) -> Void:
    """Pause, resume, cancel, and the two ends that follow from the steps."""
    run = world.runs.get(e.subject)
    if run is None:
        return "unknown_workflow"
    workflow = run.workflow
    workflow.stream_seq = max(workflow.stream_seq, e.wire["stream"]["stream_seq"])
    world.touch("workflow", e.subject)
    if workflow.state in ENDED:
        return "terminal"
    if e.type == "workflow.paused":
        workflow.state = "paused"
    elif e.type == "workflow.resumed":
        _resume(world, run, e.wire_id)
    elif e.type == "workflow.cancelled":
        _cancel(world, run, e)
    else:
        _end(world, run, e.type.removeprefix("workflow."), e.timestamp)
    return None


def _resume(world: World, run: Run, cause: str) -> None:
    if run.workflow.state != "paused":
        return
    run.workflow.state = "running"
    for step in run.steps:
        task = world.tasks.get(step.task_id) if step.state == "open" else None
        if task is not None and task.state == "available":
            world.offer(task)
    _go_on(world, run, cause)


def _cancel(world: World, run: Run, e: Event) -> None:
    for step in run.steps:
        if step.state == "opening":
            world.agenda.pop(("open", f"{e.subject}/{step.index}"), None)
        task = world.tasks.get(step.task_id)
        if task is not None and not task.ended_at:
            world.follows("cancel", step.task_id, e.wire_id)
    for gate in [gate for gate in world.gates.values() if gate.workflow_id == e.subject and gate.state == "open"]:
        gate.state = "cancelled"
        world.touch("gate", gate.gate_id)
        world.ends("gate", gate.gate_id, e.timestamp)
    _end(world, run, "cancelled", e.timestamp)


def _end(world: World, run: Run, state: str, timestamp: int) -> None:
    run.workflow.state = state
    run.workflow.ended_at = timestamp
    world.agenda.pop(("end", run.workflow.workflow_id), None)
    world.ends("workflow", run.workflow.workflow_id, timestamp)


def opened(world: World, task: Task) -> None:
    """A plan task's attempt exists: its step is open, a first time or again."""
    run = world.runs.get(task.workflow_id)
    if run is None:
        return
    step = run.steps[run.places[task.plan_task]]
    world.agenda.pop(("open", f"{task.workflow_id}/{step.index}"), None)
    if step.state != "opening":
        run.active += 1
        if step.state == "failed":
            run.workflow.failed -= 1
            _restore(world, run, step.index)
    step.state, step.task_id, step.attempt = "open", task.task_id, task.attempt
    _touch(world, run, step.index)


def moved(world: World, task: Task, before: str, cause: str) -> None:
    """A plan task changed its state: count it, and open or close what depends on it."""
    run = world.runs.get(task.workflow_id)
    if run is None or run.workflow.state in ENDED:
        return
    index = run.places[task.plan_task]
    if task.state == "failed" and ("retry", task.task_id) in world.agenda:
        # The next attempt takes the place of this one.
        run.steps[index].state = "opening"
        _touch(world, run, index)
        return
    run.active += (task.state in ACTIVE) - (before in ACTIVE)
    if task.state == "completed":
        if task.gate is not None:
            run.steps[index].state = "gated"
            _touch(world, run, index)
        else:
            done(world, run, index, cause)
    elif task.state in ("failed", "cancelled"):
        failed(world, run, index, cause)
    _go_on(world, run, cause)


def done(world: World, run: Run, index: int, cause: str) -> None:
    """The step is done, gate and all: those that waited only for it are ready."""
    run.steps[index].state = "done"
    run.workflow.done += 1
    _touch(world, run, index)
    for waiting in run.dependents[index]:
        step = run.steps[waiting]
        step.waits -= 1
        if not step.waits and step.state == "waiting":
            heappush(run.ready, waiting)


def again(world: World, run: Run, index: int) -> None:
    """The step was done and is not accepted: another attempt, as soon as there is room."""
    run.steps[index].state = "again"
    heappush(run.ready, index)
    _touch(world, run, index)


def failed(world: World, run: Run, index: int, cause: str) -> None:
    """The step failed for good: by its policy what depends on it is dropped, or waits for somebody to step in."""
    step = run.steps[index]
    if run.plan.tasks[index].on_failure == "block":
        step.state = "stuck"
        _touch(world, run, index)
        world.follows("mail:human", step.task_id, cause)
        return
    step.state = "failed"
    run.workflow.failed += 1
    _touch(world, run, index)
    pending = list(run.dependents[index])
    while pending:
        below = pending.pop()
        if run.steps[below].state == "waiting":
            run.steps[below].state = "dropped"
            run.workflow.dropped += 1
            _touch(world, run, below)
            pending.extend(run.dependents[below])


def _restore(world: World, run: Run, index: int) -> None:
    """A failed step is tried again: what was dropped with it waits again, unless another failure stands above it."""
    pending = list(run.dependents[index])
    while pending:
        below = pending.pop()
        step = run.steps[below]
        others = (run.steps[above].state for above in run.plan.tasks[below].depends_on if above != index)
        if step.state == "dropped" and not any(state in ("failed", "dropped") for state in others):
            step.state = "waiting"
            run.workflow.dropped -= 1
            _touch(world, run, below)
            pending.extend(run.dependents[below])


def _go_on(world: World, run: Run, cause: str) -> None:
    """Open what may open; when nothing is left to do, the run ends."""
    workflow = run.workflow
    if workflow.state == "running":
        while run.ready and run.active < run.plan.max_parallel_tasks:
            index = heappop(run.ready)
            step = run.steps[index]
            if step.state not in ("waiting", "again"):
                continue
            run.active += 1
            if step.state == "again":
                world.follows("retry", step.task_id, cause)
            else:
                world.follows("open", f"{workflow.workflow_id}/{index}", cause)
            step.state = "opening"
    if workflow.done + workflow.failed + workflow.dropped == workflow.total and workflow.state not in ENDED:
        world.follows("end", workflow.workflow_id, cause)
    else:
        world.agenda.pop(("end", workflow.workflow_id), None)


def go_on(world: World, workflow_id: str, cause: str) -> None:
    """Something outside the tasks changed, such as a gate: see what opens now."""
    run = world.runs.get(workflow_id)
    if run is not None and run.workflow.state not in ENDED:
        _go_on(world, run, cause)


def _touch(world: World, run: Run, index: int) -> None:
    world.touch("step", f"{run.workflow.workflow_id}/{index}")
    world.touch("workflow", run.workflow.workflow_id)
