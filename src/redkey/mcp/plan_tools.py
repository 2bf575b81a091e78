"""Tools for planning and review: create tasks, start plans, list and explain work, decide approvals, get receipts."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from redkey.client import AsyncRedKey
from redkey.errors import Conflict, NotFound
from redkey.mcp.results import (
    ApprovalInfo,
    ApprovalList,
    DecisionInfo,
    DecisionReply,
    ExplanationInfo,
    ExplanationReply,
    Json,
    NewTaskInfo,
    NewTaskReply,
    PlanInfo,
    PlanReply,
    ReceiptInfo,
    ReceiptReply,
    TaskInfo,
    TaskList,
)
from redkey.mcp.session import AgentSession, Sessions
from redkey.mcp.work_tools import Queue
from redkey.shapes.tasks import TaskState
from redkey.wire.names import role_id


class PlanTools:
    """Everything that a planner or reviewer does."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def create_task(
        self,
        ctx: Context[Any, Any],
        title: Annotated[str, Field(min_length=1, description="What to do, in one line.")],
        description: Annotated[str, Field(description="Everything the agent that claims it must know.")] = "",
        role: Annotated[str, Field(description="Only agents with this role may claim it, as in `reviewer`.")] = "",
        queue: Queue = "",
        depends_on: Annotated[list[str] | None, Field(description="Ids of tasks that must be completed first.")] = None,
        input: Annotated[Json, Field(description="What it works from, as JSON or text.")] = None,
        brief: Annotated[dict[str, Any] | None, Field(description="A longer brief as a JSON object.")] = None,
        completion_criteria: Annotated[list[str] | None, Field(description="When it is done.")] = None,
        outputs: Annotated[list[str] | None, Field(description="Names of artifacts that it must leave.")] = None,
        priority: Annotated[
            Literal["urgent", "high", "normal", "low"], Field(description="Which comes first.")
        ] = "normal",
        needs_approval: Annotated[bool, Field(description="Whether a person approves the result.")] = False,
    ) -> NewTaskReply:
        """Put a task on a shared queue, for whichever agent claims it first."""
        async with self._sessions.open(ctx) as session:
            queue = queue or session.queue
            if role:
                await _ensure_role(session, role)
            await ensure_queue(session.client, queue)
            made = await session.client.tasks.create(
                queue,
                title=title,
                description=description or None,
                required_roles=[role] if role else None,
                depends_on=depends_on,
                priority=priority,
                input=input,
                brief=brief,
                completion_criteria=completion_criteria,
                outputs=outputs,
                approval_gate=needs_approval or None,
            )
            return NewTaskReply(task=NewTaskInfo(task_id=made.task_id, queue=queue, event_id=made.event_id))

    async def start_plan(
        self,
        ctx: Context[Any, Any],
        plan: Annotated[dict[str, Any] | None, Field(description="The plan as JSON.")] = None,
        path: Annotated[str, Field(description="A plan.json file, in place of `plan`. Local servers only.")] = "",
        queue: Queue = "",
        input: Annotated[dict[str, Any] | None, Field(description="What the whole run is given.")] = None,
    ) -> PlanReply:
        """Start a plan: tasks that depend on each other, each opened as soon as those before it are done.

        The prompt `plan_this_goal` says how a plan is written. A plan that is not valid is refused with every error.
        """
        async with self._sessions.open(ctx) as session:
            queue = queue or session.queue
            if (plan is None) == (not path):
                raise ToolError("Give the plan, or the path of a plan.json, and not both.")
            if path:
                if session.directory is None:
                    raise ToolError("This server cannot see your files: give the plan itself.")
                plan = await asyncio.to_thread(_read_plan, session.directory / Path(path).expanduser())
            await ensure_queue(session.client, queue)
            started = await session.client.workflows.start(queue, plan=plan, input=input)
            info = PlanInfo(
                workflow_id=started.workflow_id,
                queue=queue,
                tasks=len((plan or {}).get("tasks", ())),
                next_step="Agents get its tasks by wait_for_task; the resource redkey://plan/ID shows how it goes.",
            )
            return PlanReply(plan=info)

    async def list_tasks(
        self,
        ctx: Context[Any, Any],
        state: Annotated[TaskState, Field(description="Which tasks.")] = "available",
        queue: Queue = "",
        held_by_me: Annotated[bool, Field(description="The tasks that you hold now, in place of a queue's.")] = False,
        limit: Annotated[int, Field(ge=1, le=200, description="At most so many.")] = 50,
    ) -> TaskList:
        """See the tasks of a queue in one state, or those that you hold. It claims nothing."""
        async with self._sessions.open(ctx) as session:
            if held_by_me:
                held = await session.held()
                tasks = [TaskInfo.of(await session.client.tasks.get(one.task_id)) for one in held]
                return TaskList(tasks=tasks)
            found = await session.client.tasks.list(queue or session.queue, state=state, limit=limit).page()
            return TaskList(tasks=[TaskInfo.of(one) for one in found.items], more=found.next is not None)

    async def explain_task(
        self, ctx: Context[Any, Any], task_id: Annotated[str, Field(description="The task.")]
    ) -> ExplanationReply:
        """Learn where a task stands and what would move it."""
        async with self._sessions.open(ctx) as session:
            task, explained = await asyncio.gather(
                session.client.tasks.get(task_id), session.client.tasks.explain(task_id)
            )
            return ExplanationReply(explanation=ExplanationInfo.of(task, explained))

    async def list_approvals(
        self, ctx: Context[Any, Any], limit: Annotated[int, Field(ge=1, le=200, description="At most so many.")] = 50
    ) -> ApprovalList:
        """See finished work that waits for an approval."""
        async with self._sessions.open(ctx) as session:
            found = await session.client.gates.list(state="open", limit=limit).page()
            return ApprovalList(approvals=[ApprovalInfo.of(one) for one in found.items])

    async def decide_approval(
        self,
        ctx: Context[Any, Any],
        gate_id: Annotated[str, Field(description="The approval, from list_approvals.")],
        approve: Annotated[bool, Field(description="True accepts the work, false sends it back.")],
        note: Annotated[str, Field(description="Why; needed to send work back.")] = "",
    ) -> DecisionReply:
        """Approve finished work, or send it back with a note. Nobody may decide on their own work.

        Look at the work first (get_artifact, explain_task), and decide only when a person asked you to.
        """
        if not approve and not note:
            raise ToolError("Say in `note` what is wrong: the next attempt gets it.")
        async with self._sessions.open(ctx) as session:
            gates = session.client.gates
            decided = await (gates.approve(gate_id, note or None) if approve else gates.reject(gate_id, note))
            info = DecisionInfo(
                gate_id=gate_id, task_id=decided.task_id, decision=decided.status, event_id=decided.event_id
            )
            return DecisionReply(approval=info)

    async def get_receipt(
        self,
        ctx: Context[Any, Any],
        event_id: Annotated[str, Field(description="The event, as other tools return it.")],
        save_to: Annotated[str, Field(description="A file to write the receipt to. Local servers only.")] = "",
    ) -> ReceiptReply:
        """Get the proof that an event is on the ledger; `redkey receipt verify FILE` checks it offline."""
        async with self._sessions.open(ctx) as session:
            receipt = await session.client.receipts.get(event_id)
            info = ReceiptInfo(event_id=event_id)
            if not save_to:
                info.document = json.loads(receipt.document)
                return ReceiptReply(receipt=info)
            if session.directory is None:
                raise ToolError("This server cannot see your files: call again without save_to.")
            file = session.directory / Path(save_to).expanduser()
            if file.exists():
                raise ToolError(f"{file} exists already; nothing was written. Name another file.")
            await asyncio.to_thread(receipt.save, file)
            info.saved_to = str(file)
            return ReceiptReply(receipt=info)


def _read_plan(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except OSError as cause:
        raise ToolError(f"{file} cannot be read: {cause.strerror}. Give the path of a plan.json.") from None
    except ValueError as cause:
        raise ToolError(f"{file} is not JSON: {cause}. Correct it, then call this again.") from None
    if not isinstance(found, dict):
        raise ToolError(f"{file} holds no JSON object. A plan is one; see the prompt plan_this_goal.")
    return found


async def ensure_queue(client: AsyncRedKey, queue: str) -> None:
    """Create the queue if there is none and the key may."""
    try:
        await client.queues.get(queue)
    except NotFound:
        with suppress(Conflict):
            await client.queues.create(queue.removeprefix("queue_").removeprefix("queues."))


async def _ensure_role(session: AgentSession, role: str) -> None:
    """A task that asks for a role that no agent has waits until a person grants it; the role itself must exist."""
    try:
        await session.client.roles.get(role_id(role))
    except NotFound:
        with suppress(Conflict):
            await session.create_role(role_id(role))
