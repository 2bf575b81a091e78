"""One task stream by itself: the state of an attempt outside any workspace.

`attempt` folds states and holds; this module adds the other details of the wires, for people and tools that have the
wires of one stream and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from redkey.reducers import attempt as attempts
from redkey.reducers.artifact import Version, version_of
from redkey.reducers.attempt import TaskEvent
from redkey.reducers.machine import machine
from redkey.reducers.outputs import named_artifacts
from redkey.reducers.world import RULES
from redkey.wire.envelope import Wire
from redkey.wire.events import (
    ArtifactReady,
    MessageAdded,
    Ref,
    ReviewConcern,
    TaskBlocked,
    TaskCancelled,
    TaskClaimed,
    TaskComplete,
    TaskCreated,
    TaskFailed,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskStarted,
    TaskVerification,
)
from redkey.wire.payload import Payload

# A point in time: the producer's `ts`, or nanoseconds of ledger time, as the caller chooses.
Moment = str | int
# The claim and the agent that held the attempt before a wire; both empty when there was no holder.
Holder = tuple[str, str]
P = TypeVar("P", bound=Payload)


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Who holds the attempt, and until when other claims must wait."""

    claim_id: str
    agent_id: str
    since: Moment
    lease_expires_at: str | None


class Expired(msgspec.Struct, frozen=True, gc=False):
    """The last hold whose lease expired, and the state it had reached."""

    hold: Hold
    state: str


class Blocker(msgspec.Struct, frozen=True, gc=False):
    """Why the attempt is blocked."""

    blocker_type: str
    reason_ref: Ref
    depends_on: tuple[str, ...]
    attempts: int
    since: Moment


class Ending(msgspec.Struct, frozen=True, gc=False):
    """How the attempt ended and under which hold, as the completion, failure or cancellation reports."""

    at: Moment
    hold: Hold | None
    verification: TaskVerification | None = None
    artifact_ids: tuple[str, ...] = ()
    output_ref: Ref | None = None
    cost_usd: float | None = None
    duration_seconds: int | None = None
    kind: str | None = None
    reason_ref: Ref | None = None
    retry: bool = False
    cause: str | None = None
    # Those of `artifact_ids` whose bytes RedKey has not seen.
    unverified_ids: tuple[str, ...] = ()


class Attempt(msgspec.Struct, gc=False):
    """One try at a task. `outputs` is None while the required outputs are in a structure that was not supplied."""

    task_id: str
    attempt: int
    state: str
    context_id: str = ""
    queue_id: str = ""
    priority: str = ""
    retry_of: int | None = None
    outputs: tuple[str, ...] | None = None
    claim_id: str = ""
    agent_id: str = ""
    expired_claim_id: str = ""
    expired_agent_id: str = ""
    expired_state: str = ""
    # When the last hold began and when its lease ends; kept after the lease expired.
    held_since: Moment = ""
    lease_expires_at: str | None = None
    blocker: Blocker | None = None
    outcome: Ending | None = None
    artifacts: dict[str, Version] = {}
    plan_ref: Ref | None = None
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

    @property
    def hold(self) -> Hold | None:
        """The current hold, if any."""
        return self.held_by(self.claim_id, self.agent_id)

    @property
    def expired(self) -> Expired | None:
        """The expired hold that its holder may resume until another agent claims."""
        late = self.held_by(self.expired_claim_id, self.expired_agent_id)
        return Expired(late, self.expired_state) if late is not None else None

    def held_by(self, claim_id: str, agent_id: str) -> Hold | None:
        """The hold of the last claim; None when the claim id is empty."""
        return Hold(claim_id, agent_id, self.held_since, self.lease_expires_at) if claim_id else None

    def ready_artifacts(self) -> Mapping[str, Version]:
        """The artifacts that may complete the task, by id."""
        return {key: version for key, version in self.artifacts.items() if version.ready}

    def as_json(self) -> dict[str, Any]:
        """The state as JSON, with the field names of the seed's reducer cases added."""
        fields: dict[str, Any] = msgspec.json.decode(
            msgspec.json.encode({name: getattr(self, name) for name in _SHOWN})
        )
        return fields | {
            "terminal": self.terminal,
            "blocked": self.blocker is not None,
            "verification": fields["outcome"]["verification"] if fields["outcome"] is not None else None,
            "artifact_count": len(self.artifacts),
            "artifact_ids": sorted(self.artifacts),
        }


_SHOWN = (
    *(
        name
        for name in Attempt.__struct_fields__
        if not name.startswith("expired_") and name not in ("claim_id", "agent_id", "held_since", "lease_expires_at")
    ),
    "hold",
    "expired",
)


