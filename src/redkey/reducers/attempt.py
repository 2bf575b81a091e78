"""One attempt at a task: the fold of the stream `task:<id>:attempt:<n>`, run by the contract.

`apply` is total. It gives None when the wire moved the attempt, or the reason why it is void; a void wire
changes nothing. An attempt is changed in place, for speed; the fold as a whole is pure. Order, duplicates
and which stream a wire belongs to are the caller's business (`replay`, or the world of a workspace).

The state follows the contract; the fields beside it are what the wires told on the way. An attempt has a
hold exactly in the states that the contract marks `held`, so it never has two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from redkey.reducers.artifact import Version, version_of
from redkey.reducers.machine import RESUME, SAME, TRANSITION_REFUSED, Machine, Moves, machine
from redkey.wire.rules import SYSTEM_FAILURES

# Why a guard refuses; `machine` has the reasons of the table itself.
CLAIM_NOT_CURRENT = "claim_not_current"
MISSING_ARTIFACT = "missing_artifact"
VERIFICATION_FAILED = "verification_failed"

# A moment is what the caller counts by: the producer's `ts`, or nanoseconds of ledger time.
Moment = str | int
Payload = dict[str, Any]


class Hold(msgspec.Struct, gc=False):
    """Who has the attempt now, and until when others must wait."""

    claim_id: str
    agent_id: str
    since: Moment
    lease_expires_at: str | None


class Expired(msgspec.Struct, frozen=True, gc=False):
    """The hold whose lease expired last and the state it had reached; gone as soon as somebody claims."""

    hold: Hold
    state: str


class Blocker(msgspec.Struct, frozen=True, gc=False):
    """Why the attempt stands still."""

    blocker_type: str
    reason_ref: dict[str, Any]
    depends_on: tuple[str, ...]
    attempts: int
    since: Moment


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How the attempt ended and in whose hold: what a completion, a failure or a cancellation says of it."""

    at: Moment
    hold: Hold | None
    verification: dict[str, Any] | None = None
    artifact_ids: tuple[str, ...] = ()
    output_ref: dict[str, Any] | None = None
    cost_usd: float | None = None
    duration_seconds: int | None = None
    kind: str | None = None
    reason_ref: dict[str, Any] | None = None
    retry: bool = False
    cause: str | None = None


class Attempt(msgspec.Struct, gc=False):
    """One try at a task. `outputs` is None while what is required stands in a structure nobody handed in."""

    task_id: str
    attempt: int
    state: str
    context_id: str = ""
    queue_id: str = ""
    priority: str = ""
    retry_of: int | None = None
    outputs: tuple[str, ...] | None = None
    hold: Hold | None = None
    expired: Expired | None = None
    blocker: Blocker | None = None
    outcome: Outcome | None = None
    artifacts: dict[str, Version] = {}
    plan_ref: dict[str, Any] | None = None
    claims: int = 0
    lease_losses: int = 0
    messages: int = 0
    concerns: int = 0
    created_at: Moment = ""
    started_at: Moment | None = None
    changed_at: Moment = ""

    @property
    def terminal(self) -> bool:
        return self.state in machine().terminal

    def as_json(self) -> dict[str, Any]:
        """The state as JSON, with the words of the seed's reducer cases beside the fields."""
        fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        outcome = fields["outcome"]
        return fields | {
            "terminal": self.terminal,
            "blocked": self.blocker is not None,
            "verification": outcome["verification"] if outcome is not None else None,
            "artifact_count": len(self.artifacts),
            "artifact_ids": sorted(self.artifacts),
        }


def begin(task_id: str, attempt: int) -> Attempt:
    """The attempt before its first wire."""
    return Attempt(task_id, attempt, machine().initial)


def apply(attempt: Attempt, wire: dict[str, Any], at: Moment | None = None) -> str | None:
    """Fold one wire of the attempt's own stream; None when it applied, else why it is void."""
    moves, contract = _bound()
    payload = wire["payload"]
    listed = moves[attempt.state].get(wire["type"])
    reason: str | None = contract.refusals[attempt.state]
    for to, guard in listed or ():
        reason = guard(attempt, payload) if guard is not None else None
        if reason is None:
            _move(attempt, wire, to, wire["ts"] if at is None else at)
            if attempt.state not in contract.held:
                attempt.hold = None
            break
    return reason


def _move(attempt: Attempt, wire: dict[str, Any], to: str, at: Moment) -> None:
    if to == SAME:
        to = attempt.state
    elif to == RESUME:
        to = attempt.expired.state if attempt.expired is not None else attempt.state
    if to != attempt.state:
        # What stood in the way is gone with the state it brought about.
        attempt.blocker = None
    effect = _EFFECTS.get(wire["type"])
    if effect is not None:
        effect(attempt, wire, wire["payload"], at)
    attempt.state = to
    attempt.changed_at = at


