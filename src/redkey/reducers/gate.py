"""What records mean for gates: a completed attempt waits for its approval.

The worker may approve its own work only if the gate allows it: `gate.opened` records the policy of the workspace.
A closed gate leaves the world; its row keeps the decision.
"""

from __future__ import annotations

from redkey.plans.structure import GatePolicy
from redkey.reducers import steps
from redkey.reducers.entities import Gate, Task
from redkey.reducers.event import Event
from redkey.reducers.task import is_hopeless
from redkey.reducers.world import SECOND, World
from redkey.wire.events import GateApproved, GateOpened, GateRejected, InboxSent

Void = str | None


def opened(world: World, e: Event, p: GateOpened) -> Void:
    """Open the gate of a completed attempt and put the messages to its approvers on the agenda."""
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
    """Who is notified of a gate: the active agents that may decide it, and always the humans."""
    named = [name for name in gate.approvers if name.startswith("agt_")]
    named += [agent for name in gate.approvers if name in world.roles for agent in world.roles[name].agents]
    active = dict.fromkeys(name for name in named if name in world.agents and world.agents[name].active)
    return [*(f"agent:{name}" for name in active if name != gate.agent_id), "human"]


def approved(world: World, e: Event, p: GateApproved) -> Void:
    """Close the gate as approved: the task counts as done, and its dependents may start."""
    task = _close(world, e, p, "approved")
    if isinstance(task, str):
        return task
    task.gate_passed = True
    world.release_dependents(task, e.wire_id, e.changes)
    if task.workflow_id:
        steps.approved(world, task, e)
    return None


def rejected(world: World, e: Event, p: GateRejected) -> Void:
    """Close the gate as rejected: another attempt follows, or what depends on the task fails."""
    task = _close(world, e, p, "rejected")
    if isinstance(task, str):
        return task
    if task.attempt < task.max_attempts:
        world.follows("retry", task.task_id, e.wire_id)
    elif is_hopeless(task):
        world.fail_dependents(task, e.wire_id)
    if task.workflow_id:
        steps.rejected(world, task, e)
    return None


def mail_sent(world: World, e: Event, p: InboxSent) -> None:
    """An `exec.gate` message was sent. From an agent or a human it requests a gate: the task it names will wait for
    approval. From RedKey it announces a gate, or reminds of one that is held open after its deadline."""
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
