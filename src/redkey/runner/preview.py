"""Build the prompt that an agent would get for a task now, without claiming it or marking messages as read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from redkey.client import Assignment, RedKey
from redkey.runner.agent import Habits
from redkey.runner.brief import brief_of
from redkey.runner.mailbox import Mailbox, remarks_on
from redkey.runner.memory.opening import open_memories
from redkey.runner.memory.port import Owner
from redkey.runner.prompt import Prompt, assemble
from redkey.runner.remembering import as_remembered, question_of
from redkey.runner.run import workspace_of
from redkey.runner.skills import resolve
from redkey.runner.spec import Spec, identity


def preview(rk: RedKey, spec: Spec, task_id: str) -> Prompt:
    """Build the prompt of the first try, as `calling` does."""
    slug, who = identity(spec)
    habits = Habits()
    task = msgspec.convert(msgspec.to_builtins(rk.tasks.get(task_id)), Assignment)
    brief = brief_of(task, workspace_of(rk))
    # A preview creates no file: without one there are no memories.
    kept = open_memories(spec, Path(spec.work), create=False)
    recalled = (
        kept.recall(Owner(workspace_of(rk), slug), question_of(brief), habits.memories) if kept is not None else []
    )
    found = next(iter(rk.agents.list(slug=slug)), None)
    inbox = asyncio.run(Mailbox(rk, found.agent_id, habits.messages).unread()) if found is not None else []
    return assemble(
        who,
        brief,
        skills=resolve((*spec.skills, *spec.shared_skills), [Path(place) for place in spec.skills_dirs]),
        memories=as_remembered(recalled),
        inbox=inbox,
        outputs=task.outputs,
        description=task.description,
        remarks=remarks_on(rk, task_id),
        budget_tokens=spec.budget_tokens,
    )
