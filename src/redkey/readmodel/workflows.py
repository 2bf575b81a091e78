"""Workflows and gates as the API shows them: in a list, in full, and as a graph."""

from __future__ import annotations

from typing import Any, Literal

from redkey.ledger.record import iso_time
from redkey.plans.graph import critical_path, levels
from redkey.readmodel.plan_text import PlanText
from redkey.readmodel.task_view import claim_view
from redkey.readmodel.view import Document, View, moment
from redkey.readmodel.workflow_at import RunSnapshot
from redkey.reducers.entities import Gate, Step, Task, Workflow
from redkey.reducers.run import Run
from redkey.shapes.tasks import Failure, TaskHold

# What a step is called outside, where its own state does not come from its task.
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


class Counts(View, frozen=True, kw_only=True, omit_defaults=False):
    """How many tasks of a run stand where."""

    total: int
    completed: int
    failed: int
    cancelled: int
    open: int


class WorkflowView(View, frozen=True, kw_only=True):
    """A run in a list."""

    workflow_id: str
    status: Literal["running", "paused", "completed", "failed", "cancelled"]
    name: str = ""
    description: str = ""
    queue_id: str
    definition_id: str = ""
    version: int | None = None
    counts: Counts
    started_at: str
    ended_at: str | None = None
    erased: bool = False


class GateView(View, frozen=True, kw_only=True):
    """An approval that a completed task waits for, or how it was decided."""

    gate_id: str
    state: Literal["open", "approved", "rejected", "cancelled"]
    task_id: str
    attempt: int
    workflow_id: str = ""
    plan_task_id: str = ""
    queue_id: str
    title: str = ""
    approvers: tuple[str, ...] = ()
    worker: str
    agent_id: str = ""
    opened_at: str
    deadline_at: str | None = None
    on_deadline: str = ""
    closed_at: str | None = None
    closed_by: str = ""
    note: str = ""


class StepView(View, frozen=True, kw_only=True):
    """One task of a run: where it stands, since when, who has it, and what it waits for."""

    plan_task_id: str
    task_id: str = ""
    title: str = ""
    role: str
    state: str
    since: str | None = None
    attempt: int
    max_attempts: int
    priority: str
    depends_on: tuple[str, ...] = ()
    # What of it is not done yet.
    blocked_by: tuple[str, ...] = ()
    # Why it waits although nothing stands before it.
    waits_because: str = ""
    claim: TaskHold | None = None
    blocker_type: str = ""
    failure: Failure | None = None
    cancelled_because: str = ""
    deadline_at: str | None = None
    gate: GateView | None = None
    outputs: tuple[str, ...] = ()
    artifact_ids: tuple[str, ...] = ()
    completed_by: str = ""
    ended_at: str | None = None


class WorkflowState(WorkflowView, frozen=True, kw_only=True):
    """A run in full."""

    available_tasks: tuple[str, ...]
    critical_path: tuple[str, ...]
    max_parallel_tasks: int
    tasks: tuple[StepView, ...]
    # The place in the ledger that this was true at.
    sequence: int


class Node(View, frozen=True, kw_only=True):
    """A task in the graph of a run."""

    id: str
    task_id: str = ""
    title: str = ""
    role: str
    state: str
    level: int
    gated: bool = False


class Edge(View, frozen=True, kw_only=True):
    """`to` waits for `source`."""

    source: str
    to: str


class Graph(View, frozen=True, kw_only=True, omit_defaults=False):
    """A run as nodes and edges."""

    workflow_id: str
    status: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def workflow_view(workflow: Workflow, text: PlanText | None) -> WorkflowView:
    return WorkflowView(**_header(workflow, text))


def _header(workflow: Workflow, text: PlanText | None) -> dict[str, Any]:
    plan = text.plan if text is not None else {}
    return {
        "workflow_id": workflow.workflow_id,
        "status": workflow.state,
        "name": plan.get("name", ""),
        "description": plan.get("description", ""),
        "queue_id": workflow.queue_id,
        "definition_id": workflow.definition_id,
        "version": workflow.version or None,
        "counts": _counts(workflow),
        "started_at": iso_time(workflow.started_at),
        "ended_at": moment(workflow.ended_at),
        "erased": text is None,
    }


def _counts(workflow: Workflow) -> Counts:
    left = workflow.total - workflow.done - workflow.failed - workflow.dropped
    given_up = left if workflow.state == "cancelled" else 0
    return Counts(
        total=workflow.total,
        completed=workflow.done,
        failed=workflow.failed,
        cancelled=workflow.dropped + given_up,
        open=left - given_up,
    )


