"""Workflows: plans at work. Started, seen now and at any place of the ledger, drawn, paused, resumed, cancelled."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.api.call import Call, Raw
from redkey.api.events import listed_or_live
from redkey.api.fields import Body, Id, Listed, Name, Page, place_after, wrong
from redkey.api.plans import EXAMPLE, PlanDeclined, ValidationView, checked, texts_of, validation_view
from redkey.commands.decision import Refused, not_found
from redkey.commands.workflows import CancelWorkflow, PauseWorkflow, ResumeWorkflow
from redkey.http.route import PRODUCE, READ, Route
from redkey.plans.model import read_plan
from redkey.readmodel.plan_text import plan_text
from redkey.readmodel.rows import entity
from redkey.readmodel.structure import pinned
from redkey.readmodel.view import View, read_document
from redkey.readmodel.workflow_at import RunSnapshot, run_at, run_now
from redkey.readmodel.workflows import (
    Graph,
    WorkflowState,
    WorkflowView,
    mermaid,
    workflow_graph,
    workflow_state,
    workflow_view,
)
from redkey.reducers.entities import Version, Workflow
from redkey.services.costs import cost_of_tasks
from redkey.services.definitions import read_definition, read_draft, read_version
from redkey.services.outcome import Outcome
from redkey.services.planning import Prepared, missing_roles, prepare, start_command
from redkey.services.use_cases import events
from redkey.services.use_cases.texts import refuse_secrets_beside
from redkey.wire.events import Ref
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import queue_id

MERMAID = "text/vnd.mermaid"


class NewWorkflow(Body, frozen=True, kw_only=True):
    """A plan to run on a queue, or a published definition and its version, the last one by default. `input` is what
    this run is given: every task of it sees it."""

    queue_id: Name
    plan: dict[str, Any] | None = None
    definition_id: Id | None = None
    version: Annotated[int, Meta(ge=1, le=999_999)] | None = None
    input: dict[str, Any] | None = None


class StartedWorkflow(View, frozen=True, kw_only=True):
    """A run, with the tasks that are open from the start, by their ids in the plan."""

    workflow_id: str
    status: Literal["running"]
    available_tasks: tuple[str, ...]
    event_id: str
    definition_id: str = ""
    version: int | None = None
    validation: ValidationView


class WorkflowChanged(View, frozen=True, kw_only=True):
    """Where the run stands now; an event only when that changed."""

    workflow_id: str
    status: Literal["running", "paused", "cancelled"]
    event_id: str = ""


class WorkflowQuery(Page, frozen=True, kw_only=True):
    """Which runs: live ones (running or paused), ended ones, or all."""

    state: Literal["live", "ended"] | None = None


class AtQuery(Body, frozen=True, kw_only=True):
    """The place in the ledger at which to look at the run; its head when none is given."""

    at: Annotated[int, Meta(ge=1, lt=1 << 40)] | None = None


class GraphQuery(AtQuery, frozen=True, kw_only=True):
    """The graph as JSON, or as Mermaid text (also with Accept: text/vnd.mermaid)."""

    format: Literal["json", "mermaid"] = "json"


async def start_workflow(call: Call, body: NewWorkflow) -> StartedWorkflow:
    """Start a plan: it is validated, its missing roles are made, and its first tasks open."""
    named = queue_id(body.queue_id)
    if (body.plan is None) == (body.definition_id is None):
        raise wrong("plan_or_definition", "/plan", "give a plan or a definitionId, and not both")
    if body.version is not None and body.definition_id is None:
        raise wrong("plan_or_definition", "/version", "a version is one of a definition; give its definitionId")
    plan, version = (body.plan, None) if body.plan is not None else _published(call, body)
    found = await checked(call, plan)
    if not found.valid:
        raise PlanDeclined(found, "/plan")
    call.charge(cost_of_tasks(len(plan["tasks"])))
    await refuse_secrets_beside(call, {"plan": texts_of(plan), "input": body.input or {}}, queue_id=named)
    nonce, services = call.services.ids.nonce, call.services
    if version is not None and not body.input:
        prepared = _as_published(call, version)
    else:
        prepared = await call.in_thread(lambda: prepare(plan, nonce, body.input))
    roles, documents = missing_roles(read_plan(plan), services.coordinator.peek(call.topic).roles, nonce)
    command = start_command(
        prepared,
        "wf_" + services.ids.ulid(),
        named,
        roles,
        definition_id=version.definition_id if version is not None else "",
        version=version.version if version is not None else 0,
    )
    outcome = await call.submit(command, (*prepared.contents, *documents))
    return _started(outcome, validation_view(found))


def _published(call: Call, body: NewWorkflow) -> tuple[dict[str, Any], Version]:
    """The plan of a published version."""
    store, definition_id = call.services.store, body.definition_id or ""
    definition = read_definition(store, call.topic, definition_id)
    if definition is None:
        if read_draft(store, call.topic, definition_id) is None:
            raise not_found("definition")
        raise Refused(409, "not_published", "This definition has a draft only; publish it first.")
    version = read_version(store, call.topic, definition_id, body.version or definition.version)
    if version is None:
        raise not_found("version")
    document = read_document(store, call.topic, version.content_sha256)
    if document is None:
        raise Refused(409, "content_erased", "The text of this version was erased; publish another one.")
    return document["plan"], version


def _as_published(call: Call, version: Version) -> Prepared:
    """A run that is given nothing of its own works by the documents of its version."""
    return Prepared(
        pinned(call.services.store, call.topic, version.structure_sha256),
        Ref(bytes=version.structure_bytes, sha256=version.structure_sha256),
        Ref(bytes=version.content_bytes, sha256=version.content_sha256),
        (),
    )


def _started(outcome: Outcome, validation: ValidationView) -> StartedWorkflow:
    wire = outcome.records[0].wire
    names = {
        parse_stream(one.event.stream.stream_id).subject: one.wire["payload"]["plan_task"]
        for one in outcome.records
        if one.event.type == "task.created"
    }
    opened = [
        names[parse_stream(one.event.stream.stream_id).subject]
        for one in outcome.records
        if one.event.type == "task.available"
    ]
    return StartedWorkflow(
        workflow_id=parse_stream(wire["stream"]["stream_id"]).subject,
        status="running",
        available_tasks=tuple(opened),
        event_id=event_id(wire["wire_id"]),
        definition_id=wire["payload"].get("definition_id", ""),
        version=wire["payload"].get("version"),
        validation=validation,
    )


def read_workflow(call: Call) -> Workflow:
    """The run that the path names; not found when there is none in the workspace."""
    row = call.services.store.row(call.topic, "workflow", call.path["workflow_id"])
    if row is None:
        raise not_found("workflow")
    workflow: Workflow = entity(row)
    return workflow


def _show(call: Call, workflow: Workflow) -> WorkflowView:
    return workflow_view(workflow, plan_text(call.services.store, call.topic, workflow.content_sha256))


async def list_workflows(call: Call) -> Listed[WorkflowView]:
    """The runs of the workspace, the oldest first."""
    asked: WorkflowQuery = call.query
    rows = call.services.store.rows(call.topic, "workflow", asked.state, place_after(asked), asked.limit)
    following = f"{rows[-1].position}.{rows[-1].key}" if len(rows) == asked.limit else None
    return Listed(tuple(_show(call, entity(row)) for row in rows), following)


async def get_workflow(call: Call) -> WorkflowView:
    """One run."""
    return _show(call, read_workflow(call))


async def _snapshot(call: Call) -> RunSnapshot:
    workflow, store, at = read_workflow(call), call.services.store, call.query.at
    if at is None:
        return await call.in_thread(lambda: _steady(call))
    if at > store.head(call.topic).sequence:
        raise wrong("sequence_ahead", "/at", "the ledger has not come to this sequence yet")
    found = await call.in_thread(lambda: run_at(store, call.topic, workflow, at))
    if found is None:
        raise not_found("workflow")
    return found


def _steady(call: Call) -> RunSnapshot:
    """Rows are many reads; only when nobody wrote to the workspace in between do they tell of one moment."""
    store = call.services.store
    for _ in range(5):
        found = run_now(store, call.topic, read_workflow(call))
        if store.head(call.topic).sequence == found.sequence:
            return found
    # Others never pause: the run as it was when its records were last read is one moment too.
    replayed = run_at(store, call.topic, read_workflow(call), found.sequence)
    return replayed or found


async def get_workflow_state(call: Call) -> WorkflowState:
    """Everything about a run: every task with its state, attempt, claim, gate and what it waits for."""
    found = await _snapshot(call)
    return workflow_state(found, plan_text(call.services.store, call.topic, found.run.workflow.content_sha256))


async def get_workflow_graph(call: Call) -> Graph | Raw:
    """A run as nodes and edges, or as Mermaid text."""
    found = await _snapshot(call)
    graph = workflow_graph(found, plan_text(call.services.store, call.topic, found.run.workflow.content_sha256))
    if call.query.format == "mermaid" or call.accepts(MERMAID.encode()):
        return Raw(mermaid(graph).encode(), MERMAID)
    return graph


async def pause_workflow(call: Call) -> WorkflowChanged:
    """Pause a run: nothing opens and nothing is claimed; running claims go on."""
    return _changed(call, await call.submit(PauseWorkflow(call.path["workflow_id"])), "paused")


async def resume_workflow(call: Call) -> WorkflowChanged:
    """Let a paused run go on."""
    return _changed(call, await call.submit(ResumeWorkflow(call.path["workflow_id"])), "running")


async def cancel_workflow(call: Call) -> WorkflowChanged:
    """End a run at once; holders of its tasks learn it at their next call."""
    return _changed(call, await call.submit(CancelWorkflow(call.path["workflow_id"])), "cancelled")


def _changed(call: Call, outcome: Outcome, status: Literal["running", "paused", "cancelled"]) -> WorkflowChanged:
    happened = event_id(outcome.records[0].event.wire_id) if outcome.records else ""
    return WorkflowChanged(workflow_id=call.path["workflow_id"], status=status, event_id=happened)


_ENDED = {409: "The run has ended."}
_STARTED = {
    "workflowId": "wf_01JTMX9A2B3C4D5E6F7G8H9JKM",
    "status": "running",
    "availableTasks": ["guest_intake"],
    "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKN",
    "validation": {"valid": True, "errors": [], "warnings": []},
}


def _act(verb: str, handler: Any, summary: str) -> Route:
    return Route(
        "POST",
        f"/workflows/{{workflow_id}}/{verb}",
        handler,
        PRODUCE,
        reply=WorkflowChanged,
        summary=summary,
        replies=_ENDED,
        idempotent=True,
    )


ROUTES = [
    Route(
        "POST",
        "/workflows",
        start_workflow,
        PRODUCE,
        body=NewWorkflow,
        reply=StartedWorkflow,
        status=201,
        summary="Start a plan or a published definition.",
        replies={
            402: "The credits of the workspace are used up.",
            404: "There is no such queue, definition or version.",
            409: "The definition has no published version.",
        },
        idempotent=True,
        body_limit="plan_bytes",
        example={"queueId": "queue_podcast", "plan": EXAMPLE},
        reply_example=_STARTED,
    ),
    Route(
        "GET",
        "/workflows",
        list_workflows,
        READ,
        query=WorkflowQuery,
        reply=Listed[WorkflowView],
        summary="The runs of the workspace.",
    ),
    Route("GET", "/workflows/{workflow_id}", get_workflow, READ, reply=WorkflowView, summary="One run."),
    Route(
        "GET",
        "/workflows/{workflow_id}/state",
        get_workflow_state,
        READ,
        query=AtQuery,
        reply=WorkflowState,
        summary="Everything about a run, now or at any place of the ledger.",
    ),
    Route(
        "GET",
        "/workflows/{workflow_id}/graph",
        get_workflow_graph,
        READ,
        query=GraphQuery,
        reply=Graph,
        summary="A run as nodes and edges, or as Mermaid text.",
        media=("application/json", MERMAID),
    ),
    listed_or_live(events.workflow_events, events.follow_workflow),
    _act("pause", pause_workflow, "Pause a run."),
    _act("resume", resume_workflow, "Let a paused run go on."),
    _act("cancel", cancel_workflow, "End a run at once."),
]