def missing(attempt: Attempt, artifact_ids: list[str]) -> list[str]:
    """The artifact ids and output names that a completion needs and the attempt does not have ready."""
    ready = {key: version for key, version in attempt.artifacts.items() if version.ready}
    names = {version.name for version in ready.values()}
    return [key for key in artifact_ids if key not in ready] + [
        name for name in attempt.outputs or () if name not in names
    ]


def _holder(attempt: Attempt, payload: Payload) -> str | None:
    hold = attempt.hold
    return None if hold is not None and payload.get("claim_id") == hold.claim_id else CLAIM_NOT_CURRENT


def _last_holder(attempt: Attempt, payload: Payload) -> str | None:
    expired = attempt.expired
    again = expired is not None and payload.get("reacquired") and payload["claim_id"] == expired.hold.claim_id
    return None if again else CLAIM_NOT_CURRENT


def _by_system(attempt: Attempt, payload: Payload) -> str | None:
    return None if payload["kind"] in SYSTEM_FAILURES else TRANSITION_REFUSED


def _holder_or_system(attempt: Attempt, payload: Payload) -> str | None:
    return None if payload["kind"] in SYSTEM_FAILURES else _holder(attempt, payload)


def _outputs_ready(attempt: Attempt, payload: Payload) -> str | None:
    reason = _holder(attempt, payload)
    if reason is not None:
        return reason
    if payload["verification"]["mechanical"] != "pass":
        return VERIFICATION_FAILED
    return MISSING_ARTIFACT if missing(attempt, payload["artifact_ids"]) else None


Guard = Callable[[Attempt, Payload], str | None]
_GUARDS: Mapping[str, Guard] = {
    "holder": _holder,
    "last_holder": _last_holder,
    "by_system": _by_system,
    "holder_or_system": _holder_or_system,
    "outputs_ready": _outputs_ready,
}


@cache
def _bound() -> tuple[Moves[Guard | None], Machine]:
    return machine().bind(_GUARDS), machine()


def _created(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.context_id = wire["stream"]["context_id"]
    attempt.queue_id = payload["queue_id"]
    attempt.priority = payload["priority"]
    attempt.retry_of = payload.get("retry_of")
    # A plan task and a task with pinned structure leave their outputs to that structure.
    if payload.get("workflow_id") is None and payload.get("structure_ref") is None:
        attempt.outputs = tuple(payload.get("outputs") or ())
    attempt.created_at = at


def _claimed(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.hold = Hold(payload["claim_id"], payload["agent_id"], at, payload.get("lease_expires_at"))
    attempt.expired = attempt.started_at = None
    attempt.claims += 1


def _started(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.started_at = at


def _extended(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    if attempt.expired is not None:
        # A hold that its holder takes up again was late, not lost.
        attempt.hold, attempt.expired = attempt.expired.hold, None
        attempt.lease_losses -= 1
    if attempt.hold is not None:
        attempt.hold.lease_expires_at = payload["lease_expires_at"]


def _expired(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    if attempt.hold is not None:
        attempt.expired = Expired(attempt.hold, attempt.state)
    attempt.lease_losses += 1


def _blocked(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    depends_on = tuple(payload.get("depends_on") or ())
    attempt.blocker = Blocker(payload["blocker_type"], payload["reason_ref"], depends_on, payload["attempts"], at)


def _artifact(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.artifacts[payload["artifact_id"]] = version_of(payload, attempt.task_id, attempt.attempt, at)


def _plan(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.plan_ref = payload["plan_ref"]


def _message(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.messages += 1


def _concern(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.concerns += 1


def _completed(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.outcome = Outcome(
        at,
        attempt.hold,
        payload["verification"],
        tuple(payload["artifact_ids"]),
        payload.get("output_ref"),
        payload["cost_usd"],
        payload["duration_seconds"],
    )


def _failed(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.outcome = Outcome(
        at, attempt.hold, kind=payload["kind"], reason_ref=payload.get("reason_ref"), retry=payload["retry"]
    )


def _cancelled(attempt: Attempt, wire: dict[str, Any], payload: Payload, at: Moment) -> None:
    attempt.outcome = Outcome(at, attempt.hold, cause=payload["cause"])


_EFFECTS: Mapping[str, Callable[[Attempt, dict[str, Any], Payload, Moment], None]] = {
    "task.created": _created,
    "task.claimed": _claimed,
    "task.started": _started,
    "task.lease_extended": _extended,
    "task.lease_expired": _expired,
    "task.blocked": _blocked,
    "artifact.ready": _artifact,
    "task.plan.created": _plan,
    "message.added": _message,
    "review.concern": _concern,
    "task.complete": _completed,
    "task.failed": _failed,
    "task.cancelled": _cancelled,
}
