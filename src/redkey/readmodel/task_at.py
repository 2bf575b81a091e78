"""A task as it was at a place of the ledger, by replaying its own stream up to there.

What a task asks for never changes; its state comes from the wires of its attempts, folded by the same reducers that the
fixtures prove.
"""

from __future__ import annotations

from typing import cast

import msgspec

from redkey.ledger.ports import Reader
from redkey.reducers.attempt import TaskEvent
from redkey.reducers.entities import Artifact, Task
from redkey.reducers.stream import Attempt, Terms, apply, begin
from redkey.wire.envelope import Wire, wire_of
from redkey.wire.events import TaskCreated
from redkey.wire.ids import parse_stream
from redkey.wire.times import parse_time

_PAGE = 500
# The ledger has judged its own records: what its rules and policies were at the time is not asked again.
_JUDGED = Terms(rules=1, unverified_outputs="allow")


def task_at(reader: Reader, topic: str, task: Task, sequence: int) -> Task | None:
    """Return the task after the record with this sequence; None if it had not been created."""
    current: Attempt | None = None
    after, begun = 0, 0
    while True:
        records = reader.events(topic, task.task_id, after, _PAGE)
        for record in records:
            if record.sequence > sequence:
                return _like(task, current, begun)
            after = record.sequence
            wire = wire_of(record.wire)
            stream = parse_stream(wire.stream.stream_id)
            if stream.kind != "task" or stream.subject != task.task_id:
                continue
            if isinstance(wire.payload, TaskCreated):
                current, begun = begin(task.task_id, stream.attempt), record.sequence
            if current is not None and current.attempt == stream.attempt:
                if current.outputs is None:
                    current.outputs = task.outputs
                apply(current, cast("Wire[TaskEvent]", wire), record.timestamp, _JUDGED)
        if len(records) < _PAGE:
            return _like(task, current, begun)


def _like(task: Task, attempt: Attempt | None, begun: int) -> Task | None:
    """Return the task with everything that can change taken from the attempt."""
    if attempt is None:
        return None
    then = Task(
        task_id=task.task_id,
        attempt=attempt.attempt,
        state=attempt.state,
        queue_id=task.queue_id,
        priority=task.priority,
        sequence=begun,
        created_at=int(attempt.created_at),
        updated_at=int(attempt.changed_at),
        content_sha256=task.content_sha256,
        content_bytes=task.content_bytes,
        context_id=task.context_id,
        roles=task.roles,
        capabilities=task.capabilities,
        outputs=task.outputs,
        lease_seconds=task.lease_seconds,
        deadline_at=int(attempt.created_at) + task.deadline_at - task.created_at if task.deadline_at else 0,
        max_attempts=task.max_attempts,
        workflow_id=task.workflow_id,
        plan_task=task.plan_task,
        reference_task_ids=task.reference_task_ids,
        parent_task_id=task.parent_task_id,
        lease_losses=attempt.lease_losses,
        artifacts=tuple(
            Artifact(key, one.name, one.readiness, one.version, one.sha256, one.bytes, one.content_ref.sha256)
            for key, one in attempt.artifacts.items()
        ),
    )
    return msgspec.structs.replace(then, **_hold(attempt), **_standstill(attempt), **_end(attempt))


def _hold(attempt: Attempt) -> dict[str, str | int]:
    hold = attempt.hold
    if hold is None:
        return {}
    return {
        "claim_id": hold.claim_id,
        "agent_id": hold.agent_id,
        "claimed_at": int(hold.since),
        "started_at": int(attempt.started_at or 0),
        "lease_expires_at": parse_time(hold.lease_expires_at) if hold.lease_expires_at else 0,
    }


def _standstill(attempt: Attempt) -> dict[str, str | tuple[str, ...]]:
    blocker = attempt.blocker
    if blocker is None:
        return {}
    return {
        "blocker_type": blocker.blocker_type,
        "reason_sha256": blocker.reason_ref.sha256,
        "blocked_by": blocker.depends_on,
    }


def _end(attempt: Attempt) -> dict[str, str | int]:
    outcome = attempt.outcome
    if outcome is None:
        return {}
    # Since when its last holder had it says how long it took.
    held = {"claimed_at": int(outcome.hold.since), "started_at": int(attempt.started_at or 0)} if outcome.hold else {}
    return {
        **held,
        "ended_at": int(outcome.at),
        "winner_agent_id": outcome.hold.agent_id if outcome.hold is not None else "",
        "output_sha256": outcome.output_ref.sha256 if outcome.output_ref is not None else "",
        "failure_kind": outcome.kind or "",
        "reason_sha256": outcome.reason_ref.sha256 if outcome.reason_ref is not None else "",
        "cause": outcome.cause or "",
    }
