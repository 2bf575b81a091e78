"""Gates: approvals that completed tasks wait for."""

from __future__ import annotations

from typing import Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import Page, Reply
from redkey.client.request import Request, at, get, post


class Gate(Reply, frozen=True, kw_only=True):
    """An approval that a completed task waits for, or how it was decided."""

    gate_id: str
    state: str
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


class GateDecided(Reply, frozen=True, kw_only=True):
    """A gate that is closed; `retry` says of a rejection whether another attempt follows."""

    gate_id: str
    status: str
    task_id: str
    workflow_id: str = ""
    retry: bool | None = None
    event_id: str


class Gates(Resource[Mode]):
    """Approvals; whoever did the work never decides on it."""

    @Listing
    def list(
        self,
        *,
        state: Literal["open", "closed"] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Gate]]:
        """Approvals that are awaited, or closed ones."""
        return get("/gates", Page[Gate], state=state, limit=limit, after=after)

    @Operation
    def get(self, gate_id: str) -> Request[Gate]:
        """One gate."""
        return get(at("gates", gate_id), Gate)

    @Operation
    def approve(self, gate_id: str, note: str | None = None) -> Request[GateDecided]:
        """Approve what was done: what depends on it goes on."""
        return post(at("gates", gate_id, "approve"), GateDecided, note=note)

    @Operation
    def reject(self, gate_id: str, note: str) -> Request[GateDecided]:
        """Send back what was done: another attempt gets the note, while there are attempts."""
        return post(at("gates", gate_id, "reject"), GateDecided, note=note)
