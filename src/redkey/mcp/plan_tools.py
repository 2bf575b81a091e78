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
from redkey.mcp.work_tools import Extensions, Queue
from redkey.shapes.tasks import TaskState
from redkey.wire.names import role_id


class PlanTools:
    """The tools of a planner or reviewer."""

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
        input: Annotated[Json, Field(description="Its input, as JSON or text.")] = None,
        brief: Annotated[dict[str, Any] | None, Field(description="A longer brief as a JSON object.")] = None,
        completion_criteria: Annotated[list[str] | None, Field(description="When it is done.")] = None,
        outputs: Annotated[list[str] | None, Field(description="Names of artifacts that it must produce.")] = None,
        priority: Annotated[
            Literal["urgent", "high", "normal", "low"], Field(description="Urgent tasks are claimed first.")
        ] = "normal",
        needs_approval: Annotated[bool, Field(description="Whether a person must approve the result.")] = False,
        context_id: Annotated[str, Field(description="The work it belongs to, as `project:x`.")] = "",
        correlation_id: Annotated[str, Field(description="What it is grouped by, unless by its context.")] = "",
        parent_task_id: Annotated[str, Field(description="The task that it is a part of.")] = "",
        reference_task_ids: Annotated[
            list[str] | None, Field(description="Tasks that it continues or reviews.")
        ] = None,
        extensions: Extensions = None,
    ) -> NewTaskReply:
        """Create a task in a shared queue, for whichever agent claims it first."""
        async with self._sessions.open(ctx) as session:
            queue = queue or session.queue
            if role:
                await _ensure_role(session, role)
            await ensure_queue(session.client, queue)
            created = await session.client.tasks.create(
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
                context_id=context_id or None,
                correlation_id=correlation_id or None,
                parent_task_id=parent_task_id or None,
                reference_task_ids=reference_task_ids,
                extensions=extensions,
            )
            return NewTaskReply(task=NewTaskInfo(task_id=created.task_id, queue=queue, event_id=created.event_id))

    async def start_plan(
        self,
        ctx: Context[Any, Any],
        plan: Annotated[dict[str, Any] | None, Field(description="The plan as JSON.")] = None,
        path: Annotated[str, Field(description="A plan.json file, instead of `plan`. Local servers only.")] = "",
        queue: Queue = "",
        input: Annotated[dict[str, Any] | None, Field(description="The input of the whole run.")] = None,
        extensions: Extensions = None,
    ) -> PlanReply:
        """Start a plan: tasks that depend on each other, each opened as soon as its dependencies are done.

        The prompt `plan_this_goal` says how to write a plan. An invalid plan is refused with all its errors.
        """
        async with self._sessions.open(ctx) as session:
            queue = queue or session.queue
            if (plan is None) == (not path):
                raise ToolError("Give either the plan or the path of a plan.json, not both.")
            if path:
                if session.directory is None:
                    raise ToolError("This server cannot read your files: give the plan itself.")
                plan = await asyncio.to_thread(_read_plan, session.directory / Path(path).expanduser())
            await ensure_queue(session.client, queue)
            started = await session.client.workflows.start(queue, plan=plan, input=input, extensions=extensions)
            info = PlanInfo(
                workflow_id=started.workflow_id,
                queue=queue,
                tasks=len((plan or {}).get("tasks", ())),
                next_step="Agents get its tasks by wait_for_task; the resource redkey://plan/ID shows its progress.",
            )
            return PlanReply(plan=info)

    async def list_tasks(
        self,
        ctx: Context[Any, Any],
        state: Annotated[TaskState, Field(description="The state of the tasks.")] = "available",
        queue: Queue = "",
        held_by_me: Annotated[bool, Field(description="List the tasks that you hold instead of a queue's.")] = False,
        limit: Annotated[int, Field(ge=1, le=200, description="The largest number to list.")] = 50,
    ) -> TaskList:
        """List the tasks of a queue in one state, or those that you hold. It claims nothing."""
        async with self._sessions.open(ctx) as session:
            if held_by_me:
                held = await session.held()
                tasks = [TaskInfo.of(await session.client.tasks.get(claim.task_id)) for claim in held]
                return TaskList(tasks=tasks)
            page = await session.client.tasks.list(queue or session.queue, state=state, limit=limit).page()
            return TaskList(tasks=[TaskInfo.of(task) for task in page.items], more=page.next is not None)

    async def explain_task(
        self, ctx: Context[Any, Any], task_id: Annotated[str, Field(description="The task.")]
    ) -> ExplanationReply:
        """Explain why a task is in its state and what would change it."""
        async with self._sessions.open(ctx) as session:
            task, explained = await asyncio.gather(
                session.client.tasks.get(task_id), session.client.tasks.explain(task_id)
            )
            return ExplanationReply(explanation=ExplanationInfo.of(task, explained))

    async def list_approvals(
        self,
        ctx: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=200, description="The largest number to list.")] = 50,
    ) -> ApprovalList:
        """List finished work that waits for an approval."""
        async with self._sessions.open(ctx) as session:
            page = await session.client.gates.list(state="open", limit=limit).page()
            return ApprovalList(approvals=[ApprovalInfo.of(gate) for gate in page.items])

    async def decide_approval(
        self,
        ctx: Context[Any, Any],
        gate_id: Annotated[str, Field(description="The approval, from list_approvals.")],
        approve: Annotated[bool, Field(description="True approves the work, false rejects it.")],
        note: Annotated[str, Field(description="Why; required to reject work.")] = "",
        extensions: Extensions = None,
    ) -> DecisionReply:
        """Approve finished work, or reject it with a note. Nobody may decide on their own work.

        Look at the work first (get_artifact, explain_task), and decide only when a person asked you to.
        """
        if not approve and not note:
            raise ToolError("Say in `note` what is wrong: the next attempt gets it.")
        async with self._sessions.open(ctx) as session:
            gates = session.client.gates
            if approve:
                decided = await gates.approve(gate_id, note or None, extensions=extensions)
            else:
                decided = await gates.reject(gate_id, note, extensions=extensions)
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
                raise ToolError("This server cannot write to your files: call again without save_to.")
            file = session.directory / Path(save_to).expanduser()
            if file.exists():
                raise ToolError(f"{file} already exists; nothing was written. Name another file.")
            await asyncio.to_thread(receipt.save, file)
            info.saved_to = str(file)
            return ReceiptReply(receipt=info)


def _read_plan(file: Path) -> dict[str, Any]:
    try:
        plan = json.loads(file.read_text())
    except OSError as cause:
        raise ToolError(f"{file} cannot be read: {cause.strerror}. Give the path of a plan.json.") from None
    except ValueError as cause:
        raise ToolError(f"{file} is not JSON: {cause}. Correct it, then call this again.") from None
    if not isinstance(plan, dict):
        raise ToolError(f"{file} does not contain a JSON object, as a plan must. See the prompt plan_this_goal.")
    return plan


async def ensure_queue(client: AsyncRedKey, queue: str) -> None:
    """Create the queue if it does not exist and the key may do so."""
    try:
        await client.queues.get(queue)
    except NotFound:
        with suppress(Conflict):
            await client.queues.create(queue.removeprefix("queue_").removeprefix("queues."))


async def _ensure_role(session: AgentSession, role: str) -> None:
    """Create the role if it does not exist. A task whose role no agent has waits until a person grants it."""
    try:
        await session.client.roles.get(role_id(role))
    except NotFound:
        with suppress(Conflict):
            await session.create_role(role_id(role))
