"""Land the work of an attempt in the repository, and restart the attempt after a conflict."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from typing import Final

from redkey.client.worker import Done, Fail
from redkey.errors import OutputRefused
from redkey.runner.agent import Agent
from redkey.runner.artifacts import put_file
from redkey.runner.attempt import Attempt
from redkey.runner.envelope import write_notes
from redkey.runner.escalation import fields
from redkey.runner.files import snapshot
from redkey.runner.gathering import is_coding
from redkey.runner.inputs import FOLDER
from redkey.runner.merging import Conflict
from redkey.runner.prompt import Remark
from redkey.runner.verify import Work, work_with_notes
from redkey.runner.words import repeatable

_log = logging.getLogger("redkey.runner")
# How many conflicts fail the attempt.
_CONFLICTS: Final = 20
# After this many conflicts the task holds the merge queue until it has landed.
_PATIENCE: Final = 3


async def landed_before(agent: Agent, attempt: Attempt) -> Done | None:
    """Return the result of a task that has landed already: its runner was killed before it could report that."""
    merging, task_id = agent.merging, attempt.task.task_id
    if merging.merge_into is None or attempt.place.clone is None:
        return None
    commit = await merging.merged(attempt.place, task_id, attempt.created_at)
    if commit is None:
        return None
    _log.info("%s has landed before, as %s", task_id, commit)
    notes = write_notes([f"branch: {attempt.place.target}", f"commit: {commit}"])
    return Done(output=None, summary="The work was merged before.", notes=notes, semantic="skipped")


async def land(agent: Agent, attempt: Attempt, work: Work) -> Work:
    """Merge or push the work of a worktree and note where it is; Conflict if it does not apply any more."""
    merging, place = agent.merging, attempt.place
    if not is_coding(attempt):
        return work
    said = fields(work.output.notes or ())
    branch, commit = said["branch"], said["commit"]
    if merging.merge_into is not None:
        title = attempt.task.title or attempt.brief.goal
        async with nullcontext() if attempt.has_turn else merging.turn(place):
            branch, commit = place.target, await merging.land(place, commit, title, attempt.task.task_id)
        where = place.url
    else:
        where = await merging.publish(place, branch, commit)
    more = [f"branch: {branch}", f"commit: {commit}", *([f"pushed: {where}"] if where else [])]
    return work_with_notes(work, more)


async def begin_anew(agent: Agent, attempt: Attempt, conflict: Conflict) -> None:
    """Restart the attempt at the current branch, with the conflict in the agent's brief and notes."""
    attempt.conflicts += 1
    if attempt.conflicts > _CONFLICTS:
        raise Fail(repeatable(f"Conflicts {_CONFLICTS} times: {conflict.reason}"), kind="verification")
    merging, base = agent.merging, conflict.base
    patch = await merging.patch(attempt.place, conflict.commit)
    if attempt.conflicts >= _PATIENCE and not attempt.has_turn:
        # Others land faster than this agent works: from now on they wait, and it starts at the last commit.
        await attempt.turn.enter_async_context(merging.turn(attempt.place))
        attempt.has_turn = True
        base = await merging.tip(attempt.place)
    attempt.place = await merging.begin_anew(attempt.place, base, attempt.conflicts + 1)
    attempt.findings = [f"conflict: {conflict.reason}"]
    attempt.conflict = Remark("merge queue", f"conflict {attempt.conflicts}", conflict.reason)
    try:
        await asyncio.to_thread(put_file, attempt.place.directory, f"{FOLDER}/.gitignore", [b"*\n"])
        await asyncio.to_thread(put_file, attempt.place.directory, f"{FOLDER}/previous.patch", [patch])
        attempt.findings.append(f"Your work before the conflict is in {FOLDER}/previous.patch.")
    except OutputRefused as refused:
        _log.warning("the work before the conflict could not be kept: %s", refused.message)
    attempt.at_first = await asyncio.to_thread(snapshot, attempt.place.directory)
    _log.info("%s conflicts with what has landed; it is done again", attempt.task.task_id)
