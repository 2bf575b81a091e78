"""The one fold of an attempt at a task: which wire may move it, where to, and who holds it then.

The world of a workspace (`task`) and the replay of single streams (`stream`) both fold through `apply`, run by the
contract. It is total: it gives None when the wire moved the attempt, or the reason why the wire is void; a void wire
changes nothing. What else follows is the caller's business: the world keeps its indexes and agenda, the replay notes
what the wires told. Order, duplicates and which stream a wire belongs to are the caller's too.

An attempt has a hold exactly in the states that the contract marks `held`, so it never has two.
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

# Why a guard refuses; `machine` has the reasons of the table itself.
CLAIM_NOT_CURRENT = "claim_not_current"
MISSING_ARTIFACT = "missing_artifact"
UNVERIFIED_ARTIFACT = "unverified_artifact"
VERIFICATION_FAILED = "verification_failed"

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
# Every wire that stands on the stream of an attempt.
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
    # Who has the attempt now; empty when nobody does.
    claim_id: str
    agent_id: str
    # The last hold that ended by expiry and the state it had reached, as long as nobody claimed since.
    expired_claim_id: str
    expired_agent_id: str
    expired_state: str
    lease_losses: int

    @property
    def outputs(self) -> tuple[str, ...] | None:
        """The names of the artifacts that a completion must have; None when nobody knows them."""
        ...

    def ready_artifacts(self) -> Ready:
        """The artifacts that a task may be completed with, by id."""
        ...


class Terms(Protocol):
    """What a workspace decided that attempts are judged by."""

    rules: int
    # Whether required outputs may be unverified; empty when the workspace did not decide.
    unverified_outputs: str


def apply(attempt: AttemptState, p: TaskEvent, terms: Terms) -> Void:
    """Fold one wire of the attempt's own stream; None when it applied, else why it is void."""
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


# Guards, by the names that the contract gives them. The contract asks each of the types that it takes (`_moves`).


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
    """The moves of the contract; ContractBroken when it asks a guard of a type that the guard does not take."""
    for row in machine().moves.values():
        for event, moves in row.items():
            for _, guard in moves:
                taken = get_type_hints(_GUARDS[guard])["p"] if guard in _GUARDS else object
                if not issubclass(PAYLOADS[event], taken):
                    raise ContractBroken(f"{FILE}: the guard {guard!r} does not take {event}")
    return machine().bind(_GUARDS)


# Holds: who has the attempt after a wire that moved it.


def _take(attempt: AttemptState, p: TaskClaimed, before: str) -> None:
    attempt.claim_id, attempt.agent_id = p.claim_id, p.agent_id
    _forget_expired(attempt)


def _take_again(attempt: AttemptState, p: TaskLeaseExtended, before: str) -> None:
    if before == "available":
        # A hold that its holder takes up again was late, not lost.
        attempt.claim_id, attempt.agent_id = attempt.expired_claim_id, attempt.expired_agent_id
        attempt.lease_losses = max(0, attempt.lease_losses - 1)
        _forget_expired(attempt)


def _expire(attempt: AttemptState, p: TaskLeaseExpired | TaskStalled, before: str) -> None:
    attempt.expired_claim_id, attempt.expired_agent_id = attempt.claim_id, attempt.agent_id
    attempt.expired_state = before
    attempt.lease_losses += 1
    attempt.claim_id = attempt.agent_id = ""


def _let_go(attempt: AttemptState, p: TaskReleased | TaskBlocked, before: str) -> None:
    attempt.claim_id = attempt.agent_id = ""


def _end(attempt: AttemptState, p: TaskComplete | TaskFailed | TaskCancelled, before: str) -> None:
    attempt.claim_id = attempt.agent_id = ""
    _forget_expired(attempt)


def _forget_expired(attempt: AttemptState) -> None:
    attempt.expired_claim_id = attempt.expired_agent_id = attempt.expired_state = ""


P = TypeVar("P", bound=Payload)
_Hold = Callable[[AttemptState, Any, str], None]


def _on(kind: type[P], change: Callable[[AttemptState, P, str], None]) -> tuple[str, _Hold]:
    """A change under the name of its event type; the type checker sees that it takes payloads of that type."""
    return kind.TYPE, change


_HOLDS: Mapping[str, _Hold] = dict(
    [
        _on(TaskClaimed, _take),
        _on(TaskLeaseExtended, _take_again),
        _on(TaskLeaseExpired, _expire),
        _on(TaskStalled, _expire),
        _on(TaskReleased, _let_go),
        _on(TaskBlocked, _let_go),
        _on(TaskComplete, _end),
        _on(TaskFailed, _end),
        _on(TaskCancelled, _end),
    ]
)