def begin(task_id: str, attempt: int) -> Attempt:
    """Return the attempt as it is before its first wire."""
    return Attempt(task_id, attempt, machine().initial)


class Terms(msgspec.Struct):
    """The workspace settings, as far as its wires are at hand; otherwise today's defaults."""

    rules: int = RULES
    unverified_outputs: str = ""


def apply(attempt: Attempt, wire: Wire[TaskEvent], at: Moment | None = None, terms: Terms | None = None) -> str | None:
    """Fold one wire of the attempt's own stream; return None if it applied, else why it is void."""
    before, holder, p = attempt.state, (attempt.claim_id, attempt.agent_id), wire.payload
    reason = attempts.apply(attempt, p, terms or Terms())
    if reason is not None:
        return reason
    moment = wire.ts if at is None else at
    if attempt.state != before:
        # The blocker ends with the blocked state.
        attempt.blocker = None
    note = _NOTES.get(p.TYPE)
    if note is not None:
        note(attempt, p, moment, holder)
    if before == machine().initial:
        attempt.context_id = wire.stream.context_id
    attempt.changed_at = moment
    return None


def _created(attempt: Attempt, p: TaskCreated, at: Moment, holder: Holder) -> None:
    attempt.queue_id = p.queue_id
    attempt.priority = p.priority
    attempt.retry_of = p.retry_of
    # The outputs of a plan's task, or of a task with a pinned structure, are in that structure.
    if p.workflow_id is None and p.structure_ref is None:
        attempt.outputs = p.outputs or ()
    attempt.created_at = at


def _claimed(attempt: Attempt, p: TaskClaimed, at: Moment, holder: Holder) -> None:
    attempt.held_since, attempt.lease_expires_at = at, p.lease_expires_at
    attempt.started_at = None
    attempt.claims += 1


def _started(attempt: Attempt, p: TaskStarted, at: Moment, holder: Holder) -> None:
    attempt.started_at = at


def _extended(attempt: Attempt, p: TaskLeaseExtended, at: Moment, holder: Holder) -> None:
    attempt.lease_expires_at = p.lease_expires_at


def _blocked(attempt: Attempt, p: TaskBlocked, at: Moment, holder: Holder) -> None:
    attempt.blocker = Blocker(p.blocker_type, p.reason_ref, p.depends_on or (), p.attempts, at)


def _artifact(attempt: Attempt, p: ArtifactReady, at: Moment, holder: Holder) -> None:
    attempt.artifacts[p.artifact_id] = version_of(p, attempt.task_id, attempt.attempt, at)


def _plan(attempt: Attempt, p: TaskPlanCreated, at: Moment, holder: Holder) -> None:
    attempt.plan_ref = p.plan_ref


def _message(attempt: Attempt, p: MessageAdded, at: Moment, holder: Holder) -> None:
    attempt.messages += 1


def _concern(attempt: Attempt, p: ReviewConcern, at: Moment, holder: Holder) -> None:
    attempt.concerns += 1


def _completed(attempt: Attempt, p: TaskComplete, at: Moment, holder: Holder) -> None:
    named = named_artifacts(attempt.ready_artifacts(), p) or ()
    attempt.outcome = Ending(
        at,
        attempt.held_by(*holder),
        p.verification,
        tuple(named),
        p.output_ref,
        p.cost_usd,
        p.duration_seconds,
        unverified_ids=tuple(named[place] for place in p.unverified or ()),
    )


def _failed(attempt: Attempt, p: TaskFailed, at: Moment, holder: Holder) -> None:
    attempt.outcome = Ending(at, attempt.held_by(*holder), kind=p.kind, reason_ref=p.reason_ref, retry=p.retry)


def _cancelled(attempt: Attempt, p: TaskCancelled, at: Moment, holder: Holder) -> None:
    attempt.outcome = Ending(at, attempt.held_by(*holder), cause=p.cause)


_Note = Callable[[Attempt, Any, Moment, Holder], None]


def _on(kind: type[P], note: Callable[[Attempt, P, Moment, Holder], None]) -> tuple[str, _Note]:
    """Pair a note with its event type; the type checker checks that it accepts payloads of that type."""
    return kind.TYPE, note


_NOTES: Mapping[str, _Note] = dict(
    [
        _on(TaskCreated, _created),
        _on(TaskClaimed, _claimed),
        _on(TaskStarted, _started),
        _on(TaskLeaseExtended, _extended),
        _on(TaskBlocked, _blocked),
        _on(ArtifactReady, _artifact),
        _on(TaskPlanCreated, _plan),
        _on(MessageAdded, _message),
        _on(ReviewConcern, _concern),
        _on(TaskComplete, _completed),
        _on(TaskFailed, _failed),
        _on(TaskCancelled, _cancelled),
    ]
)
