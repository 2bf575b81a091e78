"""The wires that are due: those that follow from the records so far, and from time. Any server may compute them.

Ids are derived from causes, so a second copy of the same wire is void. Outcomes of claims come after all other
consequences, in the order of the attempts.
"""

from __future__ import annotations

from redkey.commands.claims import stream
from redkey.commands.draft import Draft, derived_id
from redkey.reducers.claim import ATTEMPT
from redkey.reducers.entities import PRIORITIES, Pending, Task
from redkey.reducers.task import retries
from redkey.reducers.world import SECOND, World, in_order
from redkey.wire.events import (
    AgentLost,
    AnyPayload,
    ArtifactSuperseded,
    GateOpened,
    GateRejected,
    InboxSent,
    Ref,
    TaskAvailable,
    TaskCancelled,
    TaskClaimAttempted,
    TaskClaimed,
    TaskClaimMissed,
    TaskClaimRejected,
    TaskCreated,
    TaskFailed,
    TaskLeaseExpired,
    TaskUnblocked,
    WorkflowCompleted,
    WorkflowFailed,
)
from redkey.wire.ids import task_stream
from redkey.wire.rules import ENTRIES_LIMIT
from redkey.wire.times import write_time


def due(world: World, now: int) -> list[Draft]:
    """The next wires that follow from records or time; fold them and call again until there are none."""
    return follow_ups(world) or _timed(world, now)


def follow_ups(world: World) -> list[Draft]:
    """The next wires that follow from records alone; fold them and call again until there are none."""
    if world.agenda:
        return [_consequence(world, kind, subject, cause) for (kind, subject), cause in world.agenda.items()]
    if not world.pending:
        return []
    return [outcome(world, pending) for pending in world.pending.values() if not _waits(world, pending)]


def next_time(world: World) -> int:
    """When a timer is due next; 0 when there is none."""
    return world.timers[0][0] if world.timers else 0


def _waits(world: World, pending: Pending) -> bool:
    """True while an earlier attempt has the task reserved: the losers get their outcome after it has won."""
    task = world.tasks.get(pending.task_id)
    return task is not None and not pending.reason and task.reserved not in ("", pending.claim_id)


def outcome(world: World, pending: Pending) -> Draft:
    """The wire that settles a claim attempt."""
    task = world.tasks.get(pending.task_id)
    if pending.reason or task is None:
        return _reject(pending, task, pending.reason or "task_not_available", pending.detail)
    if task.reserved == pending.claim_id and task.state == "available" and task.attempt == pending.attempt:
        return _claimed(pending, task)
    if task.winner_claim_id and task.state in ("claimed", "working", "completed"):
        reason = "task_completed" if task.state == "completed" else "claim_already_won"
        payload = TaskClaimMissed(
            task_id=pending.task_id,
            claim_id=pending.claim_id,
            attempt=task.attempt,
            reason=reason,
            winning_claim_id=task.winner_claim_id,
            winning_agent_id=task.winner_agent_id,
        )
        return _settle(pending, task, payload)
    return _reject(pending, task, "task_not_available", task.state)


def _reject(pending: Pending, task: Task | None, reason: str, detail: str) -> Draft:
    payload = TaskClaimRejected(
        task_id=pending.task_id, claim_id=pending.claim_id, reason=reason, detail=detail or None
    )
    return _settle(pending, task, payload)


def _settle(pending: Pending, task: Task | None, payload: TaskClaimMissed | TaskClaimRejected) -> Draft:
    context = task.context_id if task is not None else "task:unknown"
    wire_id = derived_id(pending.wire_id, payload.TYPE, pending.claim_id)
    return Draft(payload, f"agent:{pending.agent_id}", context, causation_id=pending.wire_id, wire_id=wire_id)


def _claimed(pending: Pending, task: Task) -> Draft:
    payload = TaskClaimed(
        claim_id=pending.claim_id,
        agent_id=pending.agent_id,
        lease_expires_at=write_time(pending.timestamp + pending.lease_seconds * SECOND),
        role_id=task.roles[0] if task.roles else None,
    )
    wire_id = derived_id(pending.wire_id, payload.TYPE, pending.claim_id)
    return Draft(payload, stream(task), task.context_id, causation_id=pending.wire_id, wire_id=wire_id)


def _consequence(world: World, kind: str, subject: str, cause: str) -> Draft:
    if kind in ("open", "end"):
        return _open(world, subject, cause) if kind == "open" else _end(world, subject, cause)
    task = world.tasks[subject]
    if kind == "available":
        return _follow(task, TaskAvailable(), cause)
    if kind == "unblocked":
        return _follow(task, TaskUnblocked(), cause)
    if kind == "expire":
        return _expiry(task, cause)
    if kind == "retry":
        return _retry(task, cause)
    if kind == "cancel":
        return _follow(task, TaskCancelled(cause="workflow_cancelled"), cause)
    if kind.startswith("superseded:"):
        return _next_version(task, kind, cause)
    if kind == "gate":
        return _open_gate(world, task, cause)
    if kind.startswith(ATTEMPT):
        return _attempt(task, kind, cause)
    if kind.startswith(("mail:", "gate-mail:")):
        return _mail(world, task, kind.partition(":")[2], cause, gate=kind.startswith("gate"))
    # dependency_failed and lease_losses: failures that no holder reports; the failure kind is the agenda kind.
    return _follow(task, TaskFailed(kind=kind, retry=retries(task, kind)), cause)


