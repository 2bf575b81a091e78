"""The fold of a task attempt: which wire may change its state, to which state, and who holds it then.

The world of a workspace (`task`) and the replay of single streams (`stream`) both fold through `apply`, which follows
the contract. `apply` never raises: it returns None if the wire applied, or the reason why the wire is void; a void wire
changes nothing. The caller does the rest: the world keeps its indexes and agenda, the replay keeps the details of the
wires. The caller also handles order, duplicates, and which stream a wire belongs to.

An attempt has a hold exactly in the states that the contract marks `held`, so it never has two holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol, TypeVar, get_type_hints

from redkey.errors import ContractBroken
from redkey.reducers.machine import FILE, RESUME, SAME, TRANSITION_REFUSED, Moves, machine
from redkey.reducers.outputs import (
    ALLOW,
    NAMING_RULES,
    UNVERIFIED_LIMIT,
    Ready,
    missing_outputs,
    named_artifacts,
    unverified_outputs,
    unverified_places,
)
from redkey.wire.events import (
    PAYLOADS,
    ArtifactReady,
    MessageAdded,
    ReviewConcern,
    TaskAvailable,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskComplete,
    TaskCreated,
    TaskFailed,
    TaskLeaseExpired,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskProgress,
    TaskReleased,
    TaskStalled,
    TaskStarted,
    TaskUnblocked,
    TaskUsageReported,
)
from redkey.wire.payload import Payload
from redkey.wire.rules import SYSTEM_FAILURES

Void = str | None

# Why a guard refuses a wire; `machine` has the refusals of the state table itself.
CLAIM_NOT_CURRENT = "claim_not_current"
MISSING_ARTIFACT = "missing_artifact"
UNVERIFIED_ARTIFACT = "unverified_artifact"
VERIFICATION_FAILED = "verification_failed"
# Why a wire does not fit the earlier attempts at its task; and the states after which another attempt may follow.
ATTEMPT_EXISTS, ATTEMPT_ENDED, CONTEXT_CHANGED = "attempt_exists", "attempt_ended", "context_changed"
RETRIED = ("failed", "cancelled")

# The wires on the stream of an attempt that name the claim they act under.
HolderEvent = (
    TaskStarted
    | ArtifactReady
    | TaskPlanCreated
    | TaskUsageReported
    | TaskProgress
    | TaskLeaseExtended
    | TaskLeaseExpired
    | TaskStalled
    | TaskReleased
    | TaskBlocked
    | TaskComplete
    | TaskFailed
)
# Every wire on the stream of an attempt.
TaskEvent = (
    TaskCreated
    | TaskAvailable
    | TaskClaimed
    | TaskUnblocked
    | TaskCancelled
    | MessageAdded
    | ReviewConcern
    | HolderEvent
)


class AttemptState(Protocol):
    """What the fold of an attempt reads and changes."""

    state: str
    # The current holder; empty when there is none.
    claim_id: str
    agent_id: str
    # The last hold whose lease expired and the state it had reached; cleared by the next claim.
    expired_claim_id: str
    expired_agent_id: str
    expired_state: str
    lease_losses: int

    @property
    def outputs(self) -> tuple[str, ...] | None:
        """The names of the artifacts that a completion needs; None when they are unknown."""
        ...

    def ready_artifacts(self) -> Ready:
        """The artifacts that may complete the task, by id."""
        ...


class Terms(Protocol):
    """The workspace settings that attempts are judged by."""

    rules: int
    # Whether required outputs may be unverified; empty when the workspace has not set it.
    unverified_outputs: str


def apply(attempt: AttemptState, p: TaskEvent, terms: Terms) -> Void:
    """Fold one wire of the attempt's own stream; return None if it applied, else why it is void."""
    before, event = attempt.state, p.TYPE
    reason: Void = None
    for to, guard in _moves()[before].get(event, ()):
        reason = guard(attempt, p, terms) if guard is not None else None
        if reason is None:
            if to == RESUME:
                attempt.state = attempt.expired_state
            elif to != SAME:
                attempt.state = to
            change_hold = _HOLDS.get(event)
            if change_hold is not None:
                change_hold(attempt, p, before)
            return None
    return reason or machine().refusals[before]


# Guards by their names in the contract. `_moves` checks that each guard accepts the event types it is listed for.


def _holder(attempt: AttemptState, p: HolderEvent, terms: Terms) -> Void:
    return None if attempt.claim_id and p.claim_id == attempt.claim_id else CLAIM_NOT_CURRENT


def _last_holder(attempt: AttemptState, p: TaskLeaseExtended, terms: Terms) -> Void:
    return None if p.reacquired and p.claim_id == attempt.expired_claim_id else CLAIM_NOT_CURRENT


