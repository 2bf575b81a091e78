"""Gates: approvals that completed tasks wait for. Whoever did the work never decides on it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import Body, Listed, Page, Text, place_after
from redkey.api.workflows import read_workflow
from redkey.commands.decision import Refused, not_found
from redkey.commands.due import plan_task_id
from redkey.commands.workflows import ApproveGate, RejectGate
from redkey.http.route import PRODUCE, READ, Route
from redkey.ledger.ports import Content, Row
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import entity
from redkey.readmodel.view import View, read_document
from redkey.readmodel.workflows import GateView, gate_view
from redkey.reducers.entities import Gate, Task
from redkey.services.use_cases.texts import keep
from redkey.wire.decode import decode
from redkey.wire.events import Ref
from redkey.wire.ids import event_id

# Admins decide, and those whom a plan lists: agents and keys of any kind but those that only read.
_DECIDE = (*PRODUCE, "agent", "runner")


class Approval(Body, frozen=True, kw_only=True):
    """What to say with it."""

    note: Text = ""


class Rejection(Body, frozen=True, kw_only=True):
    """What is missing; whoever tries again reads it."""

    note: Annotated[str, Meta(min_length=1, max_length=65536)]


class Decided(View, frozen=True, kw_only=True):
    """A gate that is closed; `retry` says of a rejection whether another attempt follows."""

    gate_id: str
    status: Literal["approved", "rejected"]
    task_id: str
    workflow_id: str = ""
    retry: bool | None = None
    event_id: str


class GateQuery(Page, frozen=True, kw_only=True):
    """Open gates, or closed ones."""

    state: Literal["open", "closed"] = "open"


async def list_gates(call: Call) -> Listed[GateView]:
    """Gates, the oldest first."""
    asked: GateQuery = call.query
    rows = call.services.store.rows(call.topic, "gate", asked.state, place_after(asked), asked.limit)
    following = f"{rows[-1].position}.{rows[-1].key}" if len(rows) == asked.limit else None
    return Listed(tuple(_show(call, row) for row in rows), following)


async def get_gate(call: Call) -> GateView:
    """One gate."""
    row = call.services.store.row(call.topic, "gate", call.path["gate_id"])
    if row is None:
        raise not_found("gate")
    return _show(call, row)


def _show(call: Call, row: Row) -> GateView:
    gate: Gate = entity(row)
    store = call.services.store
    found = store.row(call.topic, "task", gate.task_id)
    task: Task | None = entity(found) if found is not None else None
    title = (task_document(store, call.topic, task) or {}).get("title", "") if task is not None else ""
    return gate_view(gate, task, title, read_document(store, call.topic, gate.note_sha256))


async def approve_gate(call: Call, body: Approval) -> Decided:
    """Approve what was done: what depends on it goes on."""
    return await _decide(call, body.note, call.path["gate_id"], "approved")


async def reject_gate(call: Call, body: Rejection) -> Decided:
    """Send back what was done: another attempt gets the note, while there are attempts."""
    return await _decide(call, body.note, call.path["gate_id"], "rejected")


async def approve_plan_task(call: Call, body: Approval) -> Decided:
    """Approve a task of a run, named by its id in the plan."""
    return await _decide(call, body.note, _gate_of(call), "approved")


async def reject_plan_task(call: Call, body: Rejection) -> Decided:
    """Send back a task of a run, named by its id in the plan."""
    return await _decide(call, body.note, _gate_of(call), "rejected")


def _gate_of(call: Call) -> str:
    """The gate of a task of a run: the open one, or the last that was decided."""
    workflow, key = read_workflow(call), call.path["plan_task_id"]
    store, task_id = call.services.store, plan_task_id(workflow.workflow_id, key)
    row = store.row(call.topic, "task", task_id)
    if row is None:
        raise not_found("gate")
    open_one: str = entity(row).gate_id
    if open_one:
        return open_one
    for record in store.events(call.topic, task_id, 0, 500, newest_first=True):
        if b'"type":"gate.opened"' in record.wire:
            last: str = decode(record.wire)["payload"]["gate_id"]
            return last
    raise Refused(409, "no_gate", "No gate is open on this task; it opens when the task is completed.")


async def _decide(call: Call, note: str, gate_id: str, status: Literal["approved", "rejected"]) -> Decided:
    contents: tuple[Content, ...] = ()
    ref: Ref | None = None
    if note:
        ref, content = keep(call, {"note": note})
        contents = (content,)
    command = ApproveGate(gate_id, ref) if status == "approved" else RejectGate(gate_id, ref)
    outcome = await call.submit(command, contents)
    wire = outcome.records[0].wire
    stream = wire["stream"]["stream_id"]
    return Decided(
        gate_id=wire["payload"]["gate_id"],
        status=status,
        task_id=wire["payload"]["task_id"],
        workflow_id=stream.removeprefix("workflow:") if stream.startswith("workflow:") else "",
        retry=None if status == "approved" else outcome.first("task.created") is not None,
        event_id=event_id(wire["wire_id"]),
    )


def _act(path: str, handler: Any, body: Any, summary: str) -> Route:
    return Route(
        "POST",
        path,
        handler,
        _DECIDE,
        body=body,
        reply=Decided,
        summary=summary,
        replies={403: "The caller did the work, or is no approver.", 409: "The gate is closed."},
        idempotent=True,
        example={"note": "Two of the questions are too general."},
    )


ROUTES = [
    Route(
        "GET",
        "/gates",
        list_gates,
        READ,
        query=GateQuery,
        reply=Listed[GateView],
        summary="Approvals that are awaited.",
    ),
    Route("GET", "/gates/{gate_id}", get_gate, READ, reply=GateView, summary="One gate."),
    _act("/gates/{gate_id}/approve", approve_gate, Approval, "Approve what was done."),
    _act("/gates/{gate_id}/reject", reject_gate, Rejection, "Send back what was done."),
    _act(
        "/workflows/{workflow_id}/gates/{plan_task_id}/approve", approve_plan_task, Approval, "Approve a task of a run."
    ),
    _act(
        "/workflows/{workflow_id}/gates/{plan_task_id}/reject",
        reject_plan_task,
        Rejection,
        "Send back a task of a run.",
    ),
]
