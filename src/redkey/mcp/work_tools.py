"""Tools of an agent at work: get a task, report on it, and end it."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from contextlib import suppress
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

# Hosts give up on a tool after a minute or less.
LONGEST_WAIT_SECONDS = 50.0
# How long one request of a wait lasts; between two of them the host hears of progress.
_POLL_SECONDS = 5.0
# Longer text is saved to a file instead of filling the model's context.
_INLINE_BYTES = 64 * 1024

ClaimId = Annotated[
    str, Field(description="The claim, as wait_for_task gave it. Leave it out when you hold exactly one task.")
]
Queue = Annotated[str, Field(description="The queue. Leave it out for the default queue of this agent.")]


class WorkTools:
    """Everything that a holder does."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def wait_for_task(
        self,
        ctx: Context[Any, Any],
        queue: Queue = "",
        wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS, description="How long to wait.")] = 50,
    ) -> ClaimReply:
        """Get the next task of the shared queue and hold it. Waits up to 50 seconds for one.

        Exactly one agent gets each task. `claimed`: the task is yours; do it, then call complete_task, fail_task or
        block_task. `nothing_yet`: normal; call this again. You need not renew anything: the lease is kept for you.
        """
        async with self._sessions.open(ctx) as session:
            waiting = session.left_over()
            if waiting is not None:
                return ClaimReply(claim=_claimed(waiting, "You held this task when your last process ended. "))
            queue = queue or session.queue
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + wait_seconds
            while True:
                left = ends_at - loop.time()
                found = await session.claim_next(queue, max(0.0, min(left, _POLL_SECONDS)))
                if not isinstance(found, NoTasks) or left <= _POLL_SECONDS:
                    return ClaimReply(claim=await _claim(session.client, found))
                done = wait_seconds - left + _POLL_SECONDS
                await ctx.report_progress(done, wait_seconds, f"Waiting for a task on {queue}.")

    async def claim_task(
        self, ctx: Context[Any, Any], task_id: Annotated[str, Field(description="The task to claim.")]
    ) -> ClaimReply:
        """Claim one task by its id. If another agent was faster, the result names it: do not try that task again."""
        async with self._sessions.open(ctx) as session:
            return ClaimReply(claim=await _claim(session.client, await session.claim(task_id)))

    async def complete_task(
        self,
        ctx: Context[Any, Any],
        summary: Annotated[str, Field(description="What was done, in one or two sentences.")] = "",
        output: Annotated[Json, Field(description="The result as JSON or text.")] = None,
        notes: Annotated[str, Field(description="What whoever does the next task should know.")] = "",
        cost_usd: Annotated[float | None, Field(ge=0, description="What it cost in US dollars, if you know.")] = None,
        claim_id: ClaimId = "",
    ) -> EndedReply:
        """Finish the task that you hold. Add its required_outputs with add_artifact before."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            done = await _end(
                session,
                held,
                session.client.claims.complete(
                    held.claim_id, output=output, summary=summary or None, notes=notes or None, cost_usd=cost_usd
                ),
            )
            step = (
                f"An approver decides on it ({done.gate_id})." if done.gate_id else "Get the next one: wait_for_task."
            )
            ended = Ended(
                task_id=held.task_id, state="completed", event_id=done.event_id, gate_id=done.gate_id, next_step=step
            )
            return EndedReply(task=ended)

    async def fail_task(
        self,
        ctx: Context[Any, Any],
        reason: Annotated[str, Field(min_length=1, description="Why it could not be done.")],
        kind: Annotated[
            Literal["error", "timeout", "verification", "rejected"],
            Field(description="`rejected` ends the task for good; the others allow another attempt."),
        ] = "error",
        claim_id: ClaimId = "",
    ) -> EndedReply:
        """Say that the task you hold could not be done. To ask a question instead, use block_task."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            done = await _end(session, held, session.client.claims.fail(held.claim_id, reason, kind=kind))
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
        question: Annotated[str, Field(min_length=1, description="What stands in the way: the question to answer.")],
        kind: Annotated[
            Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"],
            Field(description="What kind of block it is."),
        ] = "ambiguity",
        suggestion: Annotated[str, Field(description="What would lift it.")] = "",
        depends_on: Annotated[list[str] | None, Field(description="Tasks that must complete first.")] = None,
        claim_id: ClaimId = "",
    ) -> EndedReply:
        """Ask people a question that the task you hold cannot go on without, and give the task back until it is
        answered. The answer comes with the next claim of the task, to you or to another agent."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            asked = session.client.claims.block(
                held.claim_id,
                question,
                blocker_type=kind,
                suggested_resolution=suggestion or None,
                depends_on=depends_on,
            )
            done = await _end(session, held, asked)
            step = "The question is in the inbox. Go on with another task: wait_for_task."
            ended = Ended(task_id=held.task_id, state="blocked", event_id=done.event_id, next_step=step)
            return EndedReply(task=ended)

    async def release_task(self, ctx: Context[Any, Any], claim_id: ClaimId = "") -> EndedReply:
        """Give the task that you hold back, unharmed: other agents may claim it at once."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            done = await _end(session, held, session.client.claims.release(held.claim_id))
            step = "Stop working on it. Get another one: wait_for_task."
            ended = Ended(task_id=held.task_id, state="released", event_id=done.event_id, next_step=step)
            return EndedReply(task=ended)

    async def report_progress(
        self,
        ctx: Context[Any, Any],
        message: Annotated[
            str, Field(min_length=1, max_length=2000, description="How the work goes, in one sentence.")
        ],
        percent: Annotated[float | None, Field(ge=0, le=100, description="How much of it is done.")] = None,
        claim_id: ClaimId = "",
    ) -> ReportedReply:
        """Say how the task you hold goes, for the people who watch it. It also shows that you are still working."""
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            whole = None if percent is None else round(percent)
            said = await session.client.claims.report_progress(held.claim_id, message, percent=whole)
            if said.retry_after_seconds is not None:
                # The last report is the one to be seen, so it waits for its second.
                await asyncio.sleep(said.retry_after_seconds)
                said = await session.client.claims.report_progress(held.claim_id, message, percent=whole)
            return ReportedReply(report=Reported(task_id=held.task_id, recorded=said.recorded))

    async def add_artifact(
        self,
        ctx: Context[Any, Any],
        name: Annotated[
            str, Field(description="Lower-case letters, digits, dots and dashes; a required output's name.")
        ],
        content: Annotated[str | None, Field(description="The text of it.")] = None,
        content_base64: Annotated[str | None, Field(description="Its bytes as base64, in place of text.")] = None,
        path: Annotated[
            str | None, Field(description="A file that holds it, in place of text. Local servers only.")
        ] = None,
        media_type: Annotated[str | None, Field(description="As in text/markdown.")] = None,
        claim_id: ClaimId = "",
    ) -> ArtifactReply:
        """Record an output of the task you hold under a name: text, bytes, or a file."""
        if sum(given is not None for given in (content, content_base64, path)) != 1:
            raise ToolError("Give one of content, content_base64 and path.")
        async with self._sessions.open(ctx) as session:
            held = await session.find(claim_id)
            data = await asyncio.to_thread(_read, session, content, content_base64, path)
            kept = await session.client.content.put(data)
            if media_type is None and content is not None:
                media_type = "text/plain"
            added = await session.client.claims.add_artifact(
                held.claim_id, name, sha256=kept.sha256, media_type=media_type
            )
            info = ArtifactInfo.of(added, added.task_id, bytes=kept.bytes, media_type=media_type or "")
            return ArtifactReply(artifact=info)

    async def get_artifact(
        self,
        ctx: Context[Any, Any],
        task_id: Annotated[str, Field(description="The task that made it.")],
        name: Annotated[str, Field(description="Its name or its id.")],
        save_to: Annotated[str | None, Field(description="A file to write it to. Local servers only.")] = None,
    ) -> ArtifactReply:
        """Read an artifact of a task. Short text comes as `content`; anything else is saved to a file."""
        async with self._sessions.open(ctx) as session:
            task = await session.client.tasks.get(task_id)
            found = next((one for one in task.artifacts if name in (one.name, one.artifact_id)), None)
            if found is None:
                made = ", ".join(one.name for one in task.artifacts) or "none"
                raise ToolError(f"The task has no artifact {name[:64]!r}. It has: {made}.")
            info = ArtifactInfo.of(found, task_id, bytes=found.bytes, media_type=found.media_type)
            if save_to is not None:
                info.saved_to = str(await _save(session, found, save_to))
            else:
                info.content = await _text(session.client, found)
            return ArtifactReply(artifact=info)


