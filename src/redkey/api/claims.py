"""Claims: how agents get tasks, and everything that a holder does with one until it ends."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.api.artifacts import NewArtifact, add, check_artifacts
from redkey.api.call import Call
from redkey.api.fields import BATCH_LIMIT, Body, Id, IdempotencyKey, LeaseSeconds, Name, Slug, Text, Wait, given, wrong
from redkey.api.new_task import TaskId
from redkey.api.problem import Problem, describe
from redkey.api.route import AGENT, Route
from redkey.api.texts import keep
from redkey.commands.claims import (
    BlockClaim,
    ClaimNext,
    ClaimTask,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    StartClaim,
)
from redkey.commands.decision import Refused
from redkey.ledger.ports import Content
from redkey.readmodel import replies
from redkey.readmodel.plan_text import plan_text, task_document
from redkey.readmodel.replies import ClaimNextReply, ClaimReply, Ended, HeartbeatReply, HoldReply
from redkey.readmodel.rows import entity
from redkey.readmodel.task_view import Assignment, assignment
from redkey.readmodel.upstream import note, upstream
from redkey.readmodel.view import View
from redkey.reducers.entities import Task
from redkey.services.outcome import Outcome
from redkey.wire.decode import decode
from redkey.wire.ids import parse_stream
from redkey.wire.lint import SUMMARY_WORDS
from redkey.wire.names import queue_id
from redkey.wire.prose import words

ClaimId = Annotated[str, Meta(min_length=1, max_length=64)]
AskedLease = Annotated[
    int,
    Meta(ge=-(1 << 31), lt=1 << 31, description="5 seconds to 24 hours; any other is rejected, on the record."),
]


class Claim(Body, frozen=True, kw_only=True):
    """An agent asks for a task."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    idempotency_key: IdempotencyKey | None = None


class Next(Body, frozen=True, kw_only=True):
    """An agent asks for the next tasks of a queue that it may claim."""

    agent_id: Id
    lease_seconds: AskedLease | None = None
    count: Annotated[int, Meta(ge=1, le=100)] | None = None
    wait: Wait = 0
    idempotency_key: IdempotencyKey | None = None


class Following(Body, frozen=True, kw_only=True):
    """The claim that a busy worker asks for together with the end of the one before."""

    queue_id: Name
    lease_seconds: LeaseSeconds | None = None


class Completion(Body, frozen=True, kw_only=True):
    """What was done. Required outputs must have ready artifacts; the server checks that itself."""

    output: Any = None
    summary: Text = ""
    artifact_ids: Annotated[tuple[Id, ...], Meta(max_length=6)] = ()
    cost_usd: Annotated[float, Meta(ge=0, le=1_000_000)] = 0
    duration_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] | None = None
    semantic: Literal["pass", "fail", "skipped"] = "skipped"
    notes: Text = ""
    claim_next: Following | None = None


class BatchedCompletion(Completion, frozen=True, kw_only=True):
    """One completion of a batch."""

    claim_id: ClaimId


class Completions(Body, frozen=True, kw_only=True):
    """Up to 500 completions; each gets its own result."""

    claims: Annotated[list[BatchedCompletion], Meta(min_length=1, max_length=BATCH_LIMIT)]


class ClaimResult(View, frozen=True, kw_only=True):
    """What became of one claim of a batch: it was completed, or there is a problem with it."""

    claim: Ended | None = None
    problem: Problem | None = None


class ClaimResults(View, frozen=True, kw_only=True):
    """What became of each claim, in the order of the request."""

    items: tuple[ClaimResult, ...]


class Failure(Body, frozen=True, kw_only=True):
    """Why it could not be done."""

    reason: Annotated[str, Meta(min_length=1, max_length=65536)]
    kind: Literal["error", "timeout", "verification", "rejected"] = "error"
    claim_next: Following | None = None


