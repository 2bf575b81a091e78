"""Replies: what a caller is told of a recorded outcome. Pure functions of the records and of what never changes, so
that a request that is repeated with its key gets the same bytes without their being stored.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from redkey.ledger.record import iso_time
from redkey.readmodel.task_view import Assignment
from redkey.readmodel.view import View
from redkey.wire.ids import event_id, parse_stream

Wire = dict[str, Any]


class NextStep(View, frozen=True, kw_only=True):
    """What to do now: one action, and what it is about."""

    action: str
    queue_id: str = ""
    role_id: str = ""
    agent_id: str = ""
    task_id: str = ""
    detail: str = ""


class Claimed(View, frozen=True, kw_only=True, tag_field="status", tag="claimed"):
    """The task is this agent's until the lease expires. `task` comes when asked for, and always with claim-next."""

    task_id: str
    claim_id: str
    agent_id: str
    lease_expires_at: str
    event_id: str
    task: Assignment | None = None
    claims: tuple[Claimed, ...] | None = None


class Missed(View, frozen=True, kw_only=True, tag_field="status", tag="missed"):
    """Another claim won. Do not try the same task again at once; ask for the next one."""

    task_id: str
    agent_id: str
    reason: str
    winning_claim_id: str
    winning_agent_id: str
    event_id: str
    next: NextStep


class Rejected(View, frozen=True, kw_only=True, tag_field="status", tag="rejected"):
    """The agent may not claim this. A claim-next that is rejected names no task and writes no event."""

    task_id: str = ""
    agent_id: str
    reason: str
    detail: str = ""
    event_id: str = ""
    next: NextStep


class NoTasks(View, frozen=True, kw_only=True, tag_field="status", tag="no_tasks"):
    """Nothing in the queue that this agent may claim now."""

    agent_id: str
    queue_id: str
    next: NextStep


ClaimReply = Claimed | Missed | Rejected
ClaimNextReply = Claimed | Missed | Rejected | NoTasks

_POLL = "poll_available_tasks"
# What an agent can do about a rejection; the rest looks for other work.
_AFTER_REJECTION = {
    "inactive_agent": "ask_for_activation",
    "missing_role": "ask_for_role",
    "policy": "finish_a_claim",
    "invalid_lease": "ask_for_another_lease",
}


def claimed(wire: Wire, task: Assignment | None = None) -> Claimed:
    """The reply of a `task.claimed`."""
    payload = wire["payload"]
    return Claimed(
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        claim_id=payload["claim_id"],
        agent_id=payload["agent_id"],
        lease_expires_at=payload["lease_expires_at"],
        event_id=event_id(wire["wire_id"]),
        task=task,
    )


def all_claimed(claims: list[Claimed]) -> Claimed:
    """Several claims at once: the first is told twice, so that who asked for one reads the same."""
    return msgspec.structs.replace(claims[0], claims=tuple(claims))


def missed(wire: Wire, queue_id: str) -> Missed:
    """The reply of a `task.claim_missed`."""
    payload = wire["payload"]
    return Missed(
        task_id=payload["task_id"],
        agent_id=parse_stream(wire["stream"]["stream_id"]).subject,
        reason=payload["reason"],
        winning_claim_id=payload["winning_claim_id"],
        winning_agent_id=payload["winning_agent_id"],
        event_id=event_id(wire["wire_id"]),
        next=NextStep(action=_POLL, queue_id=queue_id),
    )


def rejected(wire: Wire, queue_id: str) -> Rejected:
    """The reply of a `task.claim_rejected`."""
    payload = wire["payload"]
    agent_id = parse_stream(wire["stream"]["stream_id"]).subject
    return Rejected(
        task_id=payload["task_id"],
        agent_id=agent_id,
        reason=payload["reason"],
        detail=payload.get("detail", ""),
        event_id=event_id(wire["wire_id"]),
        next=after_rejection(payload["reason"], payload.get("detail", ""), queue_id, agent_id),
    )


def after_rejection(reason: str, detail: str, queue_id: str, agent_id: str) -> NextStep:
    """The next step of an agent that may not claim."""
    action = _AFTER_REJECTION.get(reason, _POLL)
    return NextStep(
        action=action,
        queue_id=queue_id,
        role_id=detail if reason == "missing_role" else "",
        agent_id=agent_id if reason == "inactive_agent" else "",
    )


def no_tasks(agent_id: str, queue_id: str) -> NoTasks:
    return NoTasks(agent_id=agent_id, queue_id=queue_id, next=NextStep(action="wait", queue_id=queue_id))


class Created(View, frozen=True, kw_only=True):
    """A new task and where it stands."""

    task_id: str
    queue_id: str
    status: str
    event_id: str
    warnings: tuple[Advice, ...] = ()


class Advice(View, frozen=True, kw_only=True):
    """Something that is allowed and probably not meant."""

    code: str
    pointer: str
    message: str


class HoldReply(View, frozen=True, kw_only=True):
    """What became of a claim."""

    status: Literal["started", "released", "blocked", "planned", "completed", "failed"]
    task_id: str
    claim_id: str
    event_id: str


class Ended(HoldReply, frozen=True, kw_only=True):
    """A claim that has ended; `next` is the claim that was asked for with it."""

    # After a failure: whether another attempt follows.
    retry: bool | None = None
    gate_id: str = ""
    next: ClaimNextReply | None = None


class HeartbeatReply(View, frozen=True, kw_only=True):
    """Whether the claim still holds its task, and until when."""

    state: Literal["held", "lease_lost", "cancelled"]
    lease_expires_at: str | None = None
    event_id: str = ""


_STATUS: dict[str, Literal["started", "released", "blocked", "planned", "completed", "failed"]] = {
    "task.started": "started",
    "task.released": "released",
    "task.blocked": "blocked",
    "task.plan.created": "planned",
    "task.complete": "completed",
    "task.failed": "failed",
}
HOLD_EVENTS = tuple(_STATUS)


def hold_reply(wire: Wire) -> HoldReply:
    """The reply of what a holder did."""
    return HoldReply(
        status=_STATUS[wire["type"]],
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        claim_id=wire["payload"]["claim_id"],
        event_id=event_id(wire["wire_id"]),
    )


def ended(wire: Wire, gate_id: str, following: ClaimNextReply | None) -> Ended:
    """The reply of a completion or a failure."""
    return Ended(
        status=_STATUS[wire["type"]],
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        claim_id=wire["payload"]["claim_id"],
        event_id=event_id(wire["wire_id"]),
        retry=wire["payload"].get("retry"),
        gate_id=gate_id,
        next=following,
    )


def extended(wire: Wire) -> HeartbeatReply:
    """The reply of a heartbeat that was recorded."""
    return HeartbeatReply(
        state="held", lease_expires_at=wire["payload"]["lease_expires_at"], event_id=event_id(wire["wire_id"])
    )


def heard(answer: dict[str, Any]) -> HeartbeatReply:
    """The reply of a heartbeat that changed nothing."""
    until = answer.get("lease_expires_at")
    return HeartbeatReply(state=answer["state"], lease_expires_at=iso_time(until) if until else None)
