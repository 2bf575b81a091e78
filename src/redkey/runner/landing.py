"""Work in worktrees on its way into the repository, as an attempt sees it: landed before, landing, done anew."""

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
# How often work may conflict with what has landed before the attempt fails.
_CONFLICTS: Final = 20
# After so many it holds the merge queue until it has landed.
_PATIENCE: Final = 3


async def landed_before(agent: Agent, attempt: Attempt) -> Done | None:
    """The end of a task whose work is in the branch already: its runner was killed before it could say so."""
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
    """Merge or push work in a worktree, and note where it is now; Conflict when it does not fit any more."""
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
    """Begin anew at the branch as it is now, with the conflict among what the agent is told."""
    attempt.conflicts += 1
    if attempt.conflicts > _CONFLICTS:
        raise Fail(repeatable(f"Conflicts {_CONFLICTS} times: {conflict.reason}"), kind="verification")
    merging, base = agent.merging, conflict.base
    patch = await merging.patch(attempt.place, conflict.commit)
    if attempt.conflicts >= _PATIENCE and not attempt.has_turn:
        # Others land faster than this agent works: from now on they wait for it, and it begins at the last commit.
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
        _log.warning("the work before the conflict is not there: %s", refused.message)
    attempt.at_first = await asyncio.to_thread(snapshot, attempt.place.directory)
    _log.info("%s conflicts with what has landed; it is done anew", attempt.task.task_id)