def _by_system(attempt: AttemptState, p: TaskFailed, terms: Terms) -> Void:
    return None if p.kind in SYSTEM_FAILURES else TRANSITION_REFUSED


def _holder_or_system(attempt: AttemptState, p: TaskFailed, terms: Terms) -> Void:
    return None if p.kind in SYSTEM_FAILURES else _holder(attempt, p, terms)


def _outputs_ready(attempt: AttemptState, p: TaskComplete, terms: Terms) -> Void:
    reason = _holder(attempt, p, terms)
    if reason is not None:
        return reason
    if p.verification.mechanical != "pass":
        return VERIFICATION_FAILED
    outputs = attempt.outputs or ()
    if not outputs and not p.artifact_ids and p.manifest_ref is None:
        return None
    ready = attempt.ready_artifacts()
    named = named_artifacts(ready, p)
    if named is None or missing_outputs(outputs, ready, named, terms.rules):
        return MISSING_ARTIFACT
    if terms.rules < NAMING_RULES:
        return None
    listed = p.unverified or ()
    is_listed = len(listed) == UNVERIFIED_LIMIT or {*unverified_places(ready, named)} <= {*listed}
    is_allowed = terms.unverified_outputs == ALLOW or not unverified_outputs(outputs, ready, named)
    return None if is_listed and is_allowed else UNVERIFIED_ARTIFACT


Guard = Callable[[AttemptState, Any, Terms], Void]
_GUARDS: Mapping[str, Guard] = {
    "holder": _holder,
    "last_holder": _last_holder,
    "by_system": _by_system,
    "holder_or_system": _holder_or_system,
    "outputs_ready": _outputs_ready,
}


@cache
def _moves() -> Moves[Guard | None]:
    """The moves of the contract; ContractBroken if a guard is listed for an event type that it does not accept."""
    for row in machine().moves.values():
        for event, moves in row.items():
            for _, guard in moves:
                accepted = get_type_hints(_GUARDS[guard])["p"] if guard in _GUARDS else object
                if not issubclass(PAYLOADS[event], accepted):
                    raise ContractBroken(f"{FILE}: the guard {guard!r} does not accept {event}")
    return machine().bind(_GUARDS)


# Holds: who holds the attempt after a wire that applied.


def _take(attempt: AttemptState, p: TaskClaimed, before: str) -> None:
    attempt.claim_id, attempt.agent_id = p.claim_id, p.agent_id
    _forget_expired(attempt)


def _take_again(attempt: AttemptState, p: TaskLeaseExtended, before: str) -> None:
    if before == "available":
        # The holder resumed an expired hold: the lease was late, not lost.
        attempt.claim_id, attempt.agent_id = attempt.expired_claim_id, attempt.expired_agent_id
        attempt.lease_losses = max(0, attempt.lease_losses - 1)
        _forget_expired(attempt)


def _expire(attempt: AttemptState, p: TaskLeaseExpired | TaskStalled, before: str) -> None:
    attempt.expired_claim_id, attempt.expired_agent_id = attempt.claim_id, attempt.agent_id
    attempt.expired_state = before
    attempt.lease_losses += 1
    attempt.claim_id = attempt.agent_id = ""


def _give_up(attempt: AttemptState, p: TaskReleased | TaskBlocked, before: str) -> None:
    attempt.claim_id = attempt.agent_id = ""


def _end(attempt: AttemptState, p: TaskComplete | TaskFailed | TaskCancelled, before: str) -> None:
    attempt.claim_id = attempt.agent_id = ""
    _forget_expired(attempt)


def _forget_expired(attempt: AttemptState) -> None:
    attempt.expired_claim_id = attempt.expired_agent_id = attempt.expired_state = ""


P = TypeVar("P", bound=Payload)
_Hold = Callable[[AttemptState, Any, str], None]


def _on(kind: type[P], change: Callable[[AttemptState, P, str], None]) -> tuple[str, _Hold]:
    """Pair a hold change with its event type; the type checker checks that it accepts payloads of that type."""
    return kind.TYPE, change


_HOLDS: Mapping[str, _Hold] = dict(
    [
        _on(TaskClaimed, _take),
        _on(TaskLeaseExtended, _take_again),
        _on(TaskLeaseExpired, _expire),
        _on(TaskStalled, _expire),
        _on(TaskReleased, _give_up),
        _on(TaskBlocked, _give_up),
        _on(TaskComplete, _end),
        _on(TaskFailed, _end),
        _on(TaskCancelled, _end),
    ]
)
