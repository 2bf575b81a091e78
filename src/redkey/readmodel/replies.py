"""Replies: what a caller is told of a recorded outcome. Pure functions of the records and of what never changes, so
that a request that is repeated with its key gets the same bytes without their being stored.
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
# What an agent can do about a rejection; the rest looks for other work.
_AFTER_REJECTION = {
    "inactive_agent": "ask_for_activation",
    "missing_role": "ask_for_role",
    "policy": "finish_a_claim",
    "invalid_lease": "ask_for_another_lease",
}


def subject(wire: AnyWire) -> str:
    """What a wire's stream is about: a task, an agent."""
    return parse_stream(wire.stream.stream_id).subject


def claimed(wire: AnyWire, won: TaskClaimed, task: Assignment | None = None) -> Claimed:
    """The reply of a `task.claimed`."""
    return Claimed(
        task_id=subject(wire),
        claim_id=won.claim_id,
        agent_id=won.agent_id,
        lease_expires_at=won.lease_expires_at or "",
        event_id=event_id(wire.wire_id),
        task=task,
    )


def all_claimed(claims: list[Claimed]) -> Claimed:
    """Several claims at once: the first is told twice, so that who asked for one reads the same."""
    return msgspec.structs.replace(claims[0], claims=tuple(claims))


def missed(wire: AnyWire, lost: TaskClaimMissed, queue_id: str) -> Missed:
    """The reply of a `task.claim_missed`."""
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
    """The reply of a `task.claim_rejected`."""
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
    """The reply of a claim for the next task that is rejected without a record."""
    reason, detail = answer["reason"], answer.get("detail", "")
    step = _after_rejection(reason, detail, queue_id, agent_id)
    return Rejected(agent_id=agent_id, reason=reason, detail=detail, next=step)


def _after_rejection(reason: str, detail: str, queue_id: str, agent_id: str) -> NextStep:
    """The next step of an agent that may not claim."""
    return NextStep(
        action="ask_for_a_higher_cap" if detail.startswith("cost_") else _AFTER_REJECTION.get(reason, _POLL),
        queue_id=queue_id,
        role_id=detail if reason == "missing_role" else "",
        agent_id=agent_id if reason == "inactive_agent" else "",
    )


def no_tasks(agent_id: str, queue_id: str) -> NoTasks:
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
    """The reply of what a holder did."""
    return ClaimChanged(
        status=_STATUS[type(act)],
        task_id=subject(wire),
        claim_id=act.claim_id,
        event_id=event_id(wire.wire_id),
    )


def ended(
    wire: AnyWire, end: TaskComplete | TaskFailed, gate_id: str, following: ClaimNextOutcome | None
) -> ClaimEnded:
    """The reply of a completion or a failure."""
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
    """The reply of a heartbeat that was recorded."""
    return Heartbeat(state="held", lease_expires_at=longer.lease_expires_at, event_id=event_id(wire.wire_id))


def stalled(wire: AnyWire) -> Heartbeat:
    """The reply of a heartbeat that found its holder idle for too long."""
    return Heartbeat(state="stalled", event_id=event_id(wire.wire_id))


def heard(answer: dict[str, Any]) -> Heartbeat:
    """The reply of a heartbeat that changed nothing."""
    until = answer.get("lease_expires_at")
    return Heartbeat(state=answer["state"], lease_expires_at=iso_time(until) if until else None)
