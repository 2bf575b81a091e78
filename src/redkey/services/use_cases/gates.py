"""Gates: approvals that completed tasks wait for."""

from __future__ import annotations

from typing import Literal

from redkey.commands.decision import Refused, not_found
from redkey.commands.due import plan_task_id
from redkey.commands.workflows import ApproveGate, RejectGate
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import entity
from redkey.readmodel.view import read_document
from redkey.readmodel.workflows import gate_view
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.pages import page_by_place, read_entity
from redkey.services.use_cases.texts import keep
from redkey.services.use_cases.workflows import read_workflow
from redkey.shapes import gates
from redkey.shapes.fields import Page
from redkey.shapes.gates import Approval, Gate, GateDecided, GateQuery, Rejection
from redkey.wire.envelope import wire_of
from redkey.wire.events import GateApproved, GateOpened, GateRejected
from redkey.wire.ids import event_id

Verdict = Literal["approved", "rejected"]


@use_case(gates.LIST_GATES)
def list_gates(caller: Caller, asked: GateQuery) -> Page[Gate]:
    """List gates, the oldest first."""
    return page_by_place(caller, "gate", asked.state, asked, lambda gate: _show(caller, gate))


@use_case(gates.GET_GATE)
def get_gate(caller: Caller, gate_id: str) -> Gate:
    """Show one gate."""
    return _show(caller, read_entity(caller, entities.Gate, gate_id))


def _show(caller: Caller, gate: entities.Gate) -> Gate:
    store, topic = caller.means.store, caller.topic
    row = store.row(topic, "task", gate.task_id)
    task: entities.Task | None = entity(row) if row is not None else None
    title = (task_document(store, topic, task) or {}).get("title", "") if task is not None else ""
    return gate_view(gate, task, title, read_document(store, topic, gate.note_sha256))


@use_case(gates.APPROVE_GATE)
def approve_gate(caller: Caller, gate_id: str, said: Approval) -> Pending[GateDecided]:
    """Approve the work: tasks that depend on it continue."""
    return _give_verdict(caller, gate_id, said.note, "approved")


@use_case(gates.REJECT_GATE)
def reject_gate(caller: Caller, gate_id: str, said: Rejection) -> Pending[GateDecided]:
    """Reject the work: another attempt gets the note, while there are attempts left."""
    return _give_verdict(caller, gate_id, said.note, "rejected")


@use_case(gates.APPROVE_PLAN_TASK)
def approve_plan_task(caller: Caller, workflow_id: str, plan_task: str, said: Approval) -> Pending[GateDecided]:
    """Approve a task of a run, named by its id in the plan."""
    return _give_verdict(caller, _gate_of(caller, workflow_id, plan_task), said.note, "approved")


@use_case(gates.REJECT_PLAN_TASK)
def reject_plan_task(caller: Caller, workflow_id: str, plan_task: str, said: Rejection) -> Pending[GateDecided]:
    """Reject a task of a run, named by its id in the plan."""
    return _give_verdict(caller, _gate_of(caller, workflow_id, plan_task), said.note, "rejected")


def _gate_of(caller: Caller, workflow_id: str, plan_task: str) -> str:
    """Return the gate of a task of a run: the open one, or the last that was decided."""
    store, topic = caller.means.store, caller.topic
    task_id = plan_task_id(read_workflow(caller, workflow_id).workflow_id, plan_task)
    row = store.row(topic, "task", task_id)
    if row is None:
        raise not_found("gate")
    open_gate: str = entity(row).gate_id
    if open_gate:
        return open_gate
    for record in store.events(topic, task_id, 0, 500, newest_first=True):
        payload = wire_of(record.wire).payload
        if type(payload) is GateOpened:
            return payload.gate_id
    raise Refused(409, "no_gate", "No gate is open on this task; it opens when the task is completed.")


def _give_verdict(caller: Caller, gate_id: str, note: str, verdict: Verdict) -> Pending[GateDecided]:
    act = ApproveGate if verdict == "approved" else RejectGate

    def reply(outcome: Outcome, place: Place) -> GateDecided:
        return _decided(outcome, verdict)

    if not note:
        return Pending(act(gate_id), reply)
    ref, content = keep(caller, {"note": note})
    return Pending(act(gate_id, ref), reply, (content,))


def _decided(outcome: Outcome, verdict: Verdict) -> GateDecided:
    event = outcome.records[0].event
    if not isinstance(event.payload, GateApproved | GateRejected):
        raise AssertionError("a decision without its record")
    stream = event.stream.stream_id
    return GateDecided(
        gate_id=event.payload.gate_id,
        status=verdict,
        task_id=event.payload.task_id or "",
        workflow_id=stream.removeprefix("workflow:") if stream.startswith("workflow:") else "",
        retry=None if verdict == "approved" else outcome.first("task.created") is not None,
        event_id=event_id(event.wire_id),
    )
