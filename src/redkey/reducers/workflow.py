"""What records mean for workflows: which tasks of a plan open, when a run waits, and how it ends.

Agents never decide what comes next: ordered events and the plan's structure do. A task opens when everything it
depends on is done, gate and all, within the plan's parallelism. Another attempt exists as soon as it is called for,
and becomes available when there is room. Each event costs what it changes, never the size of the plan. A run ends
once: completed when every task is done, failed when nothing more can be; then it leaves the world.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from redkey.plans.structure import StructureRefused, read_structure
from redkey.reducers.entities import Step, Task, Workflow
from redkey.reducers.event import Event
from redkey.reducers.run import Run
from redkey.reducers.world import World
from redkey.wire.events import (
    TaskCreated,
    WorkflowCancelled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStarted,
)

Void = str | None

# Task states that count against the plan's parallelism.
ACTIVE = frozenset({"available", "claimed", "working"})


def started(world: World, e: Event, p: WorkflowStarted) -> Void:
    if e.subject in world.runs:
        return "workflow_exists"
    if p.queue_id not in world.queues:
        return "unknown_queue"
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
    )
    run = world.runs[e.subject] = Run(workflow, plan)
    e.changes.touch("workflow", e.subject, workflow)
    _go_on(world, run, e.wire_id)
    return None


def _advance(world: World, e: Event) -> Run | None:
    """The run whose stream the event is on."""
    run = world.runs.get(e.subject)
    if run is not None:
        run.workflow.stream_seq = max(run.workflow.stream_seq, e.stream.stream_seq)
        e.changes.touch("workflow", e.subject, run.workflow)
    return run


def paused(world: World, e: Event, p: WorkflowPaused) -> Void:
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
    """One of the two ends that follow from the steps."""
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    wanted = "completed" if isinstance(p, WorkflowCompleted) else "failed"
    if wanted != run.verdict:
        return "not_finished"
    _end(world, run, wanted, e.timestamp)
    return None


def resumed(world: World, e: Event, p: WorkflowResumed) -> Void:
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    if run.workflow.state != "paused":
        return "not_paused"
    run.workflow.state = "running"
    for task in _waiting_tasks(world, run):
        # The pause has taken it from where claim-next looks.
        world.offer(task, e.changes)
    _go_on(world, run, e.wire_id)
    return None


def _waiting_tasks(world: World, run: Run) -> Iterator[Task]:
    """The tasks of a run that may be claimed while it is not paused."""
    for step in run.steps:
        task = world.tasks.get(step.task_id) if step.state == "open" else None
        if task is not None and task.state == "available":
            yield task


def cancelled(world: World, e: Event, p: WorkflowCancelled) -> Void:
    run = _advance(world, e)
    if run is None:
        return "unknown_workflow"
    for step in run.steps:
        # Nothing of it follows any more.
        world.agenda.pop(("open", _key(run, step)), None)
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


def refuses(world: World, e: Event, p: TaskCreated) -> Void:
    """Why an attempt at a plan's task may not come into being now: nothing opens before its time."""
    run = world.runs.get(p.workflow_id or "")
    if run is None:
        return "unknown_workflow"
    step = run.step_of(p.plan_task or "")
    if step is None:
        return "unknown_plan_task"
    if e.attempt != step.attempt + 1 or step.task_id not in ("", e.subject):
        return "attempt_exists"
    first = step.state == "opening" and not step.attempt
    return None if first or step.state in ("retry", "failed", "stuck") else "not_open"


def opened(world: World, task: Task, e: Event) -> None:
    """An attempt at a plan's task exists. The first has its room already; another one waits for its turn."""
    run = world.runs[task.workflow_id]
    step = run.steps[run.places[task.plan_task]]
    task.note_sha256 = step.note_sha256
    first = step.state == "opening"
    if step.state == "failed":
        run.workflow.failed -= 1
        _mend(run, step, e)
    step.task_id, step.attempt = task.task_id, task.attempt
    world.agenda.pop(("open", _key(run, step)), None)
    if first:
        world.follows("available", task.task_id, e.wire_id)
        _touch(run, step, e)
    else:
        _set(run, step, "again", e)
        heappush(run.ready, run.turn(step.index))
        _go_on(world, run, e.wire_id)


