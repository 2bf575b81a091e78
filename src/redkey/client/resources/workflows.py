"""Workflows: plans at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from redkey.client.flow import Flowing
from redkey.client.operation import Listing, Mode, Operation, Resource, Stream
from redkey.client.replies import Page, Reply
from redkey.client.request import Request, at, get, post
from redkey.client.resources.definitions import Plan, Validation
from redkey.client.resources.gates import Gate, GateDecided
from redkey.client.resources.ledger import Event, Order, events_at, following
from redkey.client.resources.tasks import Failure, TaskHold


class StartedWorkflow(Reply, frozen=True, kw_only=True):
    """A run, with the tasks that are open from the start, by their ids in the plan."""

    workflow_id: str
    status: str
    available_tasks: tuple[str, ...]
    event_id: str
    definition_id: str = ""
    version: int | None = None
    validation: Validation


class WorkflowChanged(Reply, frozen=True, kw_only=True):
    """Where the run stands now; an event only when that changed."""

    workflow_id: str
    status: str
    event_id: str = ""


class Counts(Reply, frozen=True, kw_only=True):
    """How many tasks of a run stand where."""

    total: int
    completed: int
    failed: int
    cancelled: int
    open: int


class Workflow(Reply, frozen=True, kw_only=True):
    """A run in a list."""

    workflow_id: str
    status: str
    name: str = ""
    description: str = ""
    queue_id: str
    definition_id: str = ""
    version: int | None = None
    counts: Counts
    started_at: str
    ended_at: str | None = None
    erased: bool = False


class Step(Reply, frozen=True, kw_only=True):
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
    blocked_by: tuple[str, ...] = ()
    waits_because: str = ""
    claim: TaskHold | None = None
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


class Graph(Reply, frozen=True, kw_only=True):
    """A run as nodes and edges."""

    workflow_id: str
    status: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


class Workflows(Resource[Mode]):
    """Runs of plans."""

    @Operation
    def start(
        self,
        queue: str,
        *,
        plan: Plan | None = None,
        definition_id: str | None = None,
        version: int | None = None,
        input: dict[str, Any] | None = None,
    ) -> Request[StartedWorkflow]:
        """Start a plan or a published definition: missing roles are made and the first tasks open."""
        return post(
            "/workflows",
            StartedWorkflow,
            queue_id=queue,
            plan=plan,
            definition_id=definition_id,
            version=version,
            input=input,
        )

    @Listing
    def list(
        self,
        *,
        state: Literal["live", "ended"] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Workflow]]:
        """The runs of the workspace, the oldest first."""
        return get("/workflows", Page[Workflow], state=state, limit=limit, after=after)

    @Operation
    def get(self, workflow_id: str) -> Request[Workflow]:
        """One run."""
        return get(at("workflows", workflow_id), Workflow)

    @Operation
    def state(self, workflow_id: str, *, at_sequence: int | None = None) -> Request[WorkflowState]:
        """Everything about a run, now or at any place of the ledger."""
        return get(at("workflows", workflow_id, "state"), WorkflowState, at=at_sequence)

    @Operation
    def graph(self, workflow_id: str, *, at_sequence: int | None = None) -> Request[Graph]:
        """A run as nodes and edges."""
        return get(at("workflows", workflow_id, "graph"), Graph, at=at_sequence)

    @Operation
    def mermaid(self, workflow_id: str, *, at_sequence: int | None = None) -> Request[str]:
        """A run as a Mermaid diagram."""
        path = at("workflows", workflow_id, "graph")
        return get(path, str, accept="text/vnd.mermaid", at=at_sequence, format="mermaid")

    @Operation
    def pause(self, workflow_id: str) -> Request[WorkflowChanged]:
        """Pause a run: nothing opens and nothing is claimed; running claims go on."""
        return post(at("workflows", workflow_id, "pause"), WorkflowChanged)

    @Operation
    def resume(self, workflow_id: str) -> Request[WorkflowChanged]:
        """Let a paused run go on."""
        return post(at("workflows", workflow_id, "resume"), WorkflowChanged)

    @Operation
    def cancel(self, workflow_id: str) -> Request[WorkflowChanged]:
        """End a run at once."""
        return post(at("workflows", workflow_id, "cancel"), WorkflowChanged)

    @Operation
    def approve(self, workflow_id: str, plan_task_id: str, note: str | None = None) -> Request[GateDecided]:
        """Approve a task of a run, named by its id in the plan."""
        return post(at("workflows", workflow_id, "gates", plan_task_id, "approve"), GateDecided, note=note)

    @Operation
    def reject(self, workflow_id: str, plan_task_id: str, note: str) -> Request[GateDecided]:
        """Send back a task of a run, named by its id in the plan."""
        return post(at("workflows", workflow_id, "gates", plan_task_id, "reject"), GateDecided, note=note)

    @Listing
    def events(
        self,
        workflow_id: str,
        *,
        type: str | Sequence[str] | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What happened in a run."""
        return events_at(at("workflows", workflow_id, "events"), type=type, order=order, limit=limit, after=after)

    @Stream
    def follow(
        self, workflow_id: str, *, type: str | Sequence[str] | None = None, after: int | None = None
    ) -> Flowing[Event]:
        """The same as it happens, without gap; it goes on after the run has ended."""
        return following(at("workflows", workflow_id, "events"), type=type, after=after)