class Block(Body, frozen=True, kw_only=True):
    """What stands in the way, and who or what could lift it."""

    reason: Annotated[str, Meta(min_length=1, max_length=65536)]
    blocker_type: Literal[
        "spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"
    ]
    suggested_resolution: Text = ""
    depends_on: Annotated[tuple[TaskId, ...], Meta(max_length=4)] = ()


class Plan(Body, frozen=True, kw_only=True):
    """How the holder means to go about it."""

    plan: dict[str, Any] | list[Any]


async def claim_task(call: Call, body: Claim) -> ClaimReply:
    """Claim a task: claimed, missed with the winner's name, or rejected with the reason."""
    task_id = call.path["task_id"]
    outcome = await call.submit(ClaimTask(task_id, body.agent_id, _lease(body.lease_seconds)))
    if outcome.answer is not None:
        return replies.claimed(_claimed_wire(call, outcome.answer["held"]))
    return _one(call, outcome, with_task=False)


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
        event = one.wire["type"]
        if event == "task.claimed":
            return replies.claimed(one.wire, _assignment(call, one.wire) if with_task else None)
        if event == "task.claim_missed":
            return replies.missed(one.wire, _task(call, one.wire["payload"]["task_id"]).queue_id)
        if event == "task.claim_rejected":
            return replies.rejected(one.wire, _task(call, one.wire["payload"]["task_id"]).queue_id)
    raise AssertionError("an attempt that nothing settles")


def _task(call: Call, task_id: str) -> Task:
    row = call.services.store.row(call.topic, "task", task_id)
    if row is None:
        raise AssertionError("a task without a row")
    task: Task = entity(row)
    return task


def _assignment(call: Call, wire: dict[str, Any]) -> Assignment:
    stream = parse_stream(wire["stream"]["stream_id"])
    task, store = _task(call, stream.subject), call.services.store
    document = task_document(store, call.topic, task)
    said = note(store, call.topic, task, stream.attempt)
    if not task.workflow_id:
        return assignment(task, stream.attempt, document, note=said)
    above = upstream(store, call.topic, call.services.coordinator.peek(call.topic), task)
    text = plan_text(store, call.topic, task.content_sha256)
    given_to_run = text.given if text is not None else None
    return assignment(task, stream.attempt, document, upstream=above, workflow_input=given_to_run, note=said)


async def claim_next(call: Call, body: Next) -> ClaimNextReply:
    """Claim the next task of a queue, waiting for one if asked to; it comes with its input and brief."""
    queue = queue_id(call.path["queue_id"])
    command = ClaimNext(queue, body.agent_id, _lease(body.lease_seconds), body.count or 1)
    outcome = await call.submit(command, wait_seconds=body.wait)
    return _next(call, outcome, command, many=body.count is not None)


def _next(call: Call, outcome: Outcome, command: ClaimNext, *, many: bool = False) -> ClaimNextReply:
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
    won = [one.wire for one in outcome.records if one.wire["type"] == "task.claimed"]
    return replies.all_claimed([replies.claimed(wire, _assignment(call, wire)) for wire in won])


def _hold_reply(outcome: Outcome) -> HoldReply:
    record = outcome.first(*replies.HOLD_EVENTS)
    if record is None:
        raise AssertionError("an act of a holder that nothing tells of")
    return replies.hold_reply(record.wire)


async def start_claim(call: Call) -> HoldReply:
    """Say that the work has begun."""
    return _hold_reply(await call.submit(StartClaim(call.path["claim_id"])))


async def release_claim(call: Call) -> HoldReply:
    """Give the task back: others may claim it at once."""
    return _hold_reply(await call.submit(ReleaseClaim(call.path["claim_id"])))


async def heartbeat_claim(call: Call) -> HeartbeatReply:
    """Keep the lease, and learn whether the task is still held."""
    outcome = await call.submit(HeartbeatClaim(call.path["claim_id"]))
    if outcome.answer is not None:
        return replies.heard(outcome.answer)
    return replies.extended(outcome.records[0].wire)