def is_early(world: World, task: Task) -> bool:
    """True while a plan's task may not become available: it has to wait for its turn."""
    run = world.runs.get(task.workflow_id)
    return run is None or run.steps[run.places[task.plan_task]].state != "opening"


def moved(world: World, task: Task, before: str, e: Event) -> None:
    """A plan's task changed its state: count it, and open or close what depends on it."""
    run = world.runs.get(task.workflow_id)
    if run is None:
        return
    step = run.steps[run.places[task.plan_task]]
    had_room = before in ACTIVE or step.state == "opening"
    run.active += (task.state in ACTIVE) - had_room
    if before == "created" and task.state == "available":
        _set(run, step, "open", e)
    elif task.state == "completed":
        if task.gate is None:
            _done(run, step, e)
        else:
            _set(run, step, "gated", e)
    elif task.state == "failed":
        _fail(world, run, step, e)
    elif task.state == "cancelled":
        # Somebody does not want it: there is nothing to wait for, whatever the policy for failures says.
        _break(run, step, e)
    _go_on(world, run, e.wire_id)


def _done(run: Run, step: Step, e: Event) -> None:
    """The step is done, gate and all: those that waited only for it are ready."""
    _set(run, step, "done", e)
    run.workflow.done += 1
    for index in run.dependents[step.index]:
        run.waits[index] -= 1
        if not run.waits[index]:
            heappush(run.ready, run.turn(index))


def _fail(world: World, run: Run, step: Step, e: Event) -> None:
    """The step failed: another attempt follows; or what depends on it waits for somebody, or is dropped."""
    if ("retry", step.task_id) in world.agenda:
        _set(run, step, "retry", e)
    elif run.planned(step).on_failure == "block":
        _set(run, step, "stuck", e)
        world.follows("mail:human", step.task_id, e.wire_id)
    else:
        _break(run, step, e)


def approved(world: World, task: Task, e: Event) -> None:
    """A gate of the run was approved."""
    run = world.runs[task.workflow_id]
    _done(run, run.steps[run.places[task.plan_task]], e)
    _go_on(world, run, e.wire_id)


def rejected(world: World, task: Task, e: Event) -> None:
    """A gate of the run was rejected: another attempt while there are any, with the note."""
    run = world.runs[task.workflow_id]
    step = run.steps[run.places[task.plan_task]]
    step.note_sha256 = task.note_sha256
    _fail(world, run, step, e)
    _go_on(world, run, e.wire_id)


def _break(run: Run, step: Step, e: Event) -> None:
    """The step will not be done: what depends on it is dropped."""
    _set(run, step, "failed", e)
    run.workflow.failed += 1
    pending = [step.index]
    while pending:
        for index in run.dependents[pending.pop()]:
            run.broken[index] += 1
            if run.steps[index].state == "waiting":
                _set(run, run.steps[index], "dropped", e)
                run.workflow.dropped += 1
                pending.append(index)


def _mend(run: Run, step: Step, e: Event) -> None:
    """A failed step is tried again: what was dropped with it waits again, unless another failure stands above it."""
    pending = [step.index]
    while pending:
        for index in run.dependents[pending.pop()]:
            run.broken[index] -= 1
            if not run.broken[index]:
                _set(run, run.steps[index], "waiting", e)
                run.workflow.dropped -= 1
                pending.append(index)


def _go_on(world: World, run: Run, cause: str) -> None:
    """Open what may open; when nothing is left to do, the run ends."""
    while run.ready and run.has_room:
        step = run.steps[heappop(run.ready)[1]]
        if step.state == "waiting":
            world.follows("open", _key(run, step), cause)
        elif step.state == "again":
            world.follows("available", step.task_id, cause)
        else:
            continue
        step.state = "opening"
        run.active += 1
    if run.verdict:
        world.follows("end", run.workflow.workflow_id, cause)
    else:
        world.agenda.pop(("end", run.workflow.workflow_id), None)


def _key(run: Run, step: Step) -> str:
    return f"{run.workflow.workflow_id}/{step.index}"


def _set(run: Run, step: Step, state: str, e: Event) -> None:
    step.state = state
    _touch(run, step, e)


def _touch(run: Run, step: Step, e: Event) -> None:
    e.changes.touch("step", _key(run, step), step)
    e.changes.touch("workflow", run.workflow.workflow_id, run.workflow)
