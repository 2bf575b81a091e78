"""The steps of a run: a plan's task opens when its dependencies are done and there is room, and closes once."""

from __future__ import annotations

from heapq import heappop, heappush

from redkey.reducers.entities import Step, Task
from redkey.reducers.event import Event
from redkey.reducers.run import Run
from redkey.reducers.world import World
from redkey.wire.events import (
    TaskCreated,
)

Void = str | None
# Task states that count against the plan's parallelism.
ACTIVE = frozenset({"available", "claimed", "working"})


def refuses(world: World, e: Event, p: TaskCreated) -> Void:
    """Why an attempt at a plan's task may not be created now: no step opens early."""
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
    """An attempt at a plan's task was created. The first attempt has room already; another one waits for room."""
    run = world.runs[task.workflow_id]
    step = run.steps[run.places[task.plan_task]]
    task.note_sha256 = step.note_sha256
    first = step.state == "opening"
    if step.state == "failed":
        run.workflow.failed -= 1
        _restore_dropped(run, step, e)
    step.task_id, step.attempt = task.task_id, task.attempt
    world.agenda.pop(("open", step_key(run, step)), None)
    if first:
        world.follows("available", task.task_id, e.wire_id)
        _touch(run, step, e)
    else:
        _set(run, step, "again", e)
        heappush(run.ready, run.turn(step.index))
        go_on(world, run, e)


def is_early(world: World, task: Task) -> bool:
    """True while a plan's task must wait for room before it becomes available."""
    run = world.runs.get(task.workflow_id)
    return run is None or run.steps[run.places[task.plan_task]].state != "opening"


def moved(world: World, task: Task, before: str, e: Event) -> None:
    """A plan's task changed its state: update the counts, and open or drop what depends on it."""
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
        # A cancelled task will never be done, whatever the failure policy says.
        _break(run, step, e)
    go_on(world, run, e)


def _done(run: Run, step: Step, e: Event) -> None:
    """Mark a step as done, including its gate, and make the steps that waited only for it ready."""
    _set(run, step, "done", e)
    run.workflow.done += 1
    for index in run.dependents[step.index]:
        run.waits[index] -= 1
        if not run.waits[index]:
            heappush(run.ready, run.turn(index))


def _fail(world: World, run: Run, step: Step, e: Event) -> None:
    """Handle a failed step: another attempt follows, a person must step in, or its dependents are dropped."""
    if ("retry", step.task_id) in world.agenda:
        _set(run, step, "retry", e)
    elif run.planned(step).on_failure == "block":
        _set(run, step, "stuck", e)
        world.follows("mail:human", step.task_id, e.wire_id)
    else:
        _break(run, step, e)


def approved(world: World, task: Task, e: Event) -> None:
    """A gate of the run was approved: its step is done."""
    run = world.runs[task.workflow_id]
    _done(run, run.steps[run.places[task.plan_task]], e)
    go_on(world, run, e)


def rejected(world: World, task: Task, e: Event) -> None:
    """A gate of the run was rejected: another attempt follows with the note, if any attempts are left."""
    run = world.runs[task.workflow_id]
    step = run.steps[run.places[task.plan_task]]
    step.note_sha256 = task.note_sha256
    _fail(world, run, step, e)
    go_on(world, run, e)


def _break(run: Run, step: Step, e: Event) -> None:
    """Mark a step as failed for good and drop the steps that depend on it."""
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


def _restore_dropped(run: Run, step: Step, e: Event) -> None:
    """A failed step is retried: steps dropped with it wait again, unless they also depend on another failed step."""
    pending = [step.index]
    while pending:
        for index in run.dependents[pending.pop()]:
            run.broken[index] -= 1
            if not run.broken[index]:
                _set(run, run.steps[index], "waiting", e)
                run.workflow.dropped -= 1
                pending.append(index)


def go_on(world: World, run: Run, e: Event) -> None:
    """Open the steps that may open; end the run when no work is left."""
    while run.ready and run.has_room:
        step = run.steps[heappop(run.ready)[1]]
        if step.state == "waiting":
            world.follows("open", step_key(run, step), e.wire_id)
        elif step.state == "again":
            world.opens(world.tasks[step.task_id], e.wire_id)
        else:
            continue
        step.state = "opening"
        run.active += 1
        # A pause before another attempt may outlast this unit: the step keeps its room until then.
        _touch(run, step, e)
    if run.verdict:
        world.follows("end", run.workflow.workflow_id, e.wire_id)
    else:
        world.agenda.pop(("end", run.workflow.workflow_id), None)


def step_key(run: Run, step: Step) -> str:
    """The key of a step: its workflow and its index in the plan."""
    return f"{run.workflow.workflow_id}/{step.index}"


def _set(run: Run, step: Step, state: str, e: Event) -> None:
    step.state = state
    _touch(run, step, e)


def _touch(run: Run, step: Step, e: Event) -> None:
    e.changes.touch("step", step_key(run, step), step)
    e.changes.touch("workflow", run.workflow.workflow_id, run.workflow)