def workflow_state(found: RunSnapshot, text: PlanText | None) -> WorkflowState:
    """Everything about a run."""
    run = found.run
    steps = tuple(_step(found, step, text) for step in run.steps)
    path = critical_path([task.depends_on for task in run.plan.tasks], [1.0] * len(run.steps))
    return WorkflowState(
        **_header(run.workflow, text),
        available_tasks=tuple(step.plan_task_id for step in steps if step.state == "available"),
        critical_path=tuple(run.plan.tasks[place].id for place in path),
        max_parallel_tasks=run.plan.max_parallel_tasks,
        tasks=steps,
        sequence=found.sequence,
    )


def step_state(run: Run, step: Step, task: Task | None) -> str:
    """Where a task of a run stands, in one word."""
    if task is not None and (step.state == "open" or (step.state == "failed" and task.state == "cancelled")):
        return task.state
    if run.workflow.state == "cancelled" and step.state in ("waiting", "opening", "retry", "again", "gated", "stuck"):
        return "cancelled"
    return _STATES.get(step.state, "waiting")


def _step(found: RunSnapshot, step: Step, text: PlanText | None) -> StepView:
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
        "waits_because": _why(run, step) if state == "waiting" else "",
        "cancelled_because": _cause(run, step, task) if state == "cancelled" else "",
        "outputs": planned.outputs,
    }
    if task is None:
        return StepView(**common)
    failed = task.state == "failed"
    return StepView(
        **common,
        since=moment(task.updated_at),
        claim=claim_view(task),
        blocker_type=task.blocker_type if task.state == "blocked" else "",
        failure=Failure(kind=task.failure_kind) if failed else None,
        deadline_at=moment(task.deadline_at),
        gate=gate_view(gate, task, title, None) if gate is not None else None,
        artifact_ids=tuple(artifact.artifact_id for artifact in task.artifacts),
        completed_by=task.winner_agent_id if task.state == "completed" else "",
        ended_at=moment(task.ended_at),
    )


def _why(run: Run, step: Step) -> str:
    if run.waits[step.index]:
        return "dependency"
    return "paused" if run.workflow.state == "paused" else "parallel_limit"


def _cause(run: Run, step: Step, task: Task | None) -> str:
    if step.state == "dropped":
        return "upstream_failed"
    return task.cause if task is not None and task.cause else "workflow_cancelled"


def gate_view(gate: Gate, task: Task | None, title: str, note: Document | None) -> GateView:
    """A gate; `note` is the document of what was said when it was decided."""
    return GateView(
        gate_id=gate.gate_id,
        state=gate.state,  # type: ignore[arg-type]
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
        note=(note or {}).get("note", ""),
    )


def workflow_graph(found: RunSnapshot, text: PlanText | None) -> Graph:
    """A run as nodes, on levels, and edges."""
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


# How a state is drawn: fill and border.
_COLOURS = {
    "waiting": ("#f3f4f6", "#9ca3af"),
    "available": ("#dbeafe", "#3b82f6"),
    "claimed": ("#fef3c7", "#f59e0b"),
    "working": ("#fef3c7", "#f59e0b"),
    "blocked": ("#fee2e2", "#ef4444"),
    "stuck": ("#fee2e2", "#ef4444"),
    "awaiting_approval": ("#ede9fe", "#8b5cf6"),
    "completed": ("#dcfce7", "#22c55e"),
    "failed": ("#fecaca", "#b91c1c"),
    "cancelled": ("#e5e7eb", "#6b7280"),
}


def mermaid(graph: Graph) -> str:
    """The graph as Mermaid text. Ids are slugs and titles are escaped, so that no plan can write diagram code."""
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for number, node in enumerate(graph.nodes):
        label = f"{_escaped(node.title or node.id)}<br/><small>{_escaped(node.role)}</small>"
        shape = f'{{{{"{label}"}}}}' if node.gated else f'["{label}"]'
        lines.append(f"  n{number}{shape}:::{node.state}")
    lines += [f"  n{numbers[edge.source]} --> n{numbers[edge.to]}" for edge in graph.edges]
    used = {node.state for node in graph.nodes}
    lines += [
        f"  classDef {state} fill:{fill},stroke:{border},color:#111827"
        for state, (fill, border) in _COLOURS.items()
        if state in used
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Everything but letters, digits, spaces and a few harmless signs as Mermaid's numeric entities."""
    return "".join(sign if sign.isalnum() or sign in " .,-_" else f"#{ord(sign)};" for sign in text[:80])
