"""Replies to recorded requests. They are pure functions of the records and of what never changes, so a repeated request
with the same key gets the same bytes, and no reply has to be stored.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from redkey.ledger.record import iso_time
from redkey.shapes.claims import (
    Assignment,
    ClaimChanged,
    Claimed,
    ClaimEnded,
    ClaimNextOutcome,
    Heartbeat,
    Missed,
    NoTasks,
    Rejected,
)
from redkey.shapes.problem import NextStep
from redkey.wire.envelope import AnyWire
from redkey.wire.events import (
    TaskBlocked,
    TaskClaimed,
    TaskClaimMissed,
    TaskClaimRejected,
    TaskComplete,
    TaskFailed,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskReleased,
    TaskStarted,
)
from redkey.wire.ids import event_id, parse_stream

_POLL = "poll_available_tasks"
# The next step after a rejection, by reason; after any other, the agent looks for other work.
_AFTER_REJECTION = {
    "inactive_agent": "ask_for_activation",
    "missing_role": "ask_for_role",
    "policy": "finish_a_claim",
    "invalid_lease": "ask_for_another_lease",
    "dependency_unsatisfied": "complete_dependency",
}


def subject(wire: AnyWire) -> str:
    """Return the subject of a wire's stream: a task or an agent."""
    return parse_stream(wire.stream.stream_id).subject


def claimed(wire: AnyWire, won: TaskClaimed, task: Assignment | None = None) -> Claimed:
    """Return the reply for a `task.claimed`."""
    return Claimed(
        task_id=subject(wire),
        claim_id=won.claim_id,
        agent_id=won.agent_id,
        lease_expires_at=won.lease_expires_at or "",
        event_id=event_id(wire.wire_id),
        task=task,
    )


def all_claimed(claims: list[Claimed]) -> Claimed:
    """Return the reply for several claims; the first is also in the fields of a single claim."""
    return msgspec.structs.replace(claims[0], claims=tuple(claims))


def missed(wire: AnyWire, lost: TaskClaimMissed, queue_id: str) -> Missed:
    """Return the reply for a `task.claim_missed`."""
    return Missed(
        task_id=lost.task_id,
        agent_id=subject(wire),
        reason=lost.reason,
        winning_claim_id=lost.winning_claim_id,
        winning_agent_id=lost.winning_agent_id,
        event_id=event_id(wire.wire_id),
        next=NextStep(action=_POLL, queue_id=queue_id),
    )


def rejected(wire: AnyWire, refused: TaskClaimRejected, queue_id: str) -> Rejected:
    """Return the reply for a `task.claim_rejected`."""
    agent_id, detail = subject(wire), refused.detail or ""
    return Rejected(
        task_id=refused.task_id,
        agent_id=agent_id,
        reason=refused.reason,
        detail=detail,
        event_id=event_id(wire.wire_id),
        next=_after_rejection(refused.reason, detail, queue_id, agent_id),
    )


def may_not_claim(answer: dict[str, Any], agent_id: str, queue_id: str) -> Rejected:
    """Return the reply for a claim of the next task that is rejected without a record."""
    reason, detail = answer["reason"], answer.get("detail", "")
    step = _after_rejection(reason, detail, queue_id, agent_id)
    return Rejected(agent_id=agent_id, reason=reason, detail=detail, next=step)


def _after_rejection(reason: str, detail: str, queue_id: str, agent_id: str) -> NextStep:
    """Return the next step for an agent that may not claim."""
    return NextStep(
        action="ask_for_a_higher_cap" if detail.startswith("cost_") else _AFTER_REJECTION.get(reason, _POLL),
        queue_id=queue_id,
        role_id=detail if reason == "missing_role" else "",
        agent_id=agent_id if reason == "inactive_agent" else "",
        task_id=detail if reason == "dependency_unsatisfied" else "",
        detail=f"A lease has {detail.replace('-', ' to ')} seconds." if reason == "invalid_lease" and detail else "",
    )


def no_tasks(agent_id: str, queue_id: str) -> NoTasks:
    """Return the reply when no task of the queue can be claimed."""
    return NoTasks(agent_id=agent_id, queue_id=queue_id, next=NextStep(action="wait", queue_id=queue_id))


Held = TaskStarted | TaskReleased | TaskBlocked | TaskPlanCreated
_STATUS: Final = {
    TaskStarted: "started",
    TaskReleased: "released",
    TaskBlocked: "blocked",
    TaskPlanCreated: "planned",
    TaskComplete: "completed",
    TaskFailed: "failed",
}


def changed(wire: AnyWire, act: Held) -> ClaimChanged:
    """Return the reply for an act of a holder."""
    return ClaimChanged(
        status=_STATUS[type(act)],
        task_id=subject(wire),
        claim_id=act.claim_id,
        event_id=event_id(wire.wire_id),
    )


def ended(
    wire: AnyWire, end: TaskComplete | TaskFailed, gate_id: str, following: ClaimNextOutcome | None
) -> ClaimEnded:
    """Return the reply for a completion or a failure."""
    return ClaimEnded(
        status=_STATUS[type(end)],
        task_id=subject(wire),
        claim_id=end.claim_id or "",
        event_id=event_id(wire.wire_id),
        retry=end.retry if isinstance(end, TaskFailed) else None,
        gate_id=gate_id,
        next=following,
    )


def extended(wire: AnyWire, longer: TaskLeaseExtended) -> Heartbeat:
    """Return the reply for a heartbeat that was recorded."""
    return Heartbeat(state="held", lease_expires_at=longer.lease_expires_at, event_id=event_id(wire.wire_id))


def stalled(wire: AnyWire) -> Heartbeat:
    """Return the reply for a heartbeat of a holder that has been idle for too long."""
    return Heartbeat(state="stalled", event_id=event_id(wire.wire_id))


def heard(answer: dict[str, Any]) -> Heartbeat:
    """Return the reply for a heartbeat that changed nothing."""
    until = answer.get("lease_expires_at")
    return Heartbeat(state=answer["state"], lease_expires_at=iso_time(until) if until else None)