def _attempt(task: Task, kind: str, cause: str) -> Draft:
    """The claim attempt that follows from an agent's request for the next task of a queue."""
    _, agent_id, lease_seconds = kind.split(":")
    wire_id = derived_id(cause, "task.claim_attempted", task.task_id)
    payload = TaskClaimAttempted(
        task_id=task.task_id, attempt=task.attempt, claim_id="clm_" + wire_id[5:], lease_seconds=int(lease_seconds)
    )
    return Draft(payload, f"agent:{agent_id}", task.context_id, causation_id=cause, wire_id=wire_id)


def _follow(task: Task, payload: AnyPayload, cause: str) -> Draft:
    where = stream(task)
    wire_id = derived_id(cause, payload.TYPE, where)
    return Draft(payload, where, task.context_id, causation_id=cause, wire_id=wire_id)


def _next_version(task: Task, kind: str, cause: str) -> Draft:
    """Record that an artifact's version was replaced by the next one; each version has one number on its stream."""
    _, artifact_id, version, by_version = kind.split(":")
    payload = ArtifactSuperseded(
        version=int(version), by_version=int(by_version), task_id=task.task_id, attempt=task.attempt
    )
    where = f"artifact:{artifact_id}"
    wire_id = derived_id(cause, payload.TYPE, where)
    return Draft(payload, where, task.context_id, causation_id=cause, wire_id=wire_id, stream_seq=int(version))


def _expiry(task: Task, cause: str = "") -> Draft:
    """Record the end of a lease; the id is the same whether time or another agent's claim causes it."""
    where = stream(task)
    wire_id = derived_id(task.claim_id, f"task.lease_expired:{task.lease_expires_at}", where)
    payload = TaskLeaseExpired(claim_id=task.claim_id)
    return Draft(payload, where, task.context_id, causation_id=cause, wire_id=wire_id)


def _retry(task: Task, cause: str) -> Draft:
    where = task_stream(task.task_id, task.attempt + 1)
    return another_attempt(task, causation_id=cause, wire_id=derived_id(cause, "task.created", where))


def another_attempt(task: Task, *, sender: str = "system", causation_id: str = "", wire_id: str = "") -> Draft:
    """The wire that creates a task's next attempt."""
    inline = not task.workflow_id and not task.structure_sha256
    payload = TaskCreated(
        queue_id=task.queue_id,
        priority=PRIORITIES[task.priority],
        content_ref=Ref(bytes=task.content_bytes, sha256=task.content_sha256),
        retry_of=task.attempt,
        workflow_id=task.workflow_id or None,
        plan_task=task.plan_task if task.workflow_id else None,
        structure_ref=(
            Ref(bytes=task.structure_bytes, sha256=task.structure_sha256)
            if task.structure_sha256 and not task.workflow_id
            else None
        ),
        roles=(task.roles or None) if inline else None,
        capabilities=(task.capabilities or None) if inline else None,
        waits_for=(task.waits_for or None) if inline else None,
        outputs=(task.outputs or None) if inline else None,
        lease_seconds=(task.lease_seconds or None) if inline else None,
        deadline_seconds=(task.deadline_at - task.created_at) // SECOND if inline and task.deadline_at else None,
        max_attempts=task.max_attempts if inline and task.max_attempts > 1 else None,
    )
    return Draft(
        payload,
        task_stream(task.task_id, task.attempt + 1),
        task.context_id,
        sender,
        causation_id=causation_id,
        wire_id=wire_id,
        reference_task_ids=task.reference_task_ids if _fit_on_wire(task) else (),
        parent_task_id=task.parent_task_id,
        correlation_id=task.correlation_id,
        extensions=task.extensions,
        inherits=True,
    )


def _fit_on_wire(task: Task) -> bool:
    """Whether the references of a task fit on a wire; if not, its structure lists them."""
    return len(task.reference_task_ids) + (task.parent_task_id != "") <= ENTRIES_LIMIT


