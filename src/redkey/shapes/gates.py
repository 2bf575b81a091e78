"""Gates: approvals that completed tasks wait for. A worker may approve its own work only if the workspace allows it,
and an agent never."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from redkey.shapes.fields import Extended, Identified, Page, PageQuery, Stateful, Text, one_of
from redkey.shapes.operation import AGENT, PRODUCE, READ, Operation


class GateQuery(PageQuery, frozen=True, kw_only=True):
    """Open gates, or closed ones."""

    state: Literal["open", "closed"] = "open"


class Approval(Extended, frozen=True, kw_only=True):
    """A note for the approval."""

    note: Annotated[Text, Meta(description="A note for the approval.")] = ""


class Rejection(Extended, frozen=True, kw_only=True):
    """What is missing; the agent of the next attempt reads it."""

    note: Annotated[
        str, Meta(min_length=1, max_length=65536, description="What is missing; the next attempt reads it.")
    ]


class Gate(Identified, frozen=True, kw_only=True):
    """An approval that a completed task waits for, or the decision on it."""

    SPECIFIC: ClassVar[str] = "gate_id"
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
    # Whether the gate allows the key that did the work to decide, and whether that key approved it.
    self_approval: bool = False
    self_approved: bool = False
    note: str = ""


class GateDecided(Stateful, frozen=True, kw_only=True):
    """A closed gate; after a rejection, `retry` says whether another attempt follows."""

    SPECIFIC: ClassVar[str] = "gate_id"
    gate_id: str
    status: Annotated[str, one_of("approved", "rejected")]
    state: Annotated[str, one_of("approved", "rejected")] = ""
    task_id: str
    workflow_id: str = ""
    retry: bool | None = None
    event_id: str


# Admins may decide, and those whom a plan lists: agents and keys of any kind except read-only keys.
_DECIDE = (*PRODUCE, *AGENT)
_DECISION: dict[str, Any] = {
    "reply": GateDecided,
    "replies": {
        403: "The caller did the work and the workspace allows no self-approval, or it is not an approver.",
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
    summary="List gates: approvals that tasks wait for.",
    description="List gates, oldest first.",
    method_name="gates.list",
)
GET_GATE = Operation(
    "get_gate",
    "GET",
    "/gates/{gate_id}",
    READ,
    reply=Gate,
    summary="Show a gate.",
    method_name="gates.get",
)
APPROVE_GATE = Operation(
    "approve_gate",
    "POST",
    "/gates/{gate_id}/approve",
    _DECIDE,
    body=Approval,
    summary="Approve a completed task.",
    description="Approve a completed task: its dependents may start.",
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
    summary="Reject a completed task.",
    description="Reject a completed task: another attempt gets the note, if any attempts are left.",
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
    summary="Reject a task of a run.",
    description="Reject a task of a run, named by its id in the plan.",
    method_name="workflows.reject",
    **_DECISION,
)

OPERATIONS = (LIST_GATES, GET_GATE, APPROVE_GATE, REJECT_GATE, APPROVE_PLAN_TASK, REJECT_PLAN_TASK)
