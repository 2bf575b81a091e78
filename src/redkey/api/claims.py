"""Claims: how agents get tasks. Exactly one wins each; every other learns at once that it lost, and to whom.

What a holder does with its task is `holds`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from redkey.api.call import Call, Pending
from redkey.api.fields import Body, Id, IdempotencyKey, Wait
from redkey.commands.claims import ClaimNext, ClaimTask
from redkey.http.route import AGENT, Route
from redkey.readmodel import replies
from redkey.readmodel.plan_text import plan_text, task_document
from redkey.readmodel.replies import ClaimNextReply, ClaimReply
from redkey.readmodel.rows import entity
from redkey.readmodel.task_view import Assignment, assignment
from redkey.readmodel.upstream import note, prior_context, upstream
from redkey.readmodel.view import document_of
from redkey.reducers.entities import Task
from redkey.reducers.world import World
from redkey.services.answers import answer_erased
from redkey.services.outcome import Outcome
from redkey.wire.decode import decode
from redkey.wire.ids import parse_stream
from redkey.wire.names import queue_id

AskedLease = Annotated[
    int,
    Meta(ge=-(1 << 31), lt=1 << 31, description="5 seconds to 24 hours; any other is rejected, on the record."),
]


class Claim(Body, frozen=True, kw_only=True):
    """An agent asks for a task."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    # Whether the task's input and brief come with the claim, as they do with claim-next.
    with_task: bool = False
    idempotency_key: IdempotencyKey | None = None


class Next(Body, frozen=True, kw_only=True):
    """An agent asks for the next tasks of a queue that it may claim."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    count: Annotated[int, Meta(ge=1, le=100)] | None = None
    wait: Wait = 0
    idempotency_key: IdempotencyKey | None = None


# How an attempt that won nothing is told.
_LOST: Mapping[str, Callable[[dict[str, Any], str], ClaimReply]] = {
    "task.claim_missed": replies.missed,
    "task.claim_rejected": replies.rejected,
}


def claim_task(call: Call, body: Claim) -> Pending:
    """Claim a task: claimed, missed with the winner's name, or rejected with the reason."""

    def reply(outcome: Outcome) -> ClaimReply:
        if outcome.answer is not None:
            wire = _claimed_wire(call, outcome.answer["held"])
            return replies.claimed(wire, _assignment(call, wire, outcome) if body.with_task else None)
        return _one(call, outcome, with_task=body.with_task)

    return Pending(ClaimTask(call.path["task_id"], body.agent_id, _lease(body.lease_seconds)), reply)


def _lease(asked: int | None) -> int:
    """The lease to ask for; 0 leaves it to the task, and what is below 1 second can only be rejected."""
    return 0 if asked is None else asked if asked > 0 else -1


def _claimed_wire(call: Call, claim_id: str) -> dict[str, Any]:
    """The wire by which a claim was won: the first on a task's stream that speaks of it."""
    for record in call.services.store.events(call.topic, claim_id, limit=8):
        wire: dict[str, Any] = decode(record.wire)
        if wire["type"] == "task.claimed":
            return wire
    raise AssertionError("a claim that nothing tells of")


def _one(call: Call, outcome: Outcome, *, with_task: bool) -> ClaimReply:
    """The reply of one attempt, from the record that settles it."""
    for one in outcome.records:
        event = one.event.type
        if event == "task.claimed":
            wire = one.wire
            return replies.claimed(wire, _assignment(call, wire, outcome) if with_task else None)
        if event in _LOST:
            world, wire = call.services.coordinator.peek(call.topic), one.wire
            return _LOST[event](wire, _task(call, world, wire["payload"]["task_id"]).queue_id)
    raise AssertionError("an attempt that nothing settles")


def _task(call: Call, world: World, task_id: str) -> Task:
    live = world.tasks.get(task_id)
    if live is not None:
        return live
    row = call.services.store.row(call.topic, "task", task_id)
    if row is None:
        raise AssertionError("a task without a row")
    task: Task = entity(row)
    return task


def _assignment(call: Call, wire: dict[str, Any], outcome: Outcome) -> Assignment:
    stream = parse_stream(wire["stream"]["stream_id"])
    world, store = call.services.coordinator.peek(call.topic), call.services.store
    task = _task(call, world, stream.subject)
    at_hand = outcome.documents.get(task.content_sha256)
    document = document_of(at_hand) if at_hand is not None else task_document(store, call.topic, task)
    if document is None and outcome.repeated:
        raise answer_erased()
    said = note(store, call.topic, task, stream.attempt)
    notes = prior_context(store, call.topic, world, task, document)
    if not task.workflow_id:
        return assignment(task, stream.attempt, document, note=said, prior_context=notes)
    text = plan_text(store, call.topic, task.content_sha256)
    return assignment(
        task,
        stream.attempt,
        document,
        upstream=upstream(store, call.topic, world, task),
        workflow_input=text.given if text is not None else None,
        note=said,
        prior_context=notes,
    )


def claim_next(call: Call, body: Next) -> Pending:
    """Claim the next task of a queue, waiting for one if asked to; it comes with its input and brief."""
    queue = queue_id(call.path["queue_id"])
    command = ClaimNext(queue, body.agent_id, _lease(body.lease_seconds), body.count or 1)

    def reply(outcome: Outcome) -> ClaimNextReply:
        return next_reply(call, outcome, command, many=body.count is not None)

    return Pending(command, reply, wait_seconds=body.wait)


def next_reply(call: Call, outcome: Outcome, command: ClaimNext, *, many: bool = False) -> ClaimNextReply:
    if outcome.answer is not None:
        reason = outcome.answer.get("reason", "")
        if not reason:
            return replies.no_tasks(command.agent_id, command.queue_id)
        detail = outcome.answer.get("detail", "")
        step = replies.after_rejection(reason, detail, command.queue_id, command.agent_id)
        return replies.Rejected(agent_id=command.agent_id, reason=reason, detail=detail, next=step)
    first = _one(call, outcome, with_task=True)
    if not many or not isinstance(first, replies.Claimed):
        return first
    won = [one.wire for one in outcome.records if one.event.type == "task.claimed"]
    return replies.all_claimed([replies.claimed(wire, _assignment(call, wire, outcome)) for wire in won])


_CLAIMED = {
    "status": "claimed",
    "taskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP",
    "claimId": "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ",
    "agentId": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN",
    "leaseExpiresAt": "2026-05-07T20:15:00.000000001Z",
    "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
}
_AGENT_ID = _CLAIMED["agentId"]

ROUTES = [
    Route(
        "POST",
        "/tasks/{task_id}/claim",
        claim_task,
        AGENT,
        body=Claim,
        reply=ClaimReply,
        summary="Claim a task: exactly one agent wins, and every other learns who.",
        idempotent=True,
        example={"agentId": _AGENT_ID, "leaseSeconds": 600, "idempotencyKey": "claim-task_456-agt_123-001"},
        reply_example=_CLAIMED,
    ),
    Route(
        "POST",
        "/queues/{queue_id}/claim-next",
        claim_next,
        AGENT,
        body=Next,
        reply=ClaimNextReply,
        summary="Claim the next task of a queue, at once or as soon as there is one.",
        idempotent=True,
        example={"agentId": _AGENT_ID, "leaseSeconds": 600, "wait": 30},
    ),
]
