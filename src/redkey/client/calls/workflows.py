"""Workflows: runs of plans. Start, show (now or at any sequence), draw, pause, resume and cancel them.

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
    """Workflows: runs of plans. Start, show (now or at any sequence), draw, pause, resume and cancel them."""

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
        """List what happened in a run; as a live stream with Accept: text/event-stream."""
        return get(
            at("workflows", workflow_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after
        )

    @Operation
    def approve(
        self,
        workflow_id: str,
        plan_task_id: str,
        note: str | None = None,
        *,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[GateDecided]:
        """Approve a task of a run, named by its id in the plan."""
        return post(
            at("workflows", workflow_id, "gates", plan_task_id, "approve"),
            GateDecided,
            note=note,
            extensions=extensions,
        )

    @Operation
    def reject(
        self, workflow_id: str, plan_task_id: str, note: str, *, extensions: Mapping[str, Any] | None = None
    ) -> Request[GateDecided]:
        """Reject a task of a run, named by its id in the plan."""
        return post(
            at("workflows", workflow_id, "gates", plan_task_id, "reject"), GateDecided, note=note, extensions=extensions
        )

    @Operation
    def start(
        self,
        queue: str,
        *,
        plan: Mapping[str, Any] | None = None,
        definition_id: str | None = None,
        version: int | None = None,
        input: Mapping[str, Any] | None = None,
        phase_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[StartedWorkflow]:
        """Start a plan: it is validated, missing roles are created, and its first tasks open."""
        return post(
            "/workflows",
            StartedWorkflow,
            queue_id=queue,
            plan=plan,
            definition_id=definition_id,
            version=version,
            input=input,
            phase_id=phase_id,
            extensions=extensions,
        )

    @Listing
    def list(
        self,
        *,
        state: Literal["live", "ended", "running", "paused", "completed", "failed", "cancelled"] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Workflow]]:
        """List the runs of the workspace, oldest first."""
        return get("/workflows", Page[Workflow], state=state, limit=limit, after=after)

    @Operation
    def get(self, workflow_id: str) -> Request[Workflow]:
        """Show a run."""
        return get(at("workflows", workflow_id), Workflow)

    @Operation
    def state(self, workflow_id: str, *, at_sequence: int | None = None) -> Request[WorkflowState]:
        """Show everything about a run: every task with its state, attempt, claim, gate and dependencies."""
        return get(at("workflows", workflow_id, "state"), WorkflowState, at=at_sequence)

    @Operation
    def pause(self, workflow_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[WorkflowChanged]:
        """Pause a run: no task opens and none can be claimed; running claims continue."""
        return post(at("workflows", workflow_id, "pause"), WorkflowChanged, extensions=extensions)

    @Operation
    def resume(self, workflow_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[WorkflowChanged]:
        """Resume a paused run."""
        return post(at("workflows", workflow_id, "resume"), WorkflowChanged, extensions=extensions)

    @Operation
    def cancel(self, workflow_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[WorkflowChanged]:
        """Cancel a run at once; the holders of its tasks learn of it at their next call."""
        return post(at("workflows", workflow_id, "cancel"), WorkflowChanged, extensions=extensions)
