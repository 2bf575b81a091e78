"""Tools of an agent at work: get a task, report on it, and end it."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from redkey.client import AsyncRedKey
from redkey.errors import AlreadyTerminal, ClientError, LeaseLost, NotFound
from redkey.mcp.results import (
    ArtifactInfo,
    ArtifactReply,
    Claim,
    ClaimReply,
    Ended,
    EndedReply,
    Json,
    Reported,
    ReportedReply,
    Work,
)
from redkey.mcp.session import AgentSession, HeldClaim, Sessions
from redkey.shapes.claims import Claimed, ClaimNextOutcome, ClaimOutcome, Missed, NoTasks, Rejected
from redkey.shapes.tasks import Artifact

# Hosts abort a tool call after a minute or less.
LONGEST_WAIT_SECONDS = 50.0
# How long one request of a wait lasts; after each one the host gets a progress notification.
_POLL_SECONDS = 5.0
# Longer text is saved to a file instead of filling the model's context.
_INLINE_BYTES = 64 * 1024

ClaimId = Annotated[
    str, Field(description="The claim, as wait_for_task returned it. Leave it out when you hold exactly one task.")
]
Extensions = Annotated[
    dict[str, Any] | None, Field(description="Data for the record beside the fields, under names such as `redkey.x`.")
]
Queue = Annotated[str, Field(description="The queue. Leave it out for the default queue of this agent.")]


class WorkTools:
    """The tools of a holder."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def wait_for_task(
        self,
        ctx: Context[Any, Any],
        queue: Queue = "",
        wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS, description="How long to wait.")] = 50,
        extensions: Extensions = None,
    ) -> ClaimReply:
        """Get the next task of the shared queue and hold it. Waits up to 50 seconds for one.

        Exactly one agent gets each task. `claimed`: the task is yours; do it, then call complete_task, fail_task or
        block_task. `nothing_yet`: normal; call this again. You need not renew anything: the lease is renewed for you.
        """
        async with self._sessions.open(ctx) as session:
            left_over = session.left_over()
            if left_over is not None:
                return ClaimReply(claim=_claimed(left_over, "You held this task when your last process ended. "))
            queue = queue or session.queue
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + wait_seconds
            while True:
                left = ends_at - loop.time()
                outcome = await session.claim_next(queue, max(0.0, min(left, _POLL_SECONDS)), extensions)
                if not isinstance(outcome, NoTasks) or left <= _POLL_SECONDS:
                    return ClaimReply(claim=await _claim(session.client, outcome))
                waited = wait_seconds - left + _POLL_SECONDS
                await ctx.report_progress(waited, wait_seconds, f"Waiting for a task on {queue}.")

    async def claim_task(
        self,
        ctx: Context[Any, Any],
        task_id: Annotated[str, Field(description="The task to claim.")],
        extensions: Extensions = None,
    ) -> ClaimReply:
        """Claim one task by its id. If another agent was faster, the result names it: do not try that task again."""
        async with self._sessions.open(ctx) as session:
            return ClaimReply(claim=await _claim(session.client, await session.claim(task_id, extensions)))

    async def complete_task(
        self,
        ctx: Context[Any, Any],
        summary: Annotated[str, Field(description="What was done, in one or two sentences.")] = "",
        output: Annotated[Json, Field(description="The result as JSON or text.")] = None,
        notes: Annotated[str, Field(description="What the agent of the next task should know.")] = "",
        cost_usd: Annotated[float | None, Field(ge=0, description="What it cost in US dollars, if known.")] = None,
        claim_id: ClaimId = "",
        extensions: Extensions = None,
    ) -> EndedReply:
        """Complete the task that you hold. Add its required_outputs with add_artifact first."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            done = await _end(
                session,
                held,
                session.client.claims.complete(
                    held.claim_id,
                    output=output,
                    summary=summary or None,
                    notes=notes or None,
                    cost_usd=cost_usd,
                    extensions=extensions,
                ),
            )
            step = (
                f"An approver must decide on it ({done.gate_id})."
                if done.gate_id
                else "Get the next one: wait_for_task."
            )
            ended = Ended(
                task_id=held.task_id, state="completed", event_id=done.event_id, gate_id=done.gate_id, next_step=step
            )
            return EndedReply(task=ended)

    async def fail_task(
        self,
        ctx: Context[Any, Any],
        reason: Annotated[str, Field(min_length=1, description="Why the task failed.")],
        kind: Annotated[
            Literal["error", "timeout", "verification", "rejected"],
            Field(description="`rejected` ends the task; the others allow another attempt."),
        ] = "error",
        claim_id: ClaimId = "",
        extensions: Extensions = None,
    ) -> EndedReply:
        """Report that the task you hold failed. To ask a question instead, use block_task."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            failed = session.client.claims.fail(held.claim_id, reason, kind=kind, extensions=extensions)
            done = await _end(session, held, failed)
            more = bool(done.retry)
            step = "Another attempt follows, by any agent." if more else "No attempt is left."
            ended = Ended(
                task_id=held.task_id,
                state="failed",
                event_id=done.event_id,
                another_attempt=more,
                next_step=f"{step} Get the next one: wait_for_task.",
            )
            return EndedReply(task=ended)

    async def block_task(
        self,
        ctx: Context[Any, Any],
        question: Annotated[str, Field(min_length=1, description="What blocks the work: the question to answer.")],
        kind: Annotated[
            Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"],
            Field(description="The kind of block."),
        ] = "ambiguity",
        suggestion: Annotated[str, Field(description="What would resolve it.")] = "",
        depends_on: Annotated[list[str] | None, Field(description="Tasks that must complete first.")] = None,
        claim_id: ClaimId = "",
        extensions: Extensions = None,
    ) -> EndedReply:
        """Ask people a question that the task you hold depends on, and release the task until it is answered. The
        answer comes with the next claim of the task, by you or by another agent."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            blocking = session.client.claims.block(
                held.claim_id,
                question,
                blocker_type=kind,
                suggested_resolution=suggestion or None,
                depends_on=depends_on,
                extensions=extensions,
            )
            done = await _end(session, held, blocking)
            step = "The question is in the inbox. Continue with another task: wait_for_task."
            ended = Ended(task_id=held.task_id, state="blocked", event_id=done.event_id, next_step=step)
            return EndedReply(task=ended)

    async def release_task(
        self, ctx: Context[Any, Any], claim_id: ClaimId = "", extensions: Extensions = None
    ) -> EndedReply:
        """Release the task that you hold: other agents may claim it at once."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            done = await _end(session, held, session.client.claims.release(held.claim_id, extensions=extensions))
            step = "Stop working on it. Get another one: wait_for_task."
            ended = Ended(task_id=held.task_id, state="released", event_id=done.event_id, next_step=step)
            return EndedReply(task=ended)

    async def report_progress(
        self,
        ctx: Context[Any, Any],
        message: Annotated[
            str, Field(min_length=1, max_length=2000, description="How the work is going, in one sentence.")
        ],
        percent: Annotated[float | None, Field(ge=0, le=100, description="How much is done, in percent.")] = None,
        claim_id: ClaimId = "",
        extensions: Extensions = None,
    ) -> ReportedReply:
        """Report progress of the task you hold, for the people who watch it. It also shows that you are working."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            whole = None if percent is None else round(percent)
            send = partial(session.client.claims.report_progress, held.claim_id, message)
            report = await send(percent=whole, extensions=extensions)
            if report.retry_after_seconds is not None:
                # The last report is the one that views show, so wait and record it.
                await asyncio.sleep(report.retry_after_seconds)
                report = await send(percent=whole, extensions=extensions)
            return ReportedReply(report=Reported(task_id=held.task_id, recorded=report.recorded))

    async def add_artifact(
        self,
        ctx: Context[Any, Any],
        name: Annotated[
            str, Field(description="Lower-case letters, digits, dots and dashes; a required output's name.")
        ],
        content: Annotated[str | None, Field(description="Its text.")] = None,
        content_base64: Annotated[str | None, Field(description="Its bytes as base64, instead of text.")] = None,
        path: Annotated[
            str | None, Field(description="A file that contains it, instead of text. Local servers only.")
        ] = None,
        media_type: Annotated[str | None, Field(description="As in text/markdown.")] = None,
        claim_id: ClaimId = "",
        extensions: Extensions = None,
    ) -> ArtifactReply:
        """Record an output of the task you hold under a name: text, bytes, or a file."""
        if sum(source is not None for source in (content, content_base64, path)) != 1:
            raise ToolError("Give exactly one of content, content_base64 and path.")
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            data = await asyncio.to_thread(_read, session, content, content_base64, path)
            stored = await session.client.content.put(data)
            if media_type is None and content is not None:
                media_type = "text/plain"
            added = await session.client.claims.add_artifact(
                held.claim_id, name, sha256=stored.sha256, media_type=media_type, extensions=extensions
            )
            info = ArtifactInfo.of(added, added.task_id, bytes=stored.bytes, media_type=media_type or "")
            return ArtifactReply(artifact=info)

    async def get_artifact(
        self,
        ctx: Context[Any, Any],
        task_id: Annotated[str, Field(description="The task that produced it.")],
        name: Annotated[str, Field(description="Its name or its id.")],
        save_to: Annotated[str | None, Field(description="A file to write it to. Local servers only.")] = None,
    ) -> ArtifactReply:
        """Read an artifact of a task. Short text is returned as `content`; anything else is saved to a file."""
        async with self._sessions.open(ctx) as session:
            task = await session.client.tasks.get(task_id)
            artifact = next((entry for entry in task.artifacts if name in (entry.name, entry.artifact_id)), None)
            if artifact is None:
                names = ", ".join(entry.name for entry in task.artifacts) or "none"
                raise ToolError(f"The task has no artifact {name[:64]!r}. It has: {names}.")
            info = ArtifactInfo.of(artifact, task_id, bytes=artifact.bytes, media_type=artifact.media_type)
            if save_to is not None:
                info.saved_to = str(await _save(session, artifact, save_to))
            else:
                info.content = await _text(session.client, artifact)
            return ArtifactReply(artifact=info)


async def _claim(client: AsyncRedKey, outcome: ClaimNextOutcome | ClaimOutcome) -> Claim:
    if isinstance(outcome, Claimed):
        # `started` only informs those who watch, so an error is ignored; acts on the claim report errors later.
        with suppress(ClientError):
            await client.claims.start(outcome.claim_id)
        return _claimed(outcome)
    if isinstance(outcome, NoTasks):
        return Claim(
            outcome="nothing_yet", next_step="Nothing to do right now. This is normal: call wait_for_task again."
        )
    if isinstance(outcome, Missed):
        winner = await _name_of(client, outcome.winning_agent_id)
        if outcome.reason == "task_completed":
            step = f"{winner} has already completed this task. Do not try it again; call wait_for_task for another one."
        else:
            step = f"{winner} has this task. Do not try it again; call wait_for_task for another one."
        return Claim(outcome="missed", won_by=winner, next_step=step)
    return Claim(outcome="rejected", next_step=_after_rejection(outcome))


def _claimed(claimed: Claimed, before: str = "") -> Claim:
    if claimed.task is None:
        raise AssertionError("the claim has no task")
    return Claim(
        outcome="claimed",
        claim_id=claimed.claim_id,
        task=Work.of(claimed.task),
        lease_expires_at=claimed.lease_expires_at,
        next_step=f"{before}The task is yours. Do it, then call complete_task, fail_task or block_task.",
    )


async def _name_of(client: AsyncRedKey, agent_id: str) -> str:
    try:
        return f"{(await client.agents.get(agent_id)).slug} ({agent_id})"
    except NotFound:
        return agent_id


def _after_rejection(rejected: Rejected) -> str:
    agent, detail = rejected.agent_id, rejected.detail
    match rejected.reason:
        case "missing_role":
            step = f"This agent lacks {detail}. Ask a person to run `redkey role grant {detail} {agent}`."
        case "inactive_agent":
            step = f"This agent is not active. Ask a person to run `redkey agent activate {agent}`."
        case "policy":
            step = "This agent holds as many tasks as it may. Finish or release one first."
        case "dependency_unsatisfied":
            step = "Other tasks must be completed before this one. See explain_task."
        case "task_not_available":
            step = f"This task cannot be claimed now ({detail}). See explain_task."
        case reason:
            step = f"This agent may not claim it ({reason} {detail})."
    return f"{step} Do not retry it now; wait_for_task gives you what you may claim."


async def _end(session: AgentSession, held: HeldClaim, ending: Any) -> Any:
    """Await the act that ends a hold, and record its end or its loss."""
    try:
        done = await ending
    except (LeaseLost, AlreadyTerminal) as lost:
        session.ended(held.claim_id)
        raise ToolError(
            f"You no longer hold {held.task_id}: {lost.detail} Your work on it has no effect. Stop working on it "
            "and call wait_for_task for another one."
        ) from lost
    session.ended(held.claim_id)
    return done


def _read(session: AgentSession, content: str | None, packed: str | None, path: str | None) -> bytes | Path:
    if content is not None:
        return content.encode()
    if packed is not None:
        try:
            return b64decode(packed, validate=True)
        except ValueError:
            raise ToolError("content_base64 is not base64. Send text as content instead.") from None
    file = _local(session, path or "")
    if not file.is_file():
        raise ToolError(f"There is no file {file}. Give the path of a file, or send its text as content.")
    return file


def _local(session: AgentSession, path: str) -> Path:
    if session.directory is None:
        raise ToolError("This server runs on another machine and cannot read your files: use content instead.")
    return session.directory / Path(path).expanduser()


async def _save(session: AgentSession, artifact: Artifact, save_to: str) -> Path:
    file = _local(session, save_to)
    if file.exists():
        raise ToolError(f"{file} already exists; nothing was written. Name another file.")
    if not file.parent.is_dir():
        raise ToolError(f"There is no directory {file.parent}. Create it, or name another file.")
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("wb") as output:
            async for piece in session.client.content.pieces(artifact.sha256):
                output.write(piece)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file


async def _text(client: AsyncRedKey, artifact: Artifact) -> str:
    if artifact.bytes > _INLINE_BYTES:
        raise ToolError(f"{artifact.name} has {artifact.bytes:,} bytes: name a file in save_to to get it.")
    try:
        return (await client.content.get(artifact.sha256)).decode()
    except UnicodeDecodeError:
        raise ToolError(f"{artifact.name} is not text: name a file in save_to to get it.") from None