async def _claim(client: AsyncRedKey, found: ClaimNextOutcome | ClaimOutcome) -> Claim:
    if isinstance(found, Claimed):
        # A word to those who watch; what counts is told at the end.
        with suppress(ClientError):
            await client.claims.start(found.claim_id)
        return _claimed(found)
    if isinstance(found, NoTasks):
        return Claim(
            outcome="nothing_yet", next_step="Nothing to do right now. This is normal: call wait_for_task again."
        )
    if isinstance(found, Missed):
        winner = await _name_of(client, found.winning_agent_id)
        if found.reason == "task_completed":
            step = f"{winner} has completed this task already. Do not try it again; call wait_for_task for another one."
        else:
            step = f"{winner} has this task. Do not try it again; call wait_for_task for another one."
        return Claim(outcome="missed", won_by=winner, next_step=step)
    return Claim(outcome="rejected", next_step=_after_rejection(found))


def _claimed(found: Claimed, before: str = "") -> Claim:
    if found.task is None:
        raise AssertionError("a claim without its task")
    return Claim(
        outcome="claimed",
        claim_id=found.claim_id,
        task=Work.of(found.task),
        lease_expires_at=found.lease_expires_at,
        next_step=f"{before}The task is yours. Do it, then call complete_task, fail_task or block_task.",
    )


