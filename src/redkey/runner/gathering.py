"""Collect the work of a try from its envelope and directory: artifacts, or commits of a worktree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from redkey.runner.agent import Agent
from redkey.runner.artifacts import write_all
from redkey.runner.attempt import Attempt
from redkey.runner.escalation import fields
from redkey.runner.files import changed, describe, reconcile
from redkey.runner.verify import Work, name_all, work_with_notes
from redkey.wire.step import StepOutput
from redkey.wire.step_paths import normal


def is_coding(attempt: Attempt) -> bool:
    """Return whether commits are the output: for pull requests, and in a worktree for tasks without outputs."""
    contract = attempt.brief.output_contract
    asks_nothing = attempt.task.brief is None and attempt.task.output_contract is None and not attempt.task.outputs
    return attempt.place.clone is not None and (contract.type == "pr" or asks_nothing)


async def gather(agent: Agent, attempt: Attempt, output: StepOutput) -> Work:
    """Collect what a try has produced; OutputRefused if its declared artifacts are not acceptable."""
    if is_coding(attempt):
        return await _commit(agent, attempt, output)
    return await asyncio.to_thread(_collect, attempt, output)


async def _commit(agent: Agent, attempt: Attempt, output: StepOutput) -> Work:
    """Write declared artifacts and commit everything; notes name branch and commit."""
    place = attempt.place
    wrote = await asyncio.to_thread(changed, place.directory, attempt.at_try)
    declared = reconcile(place.directory, output.artifacts, wrote, ())
    await asyncio.to_thread(write_all, place.directory, declared.to_write, list(attempt.own))
    title = attempt.task.title or attempt.brief.goal
    branch, commit = await agent.merging.commit(place, title, attempt.task.task_id)
    said = fields(output.notes or ())
    more = [f"{name}: {value}" for name, value in (("branch", branch), ("commit", commit)) if name not in said]
    return work_with_notes(Work(place, output, ()), more)


def _collect(attempt: Attempt, output: StepOutput) -> Work:
    """Collect the artifacts of a try: declared ones, and files that the agent wrote."""
    directory, outputs = attempt.place.directory, attempt.task.outputs
    wrote: Sequence[str] = ()
    if attempt.place.shared:
        # In a shared directory only files named like a required output belong to this task.
        others = [path for path in outputs if (directory / path).is_file()]
    else:
        wrote = changed(directory, attempt.at_try)
        # A file that the runner wrote for an earlier try counts only if this try declares or changes it.
        before = {path for path in attempt.own if path not in wrote}
        others = [path for path in changed(directory, attempt.at_first) if path not in before]
    found = reconcile(directory, output.artifacts, wrote, others)
    written = write_all(directory, found.to_write, list(attempt.own))
    there = [describe(directory, path) for path in found.files]
    attempt.own |= {one.path: attempt.own.get(one.path, "") for one in (*written, *there)}
    declared = {normal(artifact.path) for artifact in output.artifacts}
    written += [one for one in there if one.path in declared]
    return Work(attempt.place, output, name_all(written, outputs, [one for one in there if one.path not in declared]))
