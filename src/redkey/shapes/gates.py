"""Gates: approvals that completed tasks wait for. Who did the work decides on it only where the workspace allows it,
and an agent never."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.shapes.fields import Body, Page, PageQuery, Reply, Text, one_of
from redkey.shapes.operation import AGENT, PRODUCE, READ, Operation


class GateQuery(PageQuery, frozen=True, kw_only=True):
    """Open gates, or closed ones."""

    state: Literal["open", "closed"] = "open"


class Approval(Body, frozen=True, kw_only=True):
    """A note that goes with the approval."""

    note: Annotated[Text, Meta(description="What to say with it.")] = ""


class Rejection(Body, frozen=True, kw_only=True):
    """What is missing; the agent of the next attempt reads it."""

    note: Annotated[
        str, Meta(min_length=1, max_length=65536, description="What is missing; the next attempt reads it.")
    ]


class Gate(Reply, frozen=True, kw_only=True):
    """An approval that a completed task waits for, or how it was decided."""

    gate_id: str
    state: Annotated[str, one_of("open", "approved", "rejected", "cancelled")]
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
    # Whether the key that did the work may decide, as the gate records it, and whether it has approved.
    self_approval: bool = False
    self_approved: bool = False
    note: str = ""


class GateDecided(Reply, frozen=True, kw_only=True):
    """A gate that is closed; `retry` says of a rejection whether another attempt follows."""

    gate_id: str
    status: Annotated[str, one_of("approved", "rejected")]
    task_id: str
    workflow_id: str = ""
    retry: bool | None = None
    event_id: str


# Admins decide, and those whom a plan lists: agents and keys of any kind but those that only read.
_DECIDE = (*PRODUCE, *AGENT)
_DECISION: dict[str, Any] = {
    "reply": GateDecided,
    "replies": {
        403: "The caller did the work and the workspace allows no self-approval, or it is no approver.",
        409: "The gate is closed.",
    },
    "example": {"note": "Two of the questions are too general."},
    "positional": ("note",),
}

LIST_GATES = Operation(
    "list_gates",
    "GET",
    "/gates",
    READ,
    query=GateQuery,
    reply=Page[Gate],
    summary="Approvals that are awaited.",
    description="Gates, the oldest first.",
    method_name="gates.list",
)
GET_GATE = Operation(
    "get_gate",
    "GET",
    "/gates/{gate_id}",
    READ,
    reply=Gate,
    summary="One gate.",
    method_name="gates.get",
)
APPROVE_GATE = Operation(
    "approve_gate",
    "POST",
    "/gates/{gate_id}/approve",
    _DECIDE,
    body=Approval,
    summary="Approve what was done.",
    description="Approve what was done: what depends on it goes on.",
    method_name="gates.approve",
    **_DECISION,
    command="gate approve GATE",
)
REJECT_GATE = Operation(
    "reject_gate",
    "POST",
    "/gates/{gate_id}/reject",
    _DECIDE,
    body=Rejection,
    summary="Send back what was done.",
    description="Send back what was done: another attempt gets the note, while there are attempts.",
    method_name="gates.reject",
    **_DECISION,
    command="gate reject GATE",
)
APPROVE_PLAN_TASK = Operation(
    "approve_plan_task",
    "POST",
    "/workflows/{workflow_id}/gates/{plan_task_id}/approve",
    _DECIDE,
    body=Approval,
    summary="Approve a task of a run.",
    description="Approve a task of a run, named by its id in the plan.",
    method_name="workflows.approve",
    **_DECISION,
)
REJECT_PLAN_TASK = Operation(
    "reject_plan_task",
    "POST",
    "/workflows/{workflow_id}/gates/{plan_task_id}/reject",
    _DECIDE,
    body=Rejection,
    summary="Send back a task of a run.",
    description="Send back a task of a run, named by its id in the plan.",
    method_name="workflows.reject",
    **_DECISION,
)

OPERATIONS = (LIST_GATES, GET_GATE, APPROVE_GATE, REJECT_GATE, APPROVE_PLAN_TASK, REJECT_PLAN_TASK)
