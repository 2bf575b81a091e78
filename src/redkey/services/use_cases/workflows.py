"""Workflows: runs of plans. Started, shown now and at any place of the ledger, drawn, paused, resumed, cancelled."""

from __future__ import annotations

from functools import partial

import msgspec

from redkey.commands.decision import Refused, not_found, wrong
from redkey.commands.workflows import CancelWorkflow, PauseWorkflow, ResumeWorkflow
from redkey.plans.model import read_plan
from redkey.readmodel.plan_text import plan_text, task_document
from redkey.readmodel.structure import pinned
from redkey.readmodel.task_view import summary_view
from redkey.readmodel.view import read_document
from redkey.readmodel.workflow_at import RunSnapshot, run_at, run_now
from redkey.readmodel.workflows import workflow_graph, workflow_state, workflow_view
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending
from redkey.services.costs import cost_of_tasks
from redkey.services.definitions import read_definition, read_draft, read_version
from redkey.services.outcome import Outcome
from redkey.services.planning import Prepared, missing_roles, prepare, start_command
from redkey.services.use_case import use_case
from redkey.services.use_cases.pages import page_by_place, read_entity
from redkey.services.use_cases.plans import checked, plan_invalid, texts_of, validation_view
from redkey.services.use_cases.texts import refuse_secrets_beside
from redkey.shapes import workflows
from redkey.shapes.definitions import Plan, Validation
from redkey.shapes.fields import Page
from redkey.shapes.workflows import (
    AtQuery,
    Graph,
    GraphQuery,
    NewWorkflow,
    StartedWorkflow,
    Workflow,
    WorkflowChanged,
    WorkflowQuery,
    WorkflowState,
)
from redkey.wire.events import Ref, TaskAvailable, TaskCreated, WorkflowStarted
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import queue_id

# How often rows are read again if records were appended meanwhile.
_TRIES = 5


@use_case(workflows.START_WORKFLOW)
async def start_workflow(caller: Caller, new: NewWorkflow) -> Pending[StartedWorkflow]:
    """Start a plan: it is validated, its missing roles are created, and its first tasks open."""
    named = queue_id(new.queue_id)
    if (new.plan is None) == (new.definition_id is None):
        raise wrong("plan_or_definition", "/plan", "give a plan or a definitionId, and not both")
    if new.version is not None and new.definition_id is None:
        raise wrong("plan_or_definition", "/version", "a version is one of a definition; give its definitionId")
    plan, version = (new.plan, None) if new.plan is not None else _published(caller, new)
    found = await checked(caller, plan)
    if not found.valid:
        raise plan_invalid(found, "/plan")
    caller.charge(cost_of_tasks(len(plan["tasks"])))
    await refuse_secrets_beside(caller, {"plan": texts_of(plan), "input": new.input or {}}, queue_id=named)
    means, nonce = caller.means, caller.means.ids.nonce
    if version is not None and not new.input:
        prepared = _as_published(caller, version)
    else:
        prepared = await caller.in_thread(lambda: prepare(plan, nonce, new.input))
    roles, documents = missing_roles(read_plan(plan), means.coordinator.peek(caller.topic).roles, nonce)
    command = start_command(
        prepared,
        "wf_" + means.ids.ulid(),
        named,
        roles,
        definition_id=version.definition_id if version is not None else "",
        version=version.version if version is not None else 0,
        phase_id=new.phase_id or "",
    )
    validation = validation_view(found)
    return Pending(command, lambda outcome, _: _started(outcome, validation), (*prepared.contents, *documents))


def _published(caller: Caller, new: NewWorkflow) -> tuple[Plan, entities.Version]:
    """Return the plan of a published version."""
    store, topic, definition_id = caller.means.store, caller.topic, new.definition_id or ""
    definition = read_definition(store, topic, definition_id)
    if definition is None:
        if read_draft(store, topic, definition_id) is None:
            raise not_found("definition")
        raise Refused(409, "not_published", "This definition has a draft only; publish it first.")
    version = read_version(store, topic, definition_id, new.version or definition.version)
    if version is None:
        raise not_found("version")
    document = read_document(store, topic, version.content_sha256)
    if document is None:
        raise Refused(409, "content_erased", "The text of this version was erased; publish another one.")
    return document["plan"], version


def _as_published(caller: Caller, version: entities.Version) -> Prepared:
    """Start a run without an input of its own: it uses the documents of its version."""
    return Prepared(
        pinned(caller.means.store, caller.topic, version.structure_sha256),
        Ref(bytes=version.structure_bytes, sha256=version.structure_sha256),
        Ref(bytes=version.content_bytes, sha256=version.content_sha256),
        (),
    )


def _started(outcome: Outcome, validation: Validation) -> StartedWorkflow:
    event = outcome.records[0].event
    if type(event.payload) is not WorkflowStarted:
        raise AssertionError("a run without the record of its start")
    names: dict[str, str] = {}
    opened: list[str] = []
    for one in outcome.records:
        payload, task_id = one.event.payload, parse_stream(one.event.stream.stream_id).subject
        if type(payload) is TaskCreated:
            names[task_id] = payload.plan_task or ""
        elif type(payload) is TaskAvailable:
            opened.append(names[task_id])
    return StartedWorkflow(
        workflow_id=parse_stream(event.stream.stream_id).subject,
        status="running",
        available_tasks=tuple(opened),
        event_id=event_id(event.wire_id),
        definition_id=event.payload.definition_id or "",
        version=event.payload.version,
        validation=validation,
    )


