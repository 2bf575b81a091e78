"""What records mean for gates: a completed attempt waits for somebody other than its worker to approve it."""

from __future__ import annotations

from redkey.reducers import workflow
from redkey.reducers.entities import Gate, Task
from redkey.reducers.event import Event
from redkey.reducers.world import SECOND, World

Void = str | None


def opened(world: World, e: Event) -> Void:
    gate_id, task = e.payload["gate_id"], world.tasks.get(e.payload["task_id"])
    if gate_id in world.gates:
        return "gate_exists"
    if task is None or task.attempt != e.payload["attempt"] or task.gate is None:
        return "not_gated"
    gate = world.gates[gate_id] = Gate(
        gate_id=gate_id,
        task_id=task.task_id,
        attempt=task.attempt,
        queue_id=task.queue_id,
        workflow_id=task.workflow_id,
        worker=task.ended_by,
        agent_id=task.winner_agent_id,
        approvers=task.gate.approvers,
        opened_at=e.timestamp,
        sequence=e.sequence,
    )
    if task.gate.deadline_seconds:
        gate.deadline_at = e.timestamp + task.gate.deadline_seconds * SECOND
        gate.on_deadline = task.gate.on_deadline
        world.at(gate.deadline_at, "gate", gate_id)
    task.gate_id = gate_id
    _advance(world, e)
    world.agenda.pop(("gate", task.task_id), None)
    for recipient in mail_to(task):
        world.follows(f"gate-mail:{recipient}", task.task_id, e.wire_id)
    world.touch("gate", gate_id)
    world.touch("task", task.task_id)
    return None


def mail_to(task: Task) -> list[str]:
    """Who hears of an open gate: the agents among its approvers, and the humans always."""
    return ["human"]


def _advance(world: World, e: Event) -> None:
    seq = e.wire["stream"]["stream_seq"]
    if e.wire["stream"]["stream_id"].startswith("workflow:"):
        run = world.runs.get(e.subject)
        if run is not None:
            run.workflow.stream_seq = max(run.workflow.stream_seq, seq)
            world.touch("workflow", e.subject)
    elif e.subject in world.queues:
        world.queues[e.subject].stream_seq = max(world.queues[e.subject].stream_seq, seq)
        world.touch("queue", e.subject)


def _close(world: World, e: Event, state: str) -> Task | str:
    gate = world.gates.get(e.payload["gate_id"])
    if gate is None:
        return "unknown_gate"
    _advance(world, e)
    if gate.state != "open":
        return "gate_closed"
    if e.payload["by"] == gate.worker:
        return "own_gate"
    task = world.tasks.get(gate.task_id)
    if task is None or task.attempt != gate.attempt:
        return "attempt_ended"
    gate.state, gate.closed_at, gate.closed_by = state, e.timestamp, e.payload["by"]
    if "note_ref" in e.payload:
        gate.note_sha256 = e.payload["note_ref"]["sha256"]
        task.note_sha256 = gate.note_sha256
    task.gate_id = ""
    world.ends("gate", gate.gate_id, e.timestamp)
    world.ends("task", task.task_id, e.timestamp, task.attempt)
    world.touch("gate", gate.gate_id)
    world.touch("task", task.task_id)
    return task


def approved(world: World, e: Event) -> Void:
    task = _close(world, e, "approved")
    if isinstance(task, str):
        return task
    task.gate_passed = True
    world.release_dependents(task, e.wire_id)
    run = world.runs.get(task.workflow_id)
    if run is not None:
        workflow.done(world, run, run.places[task.plan_task], e.wire_id)
        workflow.go_on(world, task.workflow_id, e.wire_id)
    return None


def rejected(world: World, e: Event) -> Void:
    task = _close(world, e, "rejected")
    if isinstance(task, str):
        return task
    once_more = task.attempt < task.max_attempts
    run = world.runs.get(task.workflow_id)
    if run is not None:
        index = run.places[task.plan_task]
        if once_more:
            workflow.again(world, run, index)
        else:
            workflow.failed(world, run, index, e.wire_id)
        workflow.go_on(world, task.workflow_id, e.wire_id)
    elif once_more:
        world.follows("retry", task.task_id, e.wire_id)
    else:
        world.fail_dependents(task, e.wire_id)
    return None