async def _name_of(client: AsyncRedKey, agent_id: str) -> str:
    try:
        return f"{(await client.agents.get(agent_id)).slug} ({agent_id})"
    except NotFound:
        return agent_id


def _after_rejection(found: Rejected) -> str:
    agent, detail = found.agent_id, found.detail
    match found.reason:
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
    """Await the end of a hold, and take note of it or of its loss."""
    try:
        done = await ending
    except (LeaseLost, AlreadyTerminal) as lost:
        session.ended(held.claim_id)
        raise ToolError(
            f"You no longer hold {held.task_id}: {lost.detail} What you did for it changes nothing. Stop working on it "
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
        raise ToolError("This server runs on another machine and cannot see your files: send or read content instead.")
    return session.directory / Path(path).expanduser()


async def _save(session: AgentSession, found: Artifact, save_to: str) -> Path:
    file = _local(session, save_to)
    if file.exists():
        raise ToolError(f"{file} exists already; nothing was written. Name another file.")
    if not file.parent.is_dir():
        raise ToolError(f"There is no directory {file.parent}. Create it, or name another file.")
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("wb") as writing:
            async for piece in session.client.content.pieces(found.sha256):
                writing.write(piece)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file


async def _text(client: AsyncRedKey, found: Artifact) -> str:
    if found.bytes > _INLINE_BYTES:
        raise ToolError(f"{found.name} has {found.bytes:,} bytes: name a file in save_to to get it.")
    try:
        return (await client.content.get(found.sha256)).decode()
    except UnicodeDecodeError:
        raise ToolError(f"{found.name} is not text: name a file in save_to to get it.") from None
