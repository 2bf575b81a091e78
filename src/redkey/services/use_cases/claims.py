"""Claims: how agents get tasks. Exactly one wins each task; every other one learns at once that it lost, and to whom.

What a holder does with its task is `holds`.
"""

from __future__ import annotations

import msgspec

from redkey.commands.claims import ClaimNext, ClaimTask
from redkey.readmodel import replies
from redkey.readmodel.plan_text import plan_text, task_document
from redkey.readmodel.task_view import assignment
from redkey.readmodel.upstream import prior_context, results, said, upstream
from redkey.services.answers import answer_erased
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome, Settled, settled
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.shapes import claims
from redkey.shapes.claims import (
    Assignment,
    Claimed,
    ClaimNextOutcome,
    ClaimNextRequest,
    ClaimOutcome,
    ClaimRequest,
)
from redkey.wire.envelope import AnyWire
from redkey.wire.events import TaskClaimed, TaskClaimMissed, TaskClaimRejected
from redkey.wire.ids import parse_stream
from redkey.wire.names import queue_id


@use_case(claims.CLAIM_TASK)
def claim_task(caller: Caller, task_id: str, asked: ClaimRequest) -> Pending[ClaimOutcome]:
    """Claim a task: claimed, missed with the winner's name, or rejected with the reason."""

    def reply(outcome: Outcome, place: Place) -> ClaimOutcome:
        if outcome.answer is not None and "reason" in outcome.answer:
            refused = replies.may_not_claim(outcome.answer, asked.agent_id, place.task(task_id).queue_id)
            return msgspec.structs.replace(refused, task_id=task_id)
        if outcome.answer is not None:
            return _won(_claim(place, outcome.answer["held"]), outcome, place, with_task=asked.with_task)
        return _one(outcome, place, with_task=asked.with_task)

    return Pending(ClaimTask(task_id, asked.agent_id, _lease(asked.lease_seconds)), reply)


def _lease(asked: int | None) -> int:
    """Return the lease to ask for; 0 leaves it to the task, and a lease below 1 second can only be rejected."""
    return 0 if asked is None else asked if asked > 0 else -1


def _claim(place: Place, claim_id: str) -> Settled:
    """Return the record by which a claim was won: the first on a task's stream that names it."""
    for record in place.events(place.topic, claim_id, limit=8):
        found = settled(record)
        if type(found.event.payload) is TaskClaimed:
            return found
    raise AssertionError("a claim without a record")


def _one(outcome: Outcome, place: Place, *, with_task: bool) -> ClaimOutcome:
    """Return the reply of one attempt, from the record that decides it."""
    for one in outcome.records:
        payload = one.event.payload
        if type(payload) is TaskClaimed:
            return _won(one, outcome, place, with_task=with_task)
        if type(payload) is TaskClaimMissed:
            return replies.missed(one.event, payload, place.task(payload.task_id).queue_id)
        if type(payload) is TaskClaimRejected:
            return replies.rejected(one.event, payload, place.task(payload.task_id).queue_id)
    raise AssertionError("an attempt without a decision")


def _won(one: Settled, outcome: Outcome, place: Place, *, with_task: bool) -> Claimed:
    payload = one.event.payload
    if type(payload) is not TaskClaimed:
        raise AssertionError("a claim that was not recorded")
    if with_task:
        task = _assignment(one.event, payload.claim_id, place, repeated=outcome.repeated)
        return replies.claimed(one.event, payload, task)
    claimed = replies.claimed(one.event, payload)
    task_won = place.task(claimed.task_id)
    before = (place, place.topic, place.world, task_won, task_document(place, place.topic, task_won))
    return msgspec.structs.replace(claimed, upstream=upstream(*before), results=results(*before))


def _assignment(wire: AnyWire, claim_id: str, place: Place, *, repeated: bool) -> Assignment:
    stream = parse_stream(wire.stream.stream_id)
    task = place.task(stream.subject)
    document = task_document(place, place.topic, task)
    if document is None and repeated:
        raise answer_erased()
    note, answer = said(place, place.topic, task, stream.attempt, claim_id)
    before = (place, place.topic, place.world, task, document)
    text = plan_text(place, place.topic, task.content_sha256) if task.plan_task else None
    return assignment(
        task,
        stream.attempt,
        document,
        upstream=upstream(*before),
        results=results(*before),
        workflow_input=text.given if text is not None else None,
        note=note,
        answer=answer,
        prior_context=prior_context(*before),
    )


@use_case(claims.CLAIM_NEXT)
def claim_next(caller: Caller, queue: str, asked: ClaimNextRequest) -> Pending[ClaimNextOutcome]:
    """Claim the next task of a queue, waiting for one if asked to; it comes with its input and brief."""
    command = ClaimNext(queue_id(queue), asked.agent_id, _lease(asked.lease_seconds), asked.count or 1)
    many = asked.count is not None
    return Pending(
        command, lambda outcome, place: next_reply(outcome, place, command, many=many), wait_seconds=asked.wait
    )


def next_reply(outcome: Outcome, place: Place, command: ClaimNext, *, many: bool = False) -> ClaimNextOutcome:
    """Return the reply of a claim for the next task, or of one that came with the end of a hold."""
    if outcome.answer is not None:
        if not outcome.answer.get("reason"):
            return replies.no_tasks(command.agent_id, command.queue_id)
        return replies.may_not_claim(outcome.answer, command.agent_id, command.queue_id)
    first = _one(outcome, place, with_task=True)
    if not many or not isinstance(first, Claimed):
        return first
    won = [one for one in outcome.records if type(one.event.payload) is TaskClaimed]
    return replies.all_claimed([_won(one, outcome, place, with_task=True) for one in won])