async def block_claim(call: Call, body: Block) -> HoldReply:
    """Say that the work cannot go on, and let those know who can lift the block."""
    ref, content = keep(call, given(body, "reason", "suggested_resolution"), queue_id=_queue(call))
    command = BlockClaim(call.path["claim_id"], body.blocker_type, ref, tuple(dict.fromkeys(body.depends_on)))
    return _hold_reply(await call.submit(command, (content,)))


def _queue(call: Call, claim_id: str = "") -> str:
    """The queue of the task that a claim holds, whose settings count; none when it holds nothing."""
    world = call.services.coordinator.peek(call.topic)
    task = world.tasks.get(world.claims.get(claim_id or call.path["claim_id"], ""))
    return task.queue_id if task is not None else ""


async def plan_claim(call: Call, body: Plan) -> HoldReply:
    """Tell how the holder means to go about it."""
    ref, content = keep(call, {"plan": body.plan}, queue_id=_queue(call))
    return _hold_reply(await call.submit(PlanClaim(call.path["claim_id"], ref), (content,)))


async def complete_claim(call: Call, body: Completion) -> Ended:
    """Complete a task, and ask for the next one in the same request if there is more to do."""
    return await _complete(call, call.path["claim_id"], body)


async def complete_claims(call: Call, body: Completions) -> ClaimResults:
    """Complete many tasks at once."""

    async def one(index: int, item: BatchedCompletion) -> ClaimResult:
        try:
            return ClaimResult(claim=await _complete(call, item.claim_id, item, f"/claims/{index}", str(index)))
        except Refused as refused:
            return ClaimResult(problem=describe(refused))

    # All of them arrive together, and so share a commit.
    return ClaimResults(items=tuple(await asyncio.gather(*(one(i, item) for i, item in enumerate(body.claims)))))


async def _complete(call: Call, claim_id: str, body: Completion, under: str = "", part: str = "") -> Ended:
    if (count := words(body.summary)) > SUMMARY_WORDS:
        text = f"the summary has at most {SUMMARY_WORDS} words; this has {count}"
        raise wrong("summary_words", f"{under}/summary", text)
    await check_artifacts(call, claim_id)
    contents: tuple[Content, ...] = ()
    ref = None
    said = given(body, "output", "summary", "notes")
    if said:
        ref, content = keep(call, said, queue_id=_queue(call, claim_id), under=under)
        contents = (content,)
    following = _following(call, claim_id, body.claim_next)
    command = CompleteClaim(
        claim_id,
        tuple(dict.fromkeys(body.artifact_ids)),
        ref,
        body.cost_usd,
        body.duration_seconds,
        body.semantic,
        claim_next=following,
    )
    return _ended(call, await call.submit(command, contents, part=part), following)


def _following(call: Call, claim_id: str, asked: Following | None) -> ClaimNext | None:
    """The claim that is asked for with the end of a hold: for the agent that holds."""
    if asked is None:
        return None
    world = call.services.coordinator.peek(call.topic)
    task = world.tasks.get(world.claims.get(claim_id, "") or world.expired.get(claim_id, ""))
    agent_id = "" if task is None else task.agent_id or task.expired_agent_id
    return ClaimNext(queue_id(asked.queue_id), agent_id, asked.lease_seconds or 0)


def _ended(call: Call, outcome: Outcome, following: ClaimNext | None) -> Ended:
    record = outcome.first("task.complete", "task.failed")
    if record is None:
        raise AssertionError("an end that nothing tells of")
    gate = outcome.first("gate.opened")
    return replies.ended(
        record.wire,
        gate.wire["payload"]["gate_id"] if gate is not None else "",
        _after(call, outcome, following, record.wire["payload"]["agent_id"]),
    )


def _after(call: Call, outcome: Outcome, asked: ClaimNext | None, agent_id: str) -> ClaimNextReply | None:
    if asked is None:
        return None
    # An answer that nothing records is not remembered, so a repeated request could not tell it from another.
    if outcome.next is None or outcome.next.answer is not None:
        return replies.no_tasks(agent_id, asked.queue_id)
    return _next(call, outcome.next, asked)