def _open(world: World, subject: str, cause: str) -> Draft:
    """Open a task of a plan; its id is derived from the run, so that no two servers open it twice."""
    workflow_id, _, index = subject.rpartition("/")
    run = world.runs[workflow_id]
    planned, workflow = run.plan.tasks[int(index)], run.workflow
    where = task_stream(plan_task_id(workflow_id, planned.id), 1)
    payload = TaskCreated(
        queue_id=workflow.queue_id,
        priority=planned.priority,
        content_ref=Ref(bytes=workflow.content_bytes, sha256=workflow.content_sha256),
        workflow_id=workflow_id,
        plan_task=planned.id,
    )
    wire_id = derived_id(cause, payload.TYPE, where)
    return Draft(
        payload,
        where,
        f"workflow:{workflow_id}",
        causation_id=cause,
        wire_id=wire_id,
        correlation_id=workflow.correlation_id,
        inherits=True,
    )


def plan_task_id(workflow_id: str, key: str) -> str:
    """The id of a plan's task in a run."""
    return "task_" + derived_id(workflow_id, "task", key)[5:]


def _end(world: World, workflow_id: str, cause: str) -> Draft:
    completed = world.runs[workflow_id].verdict == "completed"
    payload = WorkflowCompleted() if completed else WorkflowFailed()
    where = f"workflow:{workflow_id}"
    return Draft(payload, where, where, causation_id=cause, wire_id=derived_id(cause, payload.TYPE, where))


def _open_gate(world: World, task: Task, cause: str) -> Draft:
    where = f"workflow:{task.workflow_id}" if task.workflow_id else f"queue:{task.queue_id}"
    wire_id = derived_id(cause, "gate.opened", stream(task))
    payload = GateOpened(
        gate_id="gate_" + wire_id[5:],
        task_id=task.task_id,
        attempt=task.attempt,
        self_approval=True if world.workspace.self_approval else None,
    )
    return Draft(payload, where, task.context_id, causation_id=cause, wire_id=wire_id)


def _mail(world: World, task: Task, to: str, cause: str, *, gate: bool = False) -> Draft:
    wire_id = derived_id(cause, "inbox.sent", to)
    has_reason = not gate and task.reason_sha256 != ""
    payload = InboxSent(
        message_id="msg_" + wire_id[5:],
        to=to,
        priority=1,
        message_type="exec.gate" if gate else "task.blocked",
        ref_task_id=task.task_id,
        body_ref=Ref(
            bytes=task.reason_bytes if has_reason else task.content_bytes,
            sha256=task.reason_sha256 if has_reason else task.content_sha256,
        ),
        action_required=True,
    )
    where = to if to.startswith("agent:") else f"workspace:{world.workspace.workspace_id}"
    # A reminder at a gate's deadline is caused by time and has no causing wire.
    caused_by = cause if cause.startswith("wire_") else ""
    return Draft(payload, where, task.context_id, causation_id=caused_by, wire_id=wire_id)


def _timed(world: World, now: int) -> list[Draft]:
    """The wires of timers that are due. Folding a timer's wire makes the timer stale."""
    if not world.timers or world.timers[0][0] > now:
        return []
    drafts: list[Draft] = []
    keys: set[str] = set()
    for timer in in_order([world.timers]):
        when, kind, key = timer
        # At most one wire for each key: what is due next for it depends on this one.
        if when > now or key in keys:
            break
        if world.is_due(timer, now):
            drafts.append(_TIMED[kind](world, key))
            keys.add(key)
    return drafts


def _lease_over(world: World, task_id: str) -> Draft:
    return _expiry(world.tasks[task_id])


def _deadline_over(world: World, task_id: str) -> Draft:
    task = world.tasks[task_id]
    wire_id = derived_id(task.task_id, "task.failed:deadline", stream(task))
    return Draft(TaskFailed(kind="deadline", retry=False), stream(task), task.context_id, wire_id=wire_id)


def _pause_over(world: World, task_id: str) -> Draft:
    task = world.tasks[task_id]
    wire_id = derived_id(task.task_id, "task.available:opens", stream(task))
    return Draft(TaskAvailable(), stream(task), task.context_id, wire_id=wire_id)


def _gate_over(world: World, gate_id: str) -> Draft:
    """The gate's deadline passed: reject it, or keep it open and remind the humans."""
    gate = world.gates[gate_id]
    task = world.tasks[gate.task_id]
    if gate.on_deadline == "hold":
        return _mail(world, task, "human", gate_id, gate=True)
    where = f"workflow:{gate.workflow_id}" if gate.workflow_id else f"queue:{gate.queue_id}"
    payload = GateRejected(gate_id=gate_id, task_id=gate.task_id, by="system")
    return Draft(payload, where, task.context_id, wire_id=derived_id(gate_id, payload.TYPE, where))


def _silent(world: World, agent_id: str) -> Draft:
    wire_id = derived_id(agent_id, f"agent.lost:{world.agents[agent_id].last_act_at}", agent_id)
    context = f"workspace:{world.workspace.workspace_id}"
    return Draft(AgentLost(), f"agent:{agent_id}", context, wire_id=wire_id)


_TIMED = {
    "lease": _lease_over,
    "deadline": _deadline_over,
    "gate": _gate_over,
    "lost": _silent,
    "opens": _pause_over,
}
