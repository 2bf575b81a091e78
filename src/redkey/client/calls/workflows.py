"""Workflows: plans at work. Started, seen now and at any place of the ledger, drawn, paused, resumed, cancelled.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, post
from redkey.shapes.events import Event, Order
from redkey.shapes.fields import Page
from redkey.shapes.gates import GateDecided
from redkey.shapes.workflows import StartedWorkflow, Workflow, WorkflowChanged, WorkflowState


class Workflows(Resource[Mode]):
    """Workflows: plans at work. Started, seen now and at any place of the ledger, drawn, paused, resumed, cancelled."""

    @Listing
    def events(
        self,
        workflow_id: str,
        *,
        type: Sequence[str] | str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What happened in a run; as a live stream when text/event-stream is asked for."""
        return get(
            at("workflows", workflow_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after
        )

    @Operation
    def approve(self, workflow_id: str, plan_task_id: str, note: str | None = None) -> Request[GateDecided]:
        """Approve a task of a run, named by its id in the plan."""
        return post(at("workflows", workflow_id, "gates", plan_task_id, "approve"), GateDecided, note=note)

    @Operation
    def reject(self, workflow_id: str, plan_task_id: str, note: str) -> Request[GateDecided]:
        """Send back a task of a run, named by its id in the plan."""
        return post(at("workflows", workflow_id, "gates", plan_task_id, "reject"), GateDecided, note=note)

    @Operation
    def start(
        self,
        queue: str,
        *,
        plan: Mapping[str, Any] | None = None,
        definition_id: str | None = None,
        version: int | None = None,
        input: Mapping[str, Any] | None = None,
    ) -> Request[StartedWorkflow]:
        """Start a plan: it is validated, its missing roles are made, and its first tasks open."""
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
        state: Literal["live", "ended", "running", "paused", "completed", "failed", "cancelled"] | None = None,
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
        """Everything about a run: every task with its state, attempt, claim, gate and what it waits for."""
        return get(at("workflows", workflow_id, "state"), WorkflowState, at=at_sequence)

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
        """End a run at once; holders of its tasks learn it at their next call."""
        return post(at("workflows", workflow_id, "cancel"), WorkflowChanged)