async def fail_claim(call: Call, body: Failure) -> Ended:
    """Say that a task could not be done; another attempt follows when its policy has one left."""
    claim_id = call.path["claim_id"]
    ref, content = keep(call, {"reason": body.reason}, queue_id=_queue(call))
    following = _following(call, claim_id, body.claim_next)
    outcome = await call.submit(FailClaim(claim_id, body.kind, ref, following), (content,))
    return _ended(call, outcome, following)


class ArtifactAdded(View, frozen=True, kw_only=True):
    """Where the artifact stands."""

    artifact_id: str
    event_id: str
    task_id: str
    name: Slug
    version: int
    sha256: str


async def add_artifact(call: Call, body: NewArtifact) -> ArtifactAdded:
    """Add an artifact to the attempt, or a new version of one."""
    wire = (await add(call, call.path["claim_id"], body, _queue(call))).wire
    payload = wire["payload"]
    return ArtifactAdded(
        artifact_id=payload["artifact_id"],
        event_id="evt_" + wire["wire_id"].removeprefix("wire_"),
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=payload["name"],
        version=payload["version"],
        sha256=payload["sha256"],
    )


_CLAIM_ID = "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ"
_AGENT_ID = "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"
_TASK_ID = "task_01JTMX9A2B3C4D5E6F7G8H9JKP"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_STALE = {409: "The claim holds nothing any more (lease_lost), or its task has ended (already_terminal)."}
_CLAIMED = {
    "status": "claimed",
    "taskId": _TASK_ID,
    "claimId": _CLAIM_ID,
    "agentId": _AGENT_ID,
    "leaseExpiresAt": "2026-05-07T20:15:00.000000001Z",
    "eventId": _EVENT_ID,
}


def _act(path: str, handler: Any, summary: str, **more: Any) -> Route:
    return Route(
        "POST",
        f"/claims/{{claim_id}}/{path}",
        handler,
        AGENT,
        **{"reply": HoldReply, "replies": _STALE, **more},
        summary=summary,
        idempotent=True,
    )


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
    Route(
        "POST",
        "/claims/complete",
        complete_claims,
        AGENT,
        body=Completions,
        reply=ClaimResults,
        summary="Complete up to 500 claims, each with its own result.",
        idempotent=True,
        example={"claims": [{"claimId": _CLAIM_ID, "summary": "Five sources found."}]},
    ),
    _act("start", start_claim, "Say that the work has begun."),
    _act("release", release_claim, "Give a task back."),
    _act("heartbeat", heartbeat_claim, "Keep the lease, and learn whether it holds.", reply=HeartbeatReply, replies={}),
    _act(
        "block",
        block_claim,
        "Say that the work cannot go on; whoever can lift the block is told.",
        body=Block,
        example={"reason": "The brief names no audience.", "blockerType": "spec_gap"},
    ),
    _act(
        "artifacts",
        add_artifact,
        "Add an artifact: inline, as content put before, or elsewhere by URI and hash.",
        body=NewArtifact,
        reply=ArtifactAdded,
        status=201,
        example={"name": "research_packet", "content": "Five sources ...", "mediaType": "text/markdown"},
    ),
    _act(
        "plan",
        plan_claim,
        "Tell how the holder means to go about it.",
        body=Plan,
        example={"plan": {"steps": ["Find sources", "Read them", "Write it up"]}},
    ),
    _act(
        "complete",
        complete_claim,
        "Complete a task; with claimNext the next claim comes in the same reply.",
        body=Completion,
        reply=Ended,
        example={"summary": "Five sources found.", "claimNext": {"queueId": "queue_podcast"}},
    ),
    _act(
        "fail",
        fail_claim,
        "Say that a task could not be done.",
        body=Failure,
        reply=Ended,
        example={"reason": "The source is behind a login.", "kind": "error"},
    ),
]
