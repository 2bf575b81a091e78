"""One task, from the claim to the verdict: brief, agent, artifacts, verification.

The worker of `redkey.client` claims, heartbeats and reports. It calls a `Cycle` with each task and cancels it when the
lease is lost. What the cycle returns or raises is the verdict:

    proceed, verified       Done, with cost, tries and the result of the semantic check
    proceed, not verified   another try with the findings, then Block verification_fail
    retry, or no success    Fail: another attempt if the task's policy allows one
    escalate                Block, with the blocker that the agent names and the messages of its card's rule
    no envelope             another try as above; a program that fails or takes too long is a Fail
    cannot be started       Block, before the agent has run
    agent cannot work now   AgentUnavailable: the runner releases the task and pauses
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Literal

import msgspec

from redkey.client import Assignment, Invalid, RedKey
from redkey.client.worker import AsyncContext, Block, Done, Fail
from redkey.errors import (
    AgentUnavailable,
    Finding,
    OutputRefused,
    RedKeyError,
    StepFailed,
    WireRefused,
    WorkplaceRefused,
)
from redkey.runner.agent import Agent
from redkey.runner.artifacts import is_full
from redkey.runner.attempt import Attempt
from redkey.runner.brief import brief_of
from redkey.runner.calling import call_agent
from redkey.runner.cost import Meter
from redkey.runner.envelope import write_notes
from redkey.runner.escalation import escalate
from redkey.runner.evaluate import Question
from redkey.runner.executors.port import Produced
from redkey.runner.files import content_of, snapshot
from redkey.runner.gathering import gather, is_coding
from redkey.runner.inputs import fetch
from redkey.runner.landing import begin_anew, land, landed_before
from redkey.runner.logs import LoggedEnd, now
from redkey.runner.mailbox import Mailbox, remarks_on
from redkey.runner.memory.port import Owner
from redkey.runner.merging import Conflict
from redkey.runner.remembering import recall, remember
from redkey.runner.verify import Named, Work, mechanical, readable
from redkey.runner.words import brief_summary, repeatable, secrets_said
from redkey.runner.workplace import Place
from redkey.wire.legacy import Brief

_log = logging.getLogger("redkey.runner")

# How many names of runs are cached.
_WORKFLOWS = 1000
Semantic = Literal["pass", "fail", "skipped"]


class Cycle:
    """Handles the tasks of one agent."""

    def __init__(self, agent: Agent, rk: RedKey, workspace_id: str) -> None:
        self._agent, self._rk, self._workspace_id = agent, rk, workspace_id
        self._owner = Owner(workspace_id, agent.slug)
        self._workflows: dict[str, str] = {}

    async def __call__(self, ctx: AsyncContext, meter: Meter) -> Done:
        """Do one task. Raise Block or Fail if it is not done, AgentUnavailable if the agent cannot work now."""
        brief = self._accept(ctx.task)
        name = f"{ctx.task.task_id}-{ctx.claim_id[-8:]}".lower()
        env, target = brief.env, self._agent.merging.merge_into
        places = self._agent.workplace.place(name, env.repo_url, within=env.worktree_path, target=target)
        try:
            async with places as place:
                attempt = await self._begin(ctx, brief, place, meter)
                return await self._logged(ctx, attempt)
        except WorkplaceRefused as refused:
            raise Block(repeatable(f"No place to work: {refused.message}"), "tool_failure") from refused
        except OSError as cause:
            if not is_full(cause):
                raise
            raise AgentUnavailable(f"The disk is full: {cause.strerror}", code="start_failed") from cause

    async def _logged(self, ctx: AsyncContext, attempt: Attempt) -> Done:
        """Work on an attempt; keep log and files if it fails or is blocked."""
        log = self._agent.logs.open(ctx.task.task_id, ctx.task.attempt, ctx.claim_id)
        attempt.log = log
        try:
            async with attempt.turn:
                done = await self._try(ctx, attempt)
        except (Block, Fail, WorkplaceRefused) as ended:
            reason = ended.message if isinstance(ended, WorkplaceRefused) else ended.reason
            end = LoggedEnd(
                task_id=ctx.task.task_id,
                agent=self._agent.slug,
                attempt=ctx.task.attempt,
                claim_id=ctx.claim_id,
                event="failed" if isinstance(ended, Fail) else "blocked",
                reason=repeatable(reason),
                at=now(),
                cost_usd=attempt.meter.cost_usd,
            )
            place = attempt.place
            patch = await self._agent.merging.patch(place) if place.clone is not None else b""
            files = None if place.shared or place.clone is not None else place.directory
            await asyncio.to_thread(log.keep, end, files, patch)
            await asyncio.to_thread(self._agent.logs.sweep)
            raise
        except BaseException:
            log.drop()
            raise
        log.drop()
        return done

    def _accept(self, task: Assignment) -> Brief:
        """Return the brief; Block if this runner cannot check everything that the brief requires."""
        try:
            brief = brief_of(task, self._workspace_id)
        except WireRefused as refused:
            text = f"The brief is invalid: {refused.pointer or '/'}: {refused.message} ({refused.code})"
            raise Block(text, "spec_gap") from refused
        contract = brief.output_contract
        problem = self._agent.contracts.problem(contract.schema_ref, contract.type)
        if problem is not None:
            raise Block(f"The brief asks for what cannot be checked: {problem.message}", "spec_gap")
        if contract.evaluate is not None and self._agent.evaluator is None:
            text = "The brief asks for a semantic check, and this runner has no evaluator."
            raise Block(text, "resource", suggested_resolution="Start the runner with --evaluator.")
        missing = self._agent.merging.missing(brief.acceptance_criteria)
        if missing is not None:
            text = f"The brief asks for the check {missing!r}, which this runner does not have."
            raise Block(text, "resource", suggested_resolution=f"Start the runner with --check {missing}=COMMAND.")
        return brief

    async def _begin(self, ctx: AsyncContext, brief: Brief, place: Place, meter: Meter) -> Attempt:
        view = await asyncio.to_thread(self._rk.tasks.get, ctx.task.task_id)
        paths = await fetch(self._rk, ctx.task, place.directory, () if ctx.task.workflow_id else view.depends_on)
        return Attempt(
            task=ctx.task,
            brief=brief,
            place=place,
            paths=paths,
            created_at=view.created_at,
            at_first={} if place.shared else await asyncio.to_thread(snapshot, place.directory),
            workflow=await self._workflow(ctx.task),
            memories=await recall(self._agent, self._owner, brief),
            remarks=await asyncio.to_thread(remarks_on, self._rk, ctx.task.task_id, ctx.answer),
            mailbox=Mailbox(self._rk, ctx.agent_id, self._agent.habits.messages),
            meter=meter,
            say=ctx.progress,
            said=[f"The block was lifted with this answer: {ctx.answer}"] if ctx.answer else [],
        )

    async def _workflow(self, task: Assignment) -> str:
        if not task.workflow_id:
            return task.queue_id.removeprefix("queue_")
        if task.workflow_id not in self._workflows:
            found = await asyncio.to_thread(self._rk.workflows.get, task.workflow_id)
            if len(self._workflows) >= _WORKFLOWS:
                self._workflows.clear()
            self._workflows[task.workflow_id] = found.name
        return self._workflows[task.workflow_id]

    async def _try(self, ctx: AsyncContext, attempt: Attempt) -> Done:
        """Try until the work passes verification, up to the allowed number of tries.

        Work that passes but conflicts with what has landed meanwhile is done again and costs no try.
        """
        if (done := await landed_before(self._agent, attempt)) is not None:
            return done
        refused_tries = 0
        while refused_tries < self._agent.habits.tries:
            attempt.tries += 1
            try:
                if not attempt.place.shared:
                    attempt.at_try = await asyncio.to_thread(snapshot, attempt.place.directory)
                produced = await call_agent(self._agent, attempt)
                work = await self._write(attempt, produced)
                findings, semantic = await self._verify(attempt, work)
                if not findings:
                    work = await land(self._agent, attempt, work)
                    findings = await self._announce(ctx, attempt, work)
            except OutputRefused as refused:
                findings = [Finding(refused.code, "", refused.message)]
            except Conflict as conflict:
                await begin_anew(self._agent, attempt, conflict)
                continue
            if not findings:
                return await self._done(attempt, work, semantic)
            refused_tries += 1
            attempt.findings = [f"{one.code}: {one.message}" for one in findings]
            _log.info("%s did not pass on try %d (%s)", attempt.task.task_id, attempt.tries, findings[0].code)
            with suppress(RedKeyError):
                # Progress is only information: the work continues without it.
                await ctx.progress(f"Try {attempt.tries} did not pass its verification ({findings[0].code}).")
        findings_text = "; ".join(attempt.findings)
        raise Block(repeatable(f"Not verified after {attempt.tries} tries: {findings_text}"), "verification_fail")

    async def _write(self, attempt: Attempt, produced: Produced) -> Work:
        """Follow the agent's recommendation; return the work if it recommends to proceed."""
        output, task_id = produced.output, attempt.task.task_id
        secrets = secrets_said(output, produced.mail)
        if secrets:
            raise OutputRefused(f"{secrets[0].pointer}: {secrets[0].message}", code=secrets[0].code)
        await attempt.mailbox.send([mail for mail in produced.mail if mail not in attempt.sent], task_id)
        attempt.sent.update(produced.mail)
        if output.recommendation == "escalate":
            raised = escalate(output, self._agent.card, task_id)
            await attempt.mailbox.send(raised.mail, task_id)
            raise Block(
                raised.reason,
                raised.blocker_type,
                suggested_resolution=raised.suggested_resolution or None,
                depends_on=raised.depends_on or None,
            )
        if output.recommendation == "retry" or not output.success:
            raise Fail(output.summary)
        return await gather(self._agent, attempt, output)

    async def _verify(self, attempt: Attempt, work: Work) -> tuple[list[Finding], Semantic]:
        contract = attempt.brief.output_contract
        asked = msgspec.structs.replace(contract, type="pr") if is_coding(attempt) else contract
        findings = await mechanical(work, asked, self._agent.contracts, attempt.task.outputs)
        findings = findings or await self._agent.merging.check(attempt.place)
        if findings or contract.evaluate is None or self._agent.evaluator is None:
            return findings, "skipped"
        question = Question(
            evaluate=contract.evaluate,
            goal=attempt.brief.goal,
            acceptance_criteria=attempt.brief.acceptance_criteria,
            summary=work.output.summary,
            artifacts=await asyncio.to_thread(readable, work),
        )
        try:
            async with attempt.meter.permit():
                verdict = await self._agent.evaluator.judge(question)
                attempt.meter.add(*verdict.used)
        except StepFailed as cap:
            # The work is paid for: a block keeps its files for people to look at, a release would not.
            text = f"The work is done, but nothing is left for its evaluation: {cap.message}"
            raise Block(text, "resource", suggested_resolution="Raise the cap.") from cap
        if verdict.verdict == "pass":
            return [], "pass"
        why = verdict.reason or "no reason was given"
        return [Finding("evaluation_failed", "", f"{contract.evaluate} — {why}")], "fail"

    async def _announce(self, ctx: AsyncContext, attempt: Attempt, work: Work) -> list[Finding]:
        """Store and announce every file; a file that the server refuses becomes a finding for the agent."""
        for named in work.named:
            try:
                await self._store(ctx, attempt, named)
            except Invalid as refused:
                return [Finding(refused.code, "/artifacts", f"{named.file.path}: {refused.detail}")]
        return []

    async def _store(self, ctx: AsyncContext, attempt: Attempt, named: Named) -> None:
        added = await ctx.artifact(
            named.name,
            await asyncio.to_thread(content_of, attempt.place.directory, named.file),
            media_type=named.file.media_type,
            artifact_id=attempt.own.get(named.file.path) or None,
        )
        if added.sha256 != named.file.sha256:
            raise Fail(f"{named.file.path} was stored as something else", kind="verification")
        attempt.own[named.file.path] = added.artifact_id

    async def _done(self, attempt: Attempt, work: Work, semantic: Semantic) -> Done:
        notes = work.output.notes or ()
        texts = [attempt.brief.goal, work.output.summary, *notes]
        await remember(self._agent, self._owner, attempt.task.task_id, texts)
        stored = [attempt.own[named.file.path] for named in work.named]
        return Done(
            output={"output_ref": stored[0] if stored else None, "artifact_ids": stored},
            summary=brief_summary(work.output.summary),
            notes=write_notes(notes) or None,
            cost_usd=attempt.meter.cost_usd,
            semantic=semantic,
            attempts=attempt.tries,
        )
