"""Holds: everything that the holder of a task does with it until its claim ends.

How a task is got is `claims`'s; the fence that every act must pass is `redkey.commands.holds`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.api.artifacts import NewArtifact, add, check_artifacts, ready_artifacts
from redkey.api.call import Call, Pending
from redkey.api.claims import next_reply
from redkey.api.fields import BATCH_LIMIT, Body, Id, LeaseSeconds, Name, Slug, Text, given, wrong
from redkey.api.new_task import TaskId
from redkey.api.pieces import in_pieces
from redkey.api.texts import keep, keep_then
from redkey.commands.claims import (
    BlockClaim,
    ClaimNext,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    StartClaim,
)
from redkey.commands.decision import Refused
from redkey.http.problems import Problem, describe
from redkey.http.route import AGENT, Route
from redkey.ledger.ports import Content
from redkey.readmodel import replies
from redkey.readmodel.replies import ClaimNextReply, Ended, HeartbeatReply, HoldReply
from redkey.readmodel.view import View
from redkey.services.outcome import Outcome
from redkey.wire.events import Ref
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.lint import SUMMARY_WORDS
from redkey.wire.names import queue_id
from redkey.wire.prose import words

ClaimId = Annotated[str, Meta(min_length=1, max_length=64)]


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
    # How many tries it took until the work passed its verification.
    attempts: Annotated[int, Meta(ge=1, le=999)] = 1
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


def _hold_reply(outcome: Outcome) -> HoldReply:
    record = outcome.first(*replies.HOLD_EVENTS)
    if record is None:
        raise AssertionError("an act of a holder that nothing tells of")
    return replies.hold_reply(record.wire)


def start_claim(call: Call) -> Pending:
    """Say that the work has begun."""
    return Pending(StartClaim(call.path["claim_id"]), _hold_reply)


def release_claim(call: Call) -> Pending:
    """Give the task back: others may claim it at once."""
    return Pending(ReleaseClaim(call.path["claim_id"]), _hold_reply)


def heartbeat_claim(call: Call) -> Pending:
    """Keep the lease, and learn whether the task is still held."""
    return Pending(HeartbeatClaim(call.path["claim_id"]), _heartbeat_reply)


def _heartbeat_reply(outcome: Outcome) -> HeartbeatReply:
    if outcome.answer is not None:
        return replies.heard(outcome.answer)
    return replies.extended(outcome.records[0].wire)


def block_claim(call: Call, body: Block) -> Pending:
    """Say that the work cannot go on, and let those know who can lift the block."""
    ref, content = keep(call, given(body, "reason", "suggested_resolution"), claim_id=call.path["claim_id"])
    command = BlockClaim(call.path["claim_id"], body.blocker_type, ref, tuple(dict.fromkeys(body.depends_on)))
    return Pending(command, _hold_reply, (content,))


def plan_claim(call: Call, body: Plan) -> Pending | Coroutine[Any, Any, Pending]:
    """Tell how the holder means to go about it."""
    claim_id = call.path["claim_id"]

    def then(ref: Ref, content: Content) -> Pending:
        return Pending(PlanClaim(claim_id, ref), _hold_reply, (content,))

    return keep_then(call, {"plan": body.plan}, then, claim_id=claim_id)


def complete_claim(call: Call, body: Completion) -> Pending | Coroutine[Any, Any, Pending]:
    """Complete a task, and ask for the next one in the same request if there is more to do."""
    claim_id = call.path["claim_id"]
    if ready_artifacts(call, claim_id):
        return _complete(call, claim_id, body)
    return _completion(call, claim_id, body)


async def complete_claims(call: Call, body: Completions) -> ClaimResults:
    """Complete many tasks at once."""

    async def one(index: int, item: BatchedCompletion) -> ClaimResult:
        try:
            pending = await _complete(call, item.claim_id, item, f"/claims/{index}", str(index))
            return ClaimResult(claim=await call.settled(pending))
        except Refused as refused:
            call.answers_beside_records()
            return ClaimResult(problem=describe(refused))

    return ClaimResults(items=await in_pieces(call, body.claims, one, ClaimResult))


async def _complete(call: Call, claim_id: str, body: Completion, under: str = "", part: str = "") -> Pending:
    """A completion whose artifacts are checked first: reading them takes time."""
    await check_artifacts(call, claim_id)
    pending = _completion(call, claim_id, body, under, part)
    return pending if isinstance(pending, Pending) else await pending


def _completion(
    call: Call, claim_id: str, body: Completion, under: str = "", part: str = ""
) -> Pending | Coroutine[Any, Any, Pending]:
    if (count := words(body.summary)) > SUMMARY_WORDS:
        text = f"the summary has at most {SUMMARY_WORDS} words; this has {count}"
        raise wrong("summary_words", f"{under}/summary", text)

    def then(ref: Ref | None, *contents: Content) -> Pending:
        following = _following(call, claim_id, body.claim_next)
        command = CompleteClaim(
            claim_id,
            tuple(dict.fromkeys(body.artifact_ids)),
            ref,
            body.cost_usd,
            body.duration_seconds,
            body.semantic,
            body.attempts,
            claim_next=following,
        )
        return Pending(command, lambda outcome: _ended(call, outcome, following), contents, part=part)

    said = given(body, "output", "summary", "notes")
    return keep_then(call, said, then, claim_id=claim_id, under=under) if said else then(None)


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
    wire = record.wire
    return replies.ended(
        wire,
        gate.wire["payload"]["gate_id"] if gate is not None else "",
        _after(call, outcome, following, wire["payload"]["agent_id"]),
    )


def _after(call: Call, outcome: Outcome, asked: ClaimNext | None, agent_id: str) -> ClaimNextReply | None:
    if asked is None:
        return None
    # An answer that nothing records is not remembered, so a repeated request could not tell it from another.
    if outcome.next is None or outcome.next.answer is not None:
        return replies.no_tasks(agent_id, asked.queue_id)
    return next_reply(call, outcome.next, asked)


def fail_claim(call: Call, body: Failure) -> Pending:
    """Say that a task could not be done; another attempt follows when its policy has one left."""
    claim_id = call.path["claim_id"]
    ref, content = keep(call, {"reason": body.reason}, claim_id=claim_id)
    following = _following(call, claim_id, body.claim_next)
    command = FailClaim(claim_id, body.kind, ref, following)
    return Pending(command, lambda outcome: _ended(call, outcome, following), (content,))


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
    wire = (await add(call, call.path["claim_id"], body)).wire
    payload = wire["payload"]
    return ArtifactAdded(
        artifact_id=payload["artifact_id"],
        event_id=event_id(wire["wire_id"]),
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=payload["name"],
        version=payload["version"],
        sha256=payload["sha256"],
    )


_CLAIM_ID = "clm_01JTMX9A2B3C4D5E6F7G8H9JKQ"
_STALE = {409: "The claim holds nothing any more (lease_lost), or its task has ended (already_terminal)."}


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
        "/claims/complete",
        complete_claims,
        AGENT,
        body=Completions,
        reply=ClaimResults,
        repeats="parts",
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
