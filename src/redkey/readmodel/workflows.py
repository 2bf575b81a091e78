"""Workflows and gates as the API shows them: in a list, in full, and as a graph."""

from __future__ import annotations

from typing import Any

from redkey.ledger.record import iso_time
from redkey.plans.graph import critical_path, levels
from redkey.readmodel.plan_text import PlanText
from redkey.readmodel.task_view import Read, claim_view, progress_view
from redkey.readmodel.view import Document, moment
from redkey.readmodel.workflow_at import RunSnapshot
from redkey.reducers import entities
from redkey.reducers.run import Run
from redkey.shapes.gates import Gate
from redkey.shapes.tasks import Failure
from redkey.shapes.workflows import Counts, Edge, Graph, Node, Step, Workflow, WorkflowState

# The public name of a step's state, if it does not come from its task.
_STATES = {
    "waiting": "waiting",
    "opening": "waiting",
    "retry": "waiting",
    "again": "waiting",
    "gated": "awaiting_approval",
    "done": "completed",
    "stuck": "stuck",
    "dropped": "cancelled",
    "failed": "failed",
}


def workflow_view(workflow: entities.Workflow, text: PlanText | None) -> Workflow:
    """Show a run as an item of a list."""
    return Workflow(**_header(workflow, text))


def _header(workflow: entities.Workflow, text: PlanText | None) -> dict[str, Any]:
    plan = text.plan if text is not None else {}
    return {
        "workflow_id": workflow.workflow_id,
        "status": workflow.state,
        "name": plan.get("name", ""),
        "description": plan.get("description", ""),
        "queue_id": workflow.queue_id,
        "definition_id": workflow.definition_id,
        "version": workflow.version or None,
        "phase_id": workflow.phase_id,
        "project_id": workflow.correlation_id.removeprefix("project:"),
        "counts": _counts(workflow),
        "started_at": iso_time(workflow.started_at),
        "ended_at": moment(workflow.ended_at),
        "erased": text is None,
    }


def _counts(workflow: entities.Workflow) -> Counts:
    left = workflow.total - workflow.done - workflow.failed - workflow.dropped
    given_up = left if workflow.state == "cancelled" else 0
    return Counts(
        total=workflow.total,
        completed=workflow.done,
        failed=workflow.failed,
        cancelled=workflow.dropped + given_up,
        open=left - given_up,
    )


def workflow_state(found: RunSnapshot, text: PlanText | None, read: Read) -> WorkflowState:
    """Show a run in full; `read` returns documents by hash."""
    run = found.run
    paused = run.workflow.state == "paused"
    steps = tuple(_step(found, step, text, read) for step in run.steps)
    path = critical_path([task.depends_on for task in run.plan.tasks], [1.0] * len(run.steps))
    return WorkflowState(
        **_header(run.workflow, text),
        available_tasks=tuple(step.plan_task_id for step in steps if step.state == "available" and not paused),
        critical_path=tuple(run.plan.tasks[place].id for place in path),
        max_parallel_tasks=run.plan.max_parallel_tasks,
        tasks=steps,
        sequence=found.sequence,
    )


def step_state(run: Run, step: entities.Step, task: entities.Task | None) -> str:
    """Return the state of a task of a run."""
    if task is not None and (step.state == "open" or (step.state == "failed" and task.state == "cancelled")):
        return task.state
    if run.workflow.state == "cancelled" and step.state in ("waiting", "opening", "retry", "again", "gated", "stuck"):
        return "cancelled"
    return _STATES.get(step.state, "waiting")


