"""Prompts and resources: how to work the queue, and views of tasks, plans and queues that a host can attach."""

from __future__ import annotations

import json
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from redkey.errors import NotFound
from redkey.mcp.results import plain
from redkey.mcp.session import Sessions

INSTRUCTIONS = """\
RedKey is a queue that many agents share; exactly one agent gets each task.
1. Call wait_for_task. `nothing_yet` and `missed` are normal: call it again for another task.
2. Do the task. Record required outputs with add_artifact; report progress with report_progress.
3. End it: complete_task, fail_task, or block_task with a question. The answer comes with a later claim.
The lease is renewed for you. When a tool says that you no longer hold a task, stop working on it.
"""


# An example of a valid plan.
PLAN = {
    "version": "1.0",
    "name": "short-name",
    "description": "What the whole is for, in one sentence.",
    "roles": {"developer": {"description": "Writes code and its tests."}},
    "policies": {"maxParallelTasks": 4, "retry": {"maxAttempts": 2, "onFailure": "reopen"}},
    "tasks": [
        {
            "id": "design",
            "title": "Decide the interface",
            "role": "developer",
            "outputs": ["interface"],
            "completionCriteria": ["The interface is written down."],
        },
        {
            "id": "build",
            "title": "Build it",
            "role": "developer",
            "dependsOn": ["design"],
            "outputs": ["report"],
            "completionCriteria": ["Its tests pass."],
        },
    ],
}


_WORK = """\
Work the tasks{where} with the RedKey tools.

Call wait_for_task{named}. Do the task that you get, as its description, brief and completion criteria say, and
check your work. Record each required output with add_artifact. Then call complete_task with a summary; call
fail_task when it cannot be done, and block_task when only a person can answer a question. Then get the next task.
When wait_for_task has found nothing three times in a row, stop and report what was done. Never work on a task that
you do not hold.
"""
_PLAN = """\
Plan this goal for several agents that work in parallel: {goal}

Look at the project first. Divide the work into tasks that one agent can do in under an hour, that touch different
files where possible, and that say when they are done. Let a task depend only on tasks whose result it needs, so that
as many as possible can run at once.

Write the plan to plan.json in this format:

{plan}

Check it with `redkey plan validate plan.json` and correct every error. Show it to the person; start it with the
tool start_plan only when they agree.
"""
_REVIEW = """\
Call list_approvals. For each one, read the request (explain_task, the resource redkey://task/ID) and the result
(get_artifact, the files of the project), and compare the result with its completion criteria. Tell the person
what you found and what you would decide, and call decide_approval when they agree. A rejection needs a note that
says what to change.
"""


class Prompts:
    """The prompts that a person can choose."""

    async def work_the_queue(self, queue: str = "") -> str:
        """Work the tasks of the queue until there are none left."""
        if not queue:
            return _WORK.format(where="", named="")
        return _WORK.format(where=f" of the queue {queue}", named=f' with queue="{queue}"')

    async def plan_this_goal(self, goal: str) -> str:
        """Turn a goal into a plan of tasks that agents can work in parallel, and write it as plan.json."""
        return _PLAN.format(goal=goal, plan=json.dumps(PLAN, indent=2))

    async def review_and_approve(self) -> str:
        """Review the finished work that waits for an approval."""
        return _REVIEW


class Resources:
    """Views of the ledger as JSON."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def task(self, id: str, ctx: Context[Any, Any]) -> str:
        """A task: its request, its state and its result."""
        async with self._sessions.open(ctx) as session:
            return await _shown(session.client.tasks.get(id), "task", id)

    async def plan(self, id: str, ctx: Context[Any, Any]) -> str:
        """A run of a plan with every task, its state, its holder and what it waits for."""
        async with self._sessions.open(ctx) as session:
            return await _shown(session.client.workflows.state(id), "plan", id)

    async def queue(self, id: str, ctx: Context[Any, Any]) -> str:
        """A queue: its settings and what can be claimed now."""
        async with self._sessions.open(ctx) as session:
            queue = await _shown(session.client.queues.get(id), "queue", id)
            available = await session.client.tasks.available(id, limit=100).page()
            return json.dumps({"queue": json.loads(queue), "available": plain(available.items)}, indent=2)


async def _shown(reading: Any, what: str, key: str) -> str:
    try:
        return json.dumps(plain(await reading), indent=2)
    except NotFound:
        raise ResourceNotFoundError(f"There is no {what} {key[:64]!r}.") from None
