"""What records mean for gates: a completed attempt waits for its approval.

Who did the work may decide only where the gate says so: `gate.opened` records the policy of the workspace.

A gate that is closed leaves the world; its row tells how it was decided.
"""

from __future__ import annotations

from redkey.plans.structure import GatePolicy
from redkey.reducers import workflow
from redkey.reducers.entities import Gate, Task
from redkey.reducers.event import Event
from redkey.reducers.task import is_hopeless
from redkey.reducers.world import SECOND, World
from redkey.wire.events import GateApproved, GateOpened, GateRejected, InboxSent

Void = str | None


def opened(world: World, e: Event, p: GateOpened) -> Void:
    gate_id, task = p.gate_id, world.tasks.get(p.task_id)
    if task is None or task.gate is None or ("gate", task.task_id) not in world.agenda:
        return "not_gated"
    if task.attempt != p.attempt:
        return "attempt_ended"
    gate = world.gates[gate_id] = Gate(
        gate_id=gate_id,
        task_id=task.task_id,
        attempt=task.attempt,
        queue_id=task.queue_id,
        workflow_id=task.workflow_id,
        worker=task.ended_by,
        agent_id=task.winner_agent_id,
        approvers=task.gate.approvers,
        self_approval=bool(p.self_approval),
        opened_at=e.timestamp,
        sequence=e.sequence,
    )
    if task.gate.deadline_seconds:
        gate.deadline_at = e.timestamp + task.gate.deadline_seconds * SECOND
        gate.on_deadline = task.gate.on_deadline
        world.at(gate.deadline_at, "gate", gate_id)
    task.gate_id = gate_id
    _advance(world, e)
    del world.agenda["gate", task.task_id]
    for recipient in recipients(world, gate):
        world.follows(f"gate-mail:{recipient}", task.task_id, e.wire_id)
    e.changes.touch("gate", gate_id, gate)
    e.changes.touch("task", task.task_id)
    return None


def recipients(world: World, gate: Gate) -> list[str]:
    """Who hears of a gate: the active agents that may decide it, and the humans always."""
    named = [name for name in gate.approvers if name.startswith("agt_")]
    named += [agent for name in gate.approvers if name in world.roles for agent in world.roles[name].agents]
    told = dict.fromkeys(name for name in named if name in world.agents and world.agents[name].active)
    return [*(f"agent:{name}" for name in told if name != gate.agent_id), "human"]


def approved(world: World, e: Event, p: GateApproved) -> Void:
    task = _close(world, e, p, "approved")
    if isinstance(task, str):
        return task
    task.gate_passed = True
    world.release_dependents(task, e.wire_id, e.changes)
    if task.workflow_id:
        workflow.approved(world, task, e)
    return None


def rejected(world: World, e: Event, p: GateRejected) -> Void:
    task = _close(world, e, p, "rejected")
    if isinstance(task, str):
        return task
    if task.attempt < task.max_attempts:
        world.follows("retry", task.task_id, e.wire_id)
    elif is_hopeless(task):
        world.fail_dependents(task, e.wire_id)
    if task.workflow_id:
        workflow.rejected(world, task, e)
    return None


def told(world: World, e: Event, p: InboxSent) -> None:
    """A message about a gate was sent. From an agent or a human it asks for one: the task that it names will wait for
    approval. From RedKey itself it tells of one, and once more when its time is over and it is held open."""
    task = world.tasks.get(p.ref_task_id or "")
    if task is None:
        return
    gate = world.gates.get(task.gate_id)
    if e.sender != "system":
        if not task.ended_at:
            task.gate = task.gate or GatePolicy()
            e.changes.touch("task", task.task_id)
    elif gate is not None and 0 < gate.deadline_at <= e.timestamp:
        gate.reminded = True
        e.changes.touch("gate", gate.gate_id, gate)


def _close(world: World, e: Event, p: GateApproved | GateRejected, state: str) -> Task | str:
    gate = world.gates.get(p.gate_id)
    if gate is None:
        return "unknown_gate"
    _advance(world, e)
    if p.by == gate.worker and not gate.self_approval:
        return "own_gate"
    task = world.tasks[gate.task_id]
    if p.note_ref is not None:
        gate.note_sha256 = task.note_sha256 = p.note_ref.sha256
    world.close_gate(gate, state, p.by, e.timestamp, e.changes)
    return task


def _advance(world: World, e: Event) -> None:
    seq = e.stream.stream_seq
    if e.stream.stream_id.startswith("workflow:"):
        run = world.runs.get(e.subject)
        if run is not None:
            run.workflow.stream_seq = max(run.workflow.stream_seq, seq)
            e.changes.touch("workflow", e.subject, run.workflow)
    elif e.subject in world.queues:
        world.queues[e.subject].stream_seq = max(world.queues[e.subject].stream_seq, seq)
        e.changes.touch("queue", e.subject)
