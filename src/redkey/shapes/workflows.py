"""Workflows: runs of plans. Start, show (now or at any sequence), draw, pause, resume and cancel them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from redkey.shapes.definitions import EXAMPLE_PLAN, Plan, Validation, VersionNumber
from redkey.shapes.fields import Body, Extended, Id, Name, Page, PageQuery, Reply, Stateful, one_of
from redkey.shapes.gates import Gate
from redkey.shapes.operation import PRODUCE, READ, Operation
from redkey.shapes.tasks import Failure, Progress, TaskHold, TaskSummary

RunState = Annotated[str, one_of("running", "paused", "completed", "failed", "cancelled")]
MERMAID = "text/vnd.mermaid"


class NewWorkflow(Extended, frozen=True, kw_only=True):
    """A plan to run on a queue, or a published definition and its version (default: the last). `input` is the input of
    this run: all its tasks see it."""

    queue_id: Name
    plan: Plan | None = None
    definition_id: Id | None = None
    version: VersionNumber | None = None
    input: dict[str, Any] | None = None
    # The phase of a project that the run belongs to.
    phase_id: Id | None = None


class WorkflowQuery(PageQuery, frozen=True, kw_only=True):
    """Which runs: live ones (running or paused), ended ones, those in one state, or all."""

    state: Literal["live", "ended", "running", "paused", "completed", "failed", "cancelled"] | None = None


class AtQuery(Body, frozen=True, kw_only=True):
    """The sequence at which to show the run; without one, now."""

    at: Annotated[int, Meta(ge=1, lt=1 << 40)] | None = None


class GraphQuery(AtQuery, frozen=True, kw_only=True):
    """The graph as JSON, or as Mermaid text (also with Accept: text/vnd.mermaid)."""

    format: Literal["json", "mermaid"] = "json"


class StartedWorkflow(Stateful, frozen=True, kw_only=True):
    """A run with the tasks that are available at its start, by their ids in the plan."""

    SPECIFIC: ClassVar[str] = "workflow_id"
    workflow_id: str
    status: Annotated[str, one_of("running")]
    state: Annotated[str, one_of("running")] = ""
    available_tasks: tuple[str, ...]
    event_id: str
    definition_id: str = ""
    version: int | None = None
    validation: Validation


class WorkflowChanged(Stateful, frozen=True, kw_only=True):
    """The state of the run; an event is written only if it changed."""

    SPECIFIC: ClassVar[str] = "workflow_id"
    workflow_id: str
    status: Annotated[str, one_of("running", "paused", "cancelled")]
    state: Annotated[str, one_of("running", "paused", "cancelled")] = ""
    event_id: str = ""


class Counts(Reply, frozen=True, kw_only=True):
    """How many tasks of a run are in which state."""

    total: int
    completed: int
    failed: int
    cancelled: int
    open: int


class Workflow(Stateful, frozen=True, kw_only=True):
    """A run in a list."""

    SPECIFIC: ClassVar[str] = "workflow_id"
    workflow_id: str
    status: RunState
    state: RunState = ""
    name: str = ""
    description: str = ""
    queue_id: str
    definition_id: str = ""
    version: int | None = None
    phase_id: str = ""
    project_id: str = ""
    counts: Counts
    started_at: str
    ended_at: str | None = None
    erased: bool = False


class Step(Reply, frozen=True, kw_only=True):
    """One task of a run: its state and since when, its holder, and what it waits for."""

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
    # The dependencies that are not done yet.
    blocked_by: tuple[str, ...] = ()
    # Why it waits: dependency, paused or parallel_limit.
    waits_because: str = ""
    claim: TaskHold | None = None
    progress: Progress | None = None
    blocker_type: str = ""
    failure: Failure | None = None
    cancelled_because: str = ""
    deadline_at: str | None = None
    gate: Gate | None = None
    outputs: tuple[str, ...] = ()
    artifact_ids: tuple[str, ...] = ()
    completed_by: str = ""
    ended_at: str | None = None


class WorkflowState(Workflow, frozen=True, kw_only=True):
    """A run in full."""

    available_tasks: tuple[str, ...]
    critical_path: tuple[str, ...]
    max_parallel_tasks: int
    tasks: tuple[Step, ...]
    # Simple tasks that were created with this workflowId, beside those of the plan; cancelled with the run.
    more_tasks: tuple[TaskSummary, ...] = ()
    # The sequence at which this was true.
    sequence: int


class Node(Reply, frozen=True, kw_only=True):
    """A task in the graph of a run."""

    id: str
    task_id: str = ""
    title: str = ""
    role: str
    state: str
    level: int
    gated: bool = False


class Edge(Reply, frozen=True, kw_only=True):
    """`to` waits for `source`."""

    source: str
    to: str


class Graph(Stateful, frozen=True, kw_only=True):
    """A run as nodes and edges."""

    SPECIFIC: ClassVar[str] = "workflow_id"
    workflow_id: str
    status: RunState
    state: RunState = ""
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


_ENDED = {409: "The run has ended."}

START_WORKFLOW = Operation(
    "start_workflow",
    "POST",
    "/workflows",
    PRODUCE,
    body=NewWorkflow,
    reply=StartedWorkflow,
    status=201,
    summary="Start a plan or a published definition.",
    description="Start a plan: it is validated, missing roles are created, and its first tasks open.",
    replies={
        402: "The credits of the workspace are used up.",
        404: "There is no such queue, definition or version.",
        409: "The definition has no published version.",
    },
    body_limit="plan_bytes",
    example={"queueId": "queue_podcast", "plan": EXAMPLE_PLAN},
    reply_example={
        "id": "wf_01JTMX9A2B3C4D5E6F7G8H9JKM",
        "workflowId": "wf_01JTMX9A2B3C4D5E6F7G8H9JKM",
        "status": "running",
        "state": "running",
        "availableTasks": ["guest_intake"],
        "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKN",
        "validation": {"valid": True, "errors": [], "warnings": []},
    },
    method_name="workflows.start",
    positional=("queue",),
)
LIST_WORKFLOWS = Operation(
    "list_workflows",
    "GET",
    "/workflows",
    READ,
    query=WorkflowQuery,
    reply=Page[Workflow],
    summary="List the runs of the workspace.",
    description="List the runs of the workspace, oldest first.",
    method_name="workflows.list",
)
GET_WORKFLOW = Operation(
    "get_workflow",
    "GET",
    "/workflows/{workflow_id}",
    READ,
    reply=Workflow,
    summary="Show a run.",
    method_name="workflows.get",
)
GET_WORKFLOW_STATE = Operation(
    "get_workflow_state",
    "GET",
    "/workflows/{workflow_id}/state",
    READ,
    query=AtQuery,
    reply=WorkflowState,
    summary="Show everything about a run, now or at any sequence of the ledger.",
    description="Show everything about a run: every task with its state, attempt, claim, gate and dependencies.",
    method_name="workflows.state",
)
# The SDK has two hand-written methods for it: `graph` and `mermaid`.
GET_WORKFLOW_GRAPH = Operation(
    "get_workflow_graph",
    "GET",
    "/workflows/{workflow_id}/graph",
    READ,
    query=GraphQuery,
    reply=Graph,
    summary="Show a run as nodes and edges, or as Mermaid text.",
    media=("application/json", MERMAID),
    method_name="workflows.graph",
)
PAUSE_WORKFLOW = Operation(
    "pause_workflow",
    "POST",
    "/workflows/{workflow_id}/pause",
    PRODUCE,
    body=Extended,
    reply=WorkflowChanged,
    summary="Pause a run.",
    description="Pause a run: no task opens and none can be claimed; running claims continue.",
    replies=_ENDED,
    method_name="workflows.pause",
    command="workflow pause WORKFLOW",
)
RESUME_WORKFLOW = Operation(
    "resume_workflow",
    "POST",
    "/workflows/{workflow_id}/resume",
    PRODUCE,
    body=Extended,
    reply=WorkflowChanged,
    summary="Resume a paused run.",
    replies=_ENDED,
    method_name="workflows.resume",
    command="workflow resume WORKFLOW",
)
CANCEL_WORKFLOW = Operation(
    "cancel_workflow",
    "POST",
    "/workflows/{workflow_id}/cancel",
    PRODUCE,
    body=Extended,
    reply=WorkflowChanged,
    summary="Cancel a run.",
    description="Cancel a run at once; the holders of its tasks learn of it at their next call.",
    replies=_ENDED,
    method_name="workflows.cancel",
    command="workflow cancel WORKFLOW",
)

OPERATIONS = (
    START_WORKFLOW,
    LIST_WORKFLOWS,
    GET_WORKFLOW,
    GET_WORKFLOW_STATE,
    GET_WORKFLOW_GRAPH,
    PAUSE_WORKFLOW,
    RESUME_WORKFLOW,
    CANCEL_WORKFLOW,
)