def _step(found: RunSnapshot, step: entities.Step, text: PlanText | None, read: Read) -> Step:
    run, planned = found.run, found.run.planned(step)
    task, gate = found.tasks.get(step.task_id), found.gates.get(step.task_id)
    title = text.tasks.get(planned.id, {}).get("title", "") if text is not None else ""
    state = step_state(run, step, task)
    common: dict[str, Any] = {
        "plan_task_id": planned.id,
        "task_id": step.task_id,
        "title": title,
        "role": planned.role,
        "state": state,
        "attempt": step.attempt,
        "max_attempts": planned.max_attempts,
        "priority": planned.priority,
        "depends_on": tuple(run.plan.tasks[place].id for place in planned.depends_on),
        "blocked_by": tuple(
            run.plan.tasks[place].id for place in planned.depends_on if run.steps[place].state != "done"
        ),
        "waits_because": _why(run, step) if state == "waiting" else "paused" if _is_held_up(run, state) else "",
        "cancelled_because": _cause(run, step, task) if state == "cancelled" else "",
        "outputs": planned.outputs,
    }
    if task is None:
        return Step(**common)
    failed = task.state == "failed"
    return Step(
        **common,
        since=moment(task.updated_at),
        claim=claim_view(task),
        progress=progress_view(task, read),
        blocker_type=task.blocker_type if task.state == "blocked" else "",
        failure=Failure(kind=task.failure_kind) if failed else None,
        deadline_at=moment(task.deadline_at),
        gate=gate_view(gate, task, title, None) if gate is not None else None,
        artifact_ids=tuple(artifact.artifact_id for artifact in task.artifacts),
        completed_by=task.winner_agent_id if task.state == "completed" else "",
        ended_at=moment(task.ended_at),
    )


def _is_held_up(run: Run, state: str) -> bool:
    """True when the step may be claimed but for the pause of its run."""
    return state == "available" and run.workflow.state == "paused"


def _why(run: Run, step: entities.Step) -> str:
    if run.waits[step.index]:
        return "dependency"
    return "paused" if run.workflow.state == "paused" else "parallel_limit"


def _cause(run: Run, step: entities.Step, task: entities.Task | None) -> str:
    if step.state == "dropped":
        return "upstream_failed"
    return task.cause if task is not None and task.cause else "workflow_cancelled"


def gate_view(gate: entities.Gate, task: entities.Task | None, title: str, note: Document | None) -> Gate:
    """Show a gate; `note` is the document with the note of its decision."""
    return Gate(
        gate_id=gate.gate_id,
        state=gate.state,
        task_id=gate.task_id,
        attempt=gate.attempt,
        workflow_id=gate.workflow_id,
        plan_task_id=task.plan_task if task is not None else "",
        queue_id=gate.queue_id,
        title=title,
        approvers=gate.approvers,
        worker=gate.worker,
        agent_id=gate.agent_id,
        opened_at=iso_time(gate.opened_at),
        deadline_at=moment(gate.deadline_at),
        on_deadline=gate.on_deadline if gate.deadline_at else "",
        closed_at=moment(gate.closed_at),
        closed_by=gate.closed_by,
        self_approval=gate.self_approval,
        self_approved=gate.state == "approved" and gate.closed_by == gate.worker,
        note=(note or {}).get("note", ""),
    )


def workflow_graph(found: RunSnapshot, text: PlanText | None) -> Graph:
    """Show a run as a graph: nodes on levels, and edges."""
    run = found.run
    depth = _levels(run)
    nodes = tuple(
        Node(
            id=planned.id,
            task_id=step.task_id,
            title=text.tasks.get(planned.id, {}).get("title", "") if text is not None else "",
            role=planned.role,
            state=step_state(run, step, found.tasks.get(step.task_id)),
            level=depth[step.index],
            gated=planned.gate is not None,
        )
        for step, planned in zip(run.steps, run.plan.tasks, strict=True)
    )
    edges = tuple(
        Edge(source=run.plan.tasks[above].id, to=planned.id)
        for planned in run.plan.tasks
        for above in planned.depends_on
    )
    return Graph(workflow_id=run.workflow.workflow_id, status=run.workflow.state, nodes=nodes, edges=edges)


def _levels(run: Run) -> list[int]:
    depth = [0] * len(run.steps)
    for number, level in enumerate(levels([task.depends_on for task in run.plan.tasks])):
        for place in level:
            depth[place] = number
    return depth