def read_workflow(caller: Caller, workflow_id: str) -> entities.Workflow:
    """Return the run with an id; not found if the workspace has none."""
    return read_entity(caller, entities.Workflow, workflow_id)


def _show(caller: Caller, workflow: entities.Workflow) -> Workflow:
    return workflow_view(workflow, plan_text(caller.means.store, caller.topic, workflow.content_sha256))


@use_case(workflows.LIST_WORKFLOWS)
def list_workflows(caller: Caller, asked: WorkflowQuery) -> Page[Workflow]:
    """List the runs of the workspace, the oldest first."""
    wanted = asked.state
    listed = "live" if wanted in ("running", "paused") else "ended" if wanted not in (None, "live") else wanted
    found: Page[entities.Workflow] = page_by_place(caller, "workflow", listed, asked, lambda workflow: workflow)
    runs = [one for one in found.items if wanted in (None, "live", "ended", one.state)]
    return Page(tuple(_show(caller, one) for one in runs), found.next)


@use_case(workflows.GET_WORKFLOW)
def get_workflow(caller: Caller, workflow_id: str) -> Workflow:
    """Show one run."""
    return _show(caller, read_workflow(caller, workflow_id))


@use_case(workflows.GET_WORKFLOW_STATE)
async def get_workflow_state(caller: Caller, workflow_id: str, asked: AtQuery) -> WorkflowState:
    """Show everything about a run: every task with its state, attempt, claim, gate and what it waits for."""
    found = await _snapshot(caller, workflow_id, asked.at)
    store, topic = caller.means.store, caller.topic
    read = partial(read_document, store, topic)
    shown = workflow_state(found, plan_text(store, topic, found.run.workflow.content_sha256), read)
    more = tuple(summary_view(task, task_document(store, topic, task), read) for task in found.extras)
    return msgspec.structs.replace(shown, more_tasks=more)


@use_case(workflows.GET_WORKFLOW_GRAPH)
async def get_workflow_graph(caller: Caller, workflow_id: str, asked: GraphQuery) -> Graph:
    """Return a run as nodes and edges, or as Mermaid text."""
    found = await _snapshot(caller, workflow_id, asked.at)
    return workflow_graph(found, plan_text(caller.means.store, caller.topic, found.run.workflow.content_sha256))


async def _snapshot(caller: Caller, workflow_id: str, at: int | None) -> RunSnapshot:
    workflow, store, topic = read_workflow(caller, workflow_id), caller.means.store, caller.topic
    if at is None:
        return await caller.in_thread(lambda: _steady(caller, workflow_id))
    if at > store.head(topic).sequence:
        raise wrong("sequence_ahead", "/at", "the ledger has not reached this sequence yet")
    found = await caller.in_thread(lambda: run_at(store, topic, workflow, at))
    if found is None:
        raise not_found("workflow")
    return found


def _steady(caller: Caller, workflow_id: str) -> RunSnapshot:
    """Return the run now. That takes many reads, which show one moment only if no record was appended between them."""
    store, topic = caller.means.store, caller.topic
    for _ in range(_TRIES):
        found = run_now(store, topic, read_workflow(caller, workflow_id))
        if store.head(topic).sequence == found.sequence:
            return found
    # The workspace is never idle: replay the run's records up to the place of the last try.
    replayed = run_at(store, topic, read_workflow(caller, workflow_id), found.sequence)
    return replayed or found


@use_case(workflows.PAUSE_WORKFLOW)
def pause_workflow(caller: Caller, workflow_id: str) -> Pending[WorkflowChanged]:
    """Pause a run: nothing opens and nothing is claimed; running claims continue."""
    return Pending(PauseWorkflow(workflow_id), lambda outcome, _: _changed(outcome, workflow_id, "paused"))


@use_case(workflows.RESUME_WORKFLOW)
def resume_workflow(caller: Caller, workflow_id: str) -> Pending[WorkflowChanged]:
    """Resume a paused run."""
    return Pending(ResumeWorkflow(workflow_id), lambda outcome, _: _changed(outcome, workflow_id, "running"))


@use_case(workflows.CANCEL_WORKFLOW)
def cancel_workflow(caller: Caller, workflow_id: str) -> Pending[WorkflowChanged]:
    """End a run at once; holders of its tasks learn it with their next call."""
    return Pending(CancelWorkflow(workflow_id), lambda outcome, _: _changed(outcome, workflow_id, "cancelled"))


def _changed(outcome: Outcome, workflow_id: str, status: str) -> WorkflowChanged:
    happened = event_id(outcome.records[0].event.wire_id) if outcome.records else ""
    return WorkflowChanged(workflow_id=workflow_id, status=status, event_id=happened)
