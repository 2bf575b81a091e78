"""Holds: everything that the holder of a task does with it until its claim ends.

How an agent gets a task is `claims`; the fence that every act must pass is `redkey.commands.holds`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from redkey.commands.claims import (
    BlockClaim,
    ClaimNext,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    ReportProgress,
    ReportUsage,
    StartClaim,
    Used,
)
from redkey.commands.decision import wrong
from redkey.ledger.ports import Content
from redkey.readmodel import replies
from redkey.readmodel.meter import acting_agent
from redkey.reducers.spending import NANO, is_shared, left
from redkey.reducers.world import SECOND
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.artifacts import (
    add,
    check_artifacts,
    from_output,
    held_task,
    ready_artifacts,
    taken_in,
)
from redkey.services.use_cases.claims import next_reply
from redkey.services.use_cases.pieces import in_pieces
from redkey.services.use_cases.texts import keep, keep_then
from redkey.shapes import claims
from redkey.shapes.claims import (
    ArtifactAdded,
    BatchedCompletion,
    BlockReport,
    ClaimChanged,
    ClaimEnded,
    ClaimNextOutcome,
    ClaimResult,
    ClaimResults,
    ClaimSpending,
    Completion,
    Completions,
    FailureReport,
    Heartbeat,
    HolderActivity,
    HolderPlan,
    NewArtifact,
    NewProgress,
    NewUsage,
    ProgressReported,
)
from redkey.shapes.fields import set_fields
from redkey.shapes.problem import Problem
from redkey.wire.events import (
    GateOpened,
    Ref,
    TaskComplete,
    TaskFailed,
    TaskLeaseExtended,
    TaskProgress,
    TaskStalled,
    TaskUsageReported,
)
from redkey.wire.ids import event_id
from redkey.wire.lint import SUMMARY_WORDS
from redkey.wire.names import queue_id
from redkey.wire.prose import words


def _changed(outcome: Outcome, place: Place) -> ClaimChanged:
    for one in outcome.records:
        payload = one.event.payload
        if isinstance(payload, replies.Held):
            return replies.changed(one.event, payload)
    raise AssertionError("an act of a holder without a record")


@use_case(claims.START_CLAIM)
def start_claim(caller: Caller, claim_id: str) -> Pending[ClaimChanged]:
    """Report that the work has begun."""
    return Pending(StartClaim(claim_id), _changed)


@use_case(claims.RELEASE_CLAIM)
def release_claim(caller: Caller, claim_id: str) -> Pending[ClaimChanged]:
    """Give the task back: others may claim it at once."""
    return Pending(ReleaseClaim(claim_id), _changed)


@use_case(claims.HEARTBEAT_CLAIM)
def heartbeat_claim(caller: Caller, claim_id: str, activity: HolderActivity) -> Pending[Heartbeat]:
    """Keep the lease, and learn whether the task is still held."""
    return Pending(HeartbeatClaim(claim_id, activity.idle_seconds), _heard)


def _heard(outcome: Outcome, place: Place) -> Heartbeat:
    if outcome.answer is not None:
        return replies.heard(outcome.answer)
    record = outcome.records[0].event
    if type(record.payload) is TaskStalled:
        return replies.stalled(record)
    if type(record.payload) is not TaskLeaseExtended:
        raise AssertionError("a heartbeat that extended nothing")
    return replies.extended(record, record.payload)


@use_case(claims.BLOCK_CLAIM)
def block_claim(caller: Caller, claim_id: str, report: BlockReport) -> Pending[ClaimChanged]:
    """Report that the work cannot continue, and notify those who can remove the block."""
    ref, content = keep(caller, set_fields(report, "reason", "suggested_resolution"), claim_id=claim_id)
    command = BlockClaim(claim_id, report.blocker_type, ref, tuple(dict.fromkeys(report.depends_on)))
    return Pending(command, _changed, (content,))


@use_case(claims.PLAN_CLAIM)
def plan_claim(
    caller: Caller, claim_id: str, plan: HolderPlan
) -> Pending[ClaimChanged] | Coroutine[Any, Any, Pending[ClaimChanged]]:
    """Describe how the holder will do the task."""

    def then(ref: Ref, content: Content) -> Pending[ClaimChanged]:
        return Pending(PlanClaim(claim_id, ref), _changed, (content,))

    return keep_then(caller, {"plan": plan.plan}, then, claim_id=claim_id)


@use_case(claims.REPORT_USAGE)
def report_usage(caller: Caller, claim_id: str, report: NewUsage) -> Pending[ClaimSpending]:
    """Report what model calls used under a claim, before it ends; the reply says what the caps leave."""
    used = tuple(Used(one.model, one.cost_usd, one.input_tokens, one.output_tokens) for one in report.usage)

    def reply(outcome: Outcome, place: Place) -> ClaimSpending:
        world, told = place.world, outcome.answer
        if told is None:
            # The reply follows from its records: the claim may have ended since.
            first = outcome.records[0].event
            told = {"task_id": replies.subject(first), "agent_id": acting_agent(first)}
        payloads = [one.event.payload for one in outcome.records]
        reserved = any(type(one) is TaskUsageReported and one.reserved_usd is not None for one in payloads)
        task = place.task(told["task_id"])
        least = left(world, task, world.agents[told["agent_id"]], world.timestamp)
        return ClaimSpending(
            task_id=task.task_id,
            claim_id=claim_id,
            cost_usd=task.nano_usd / NANO,
            left_usd=None if least is None else least[0] / NANO,
            cap="" if least is None else least[1],
            may_call=report.reserve_usd is None or reserved or not is_shared(world),
            event_id=outcome.event_id if outcome.records else "",
        )

    return Pending(ReportUsage(claim_id, used, report.reserve_usd), reply)


@use_case(claims.REPORT_PROGRESS)
def report_progress(caller: Caller, claim_id: str, report: NewProgress) -> Pending[ProgressReported]:
    """Report how far the work is; a claim has one such record each second at most."""
    if not report.text.strip() and report.percent is None:
        raise wrong("progress_empty", "/text", "say a text, a percentage, or both")
    ref: Ref | None = None
    contents: tuple[Content, ...] = ()
    if report.text.strip():
        ref, content = keep(caller, {"text": report.text}, claim_id=claim_id)
        contents = (content,)

    def reply(outcome: Outcome, place: Place) -> ProgressReported:
        if outcome.answer is None:
            record = next(one.event for one in outcome.records if type(one.event.payload) is TaskProgress)
            task_id, recorded = replies.subject(record), event_id(record.wire_id)
            return ProgressReported(task_id=task_id, claim_id=claim_id, recorded=True, event_id=recorded)
        answer, wait = outcome.answer, outcome.answer.get("wait_nanoseconds")
        return ProgressReported(
            task_id=answer["task_id"],
            claim_id=claim_id,
            recorded=False,
            reason=answer["reason"],
            retry_after_seconds=None if wait is None else wait / SECOND,
        )

    return Pending(ReportProgress(claim_id, report.percent, ref), reply, contents)


@use_case(claims.COMPLETE_CLAIM)
def complete_claim(
    caller: Caller, claim_id: str, done: Completion
) -> Pending[ClaimEnded] | Coroutine[Any, Any, Pending[ClaimEnded]]:
    """Complete a task, and ask for the next one in the same request if there is more to do."""
    return _ending(caller, claim_id, done)


@use_case(claims.COMPLETE_CLAIMS)
async def complete_claims(caller: Caller, batch: Completions) -> ClaimResults:
    """Complete many tasks at once."""

    def begin(index: int, item: BatchedCompletion) -> Pending[ClaimEnded] | Coroutine[Any, Any, Pending[ClaimEnded]]:
        return _ending(caller, item.claim_id, item, f"/claims/{index}", str(index))

    def show(claim: ClaimEnded | None, problem: Problem | None) -> ClaimResult:
        return ClaimResult(claim=claim, problem=problem)

    return ClaimResults(items=await in_pieces(caller, batch.completions, begin, show))


def _ending(
    caller: Caller, claim_id: str, done: Completion, under: str = "", part: str = ""
) -> Pending[ClaimEnded] | Coroutine[Any, Any, Pending[ClaimEnded]]:
    complete = _complete if ready_artifacts(caller, claim_id) else _completion
    return complete(caller, claim_id, done, under, part)


async def _complete(
    caller: Caller, claim_id: str, done: Completion, under: str = "", part: str = ""
) -> Pending[ClaimEnded]:
    """Complete after the artifacts are checked: reading them takes time."""
    unseen = await check_artifacts(caller, claim_id)
    pending = _completion(caller, claim_id, done, under, part, unseen)
    return pending if isinstance(pending, Pending) else await pending


def _completion(
    caller: Caller, claim_id: str, done: Completion, under: str = "", part: str = "", unseen: tuple[str, ...] = ()
) -> Pending[ClaimEnded] | Coroutine[Any, Any, Pending[ClaimEnded]]:
    if (count := words(done.summary)) > SUMMARY_WORDS:
        text = f"the summary has at most {SUMMARY_WORDS} words; this has {count}"
        raise wrong("summary_words", f"{under}/summary", text)

    def then(ref: Ref | None, *contents: Content) -> Pending[ClaimEnded]:
        following = _following(caller, claim_id, done.claim_next)
        added = [taken_in(caller, claim_id, one, f"{under}/artifacts/{i}") for i, one in enumerate(done.artifacts)]
        outputs = [taken_in(caller, claim_id, one, f"{under}/output") for one in from_output(caller, claim_id, done)]
        command = CompleteClaim(
            claim_id,
            tuple(dict.fromkeys(done.artifact_ids)),
            ref,
            done.cost_usd,
            done.duration_seconds,
            done.semantic,
            done.attempts,
            claim_next=following,
            artifacts=tuple(one for one, _ in added),
            outputs=tuple(one for one, _ in outputs),
            unseen=unseen,
        )
        brought = (*contents, *(content for _, more in (*added, *outputs) for content in more))
        extensions = caller.extended(done.extensions, under) if part else None
        return Pending(
            command,
            lambda outcome, place: _ended(outcome, place, following),
            brought,
            part=part,
            extensions=extensions,
        )

    said = set_fields(done, "output", "summary", "notes")
    return keep_then(caller, said, then, claim_id=claim_id, under=under) if said else then(None)


def _following(caller: Caller, claim_id: str, asked: claims.ClaimNext | None) -> ClaimNext | None:
    """Return the claim that is requested with the end of a hold: for the agent that holds."""
    if asked is None:
        return None
    task = held_task(caller, claim_id)
    agent_id = "" if task is None else task.agent_id or task.expired_agent_id
    return ClaimNext(queue_id(asked.queue_id), agent_id, asked.lease_seconds or 0)


def _ended(outcome: Outcome, place: Place, following: ClaimNext | None) -> ClaimEnded:
    for one in outcome.records:
        payload = one.event.payload
        if isinstance(payload, TaskComplete | TaskFailed):
            after = _after(outcome, place, following, payload.agent_id or "")
            return replies.ended(one.event, payload, _gate(outcome), after)
    raise AssertionError("an end of a hold without a record")


def _gate(outcome: Outcome) -> str:
    """Return the gate that the completion opened; empty if there is none."""
    for one in outcome.records:
        payload = one.event.payload
        if type(payload) is GateOpened:
            return payload.gate_id
    return ""


def _after(outcome: Outcome, place: Place, asked: ClaimNext | None, agent_id: str) -> ClaimNextOutcome | None:
    if asked is None:
        return None
    # A reply that is not recorded is not remembered, so a repeat could not be distinguished from a new request.
    if outcome.next is None or outcome.next.answer is not None:
        return replies.no_tasks(agent_id, asked.queue_id)
    return next_reply(outcome.next, place, asked)


@use_case(claims.FAIL_CLAIM)
def fail_claim(caller: Caller, claim_id: str, report: FailureReport) -> Pending[ClaimEnded]:
    """Report that a task could not be done; another attempt follows if its policy has one left."""
    ref, content = keep(caller, {"reason": report.reason}, claim_id=claim_id)
    following = _following(caller, claim_id, report.claim_next)
    command = FailClaim(claim_id, report.kind, ref, following)
    return Pending(command, lambda outcome, place: _ended(outcome, place, following), (content,))


@use_case(claims.ADD_ARTIFACT)
def add_artifact(caller: Caller, claim_id: str, new: NewArtifact) -> Pending[ArtifactAdded]:
    """Add an artifact to the attempt, or a new version of one."""
    return add(caller, claim_id, new)
