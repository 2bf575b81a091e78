"""Tasks as their owners see them: made, seen at any place of the ledger, explained, stopped, tried again, spoken of.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, as_object, at, get, post
from redkey.shapes.claims import ClaimOutcome
from redkey.shapes.events import Event, Order
from redkey.shapes.fields import Page
from redkey.shapes.tasks import (
    ApprovalGate,
    ContextState,
    CreatedTask,
    Explanation,
    MessageAdded,
    NewTask,
    Priority,
    Retry,
    Task,
    TaskChanged,
    TaskMessage,
    TaskResults,
    TaskState,
    TaskSummary,
)


class Tasks(Resource[Mode]):
    """Tasks as their owners see them: made, seen at any place of the ledger, explained, stopped, tried again, spoken
    of.
    """

    @Operation
    def claim(
        self, task_id: str, agent_id: str, *, lease_seconds: int | None = None, with_task: bool | None = None
    ) -> Request[ClaimOutcome]:
        """Claim a task: exactly one agent wins, every other learns who. A lost race is a reply, not an error."""
        return post(
            at("tasks", task_id, "claim"),
            ClaimOutcome,
            agent_id=agent_id,
            lease_seconds=lease_seconds,
            with_task=with_task,
        )

    @Listing
    def events(
        self,
        task_id: str,
        *,
        type: Sequence[str] | str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What happened to a task, with the attempts to claim it."""
        return get(at("tasks", task_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)

    @Listing
    def list(
        self, queue: str, *, state: TaskState, limit: int | None = None, after: str | None = None
    ) -> Request[Page[TaskSummary]]:
        """The tasks of a queue in one state: by priority, then oldest first."""
        return get(at("queues", queue, "tasks"), Page[TaskSummary], state=state, limit=limit, after=after)

    @Listing
    def available(
        self,
        queue: str,
        *,
        agent_id: str | None = None,
        wait: float = 0,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[TaskSummary]]:
        """What may be claimed in a queue now; with `wait`, as soon as there is something."""
        return get(
            at("queues", queue, "tasks", "available"),
            Page[TaskSummary],
            wait_seconds=wait,
            agent_id=agent_id,
            wait=wait or None,
            limit=limit,
            after=after,
        )

    @Operation
    def create(
        self,
        queue: str,
        *,
        title: str,
        description: str | None = None,
        required_roles: Sequence[str] | None = None,
        required_capabilities: Sequence[str] | None = None,
        depends_on: Sequence[str] | None = None,
        priority: Priority | None = None,
        input: Any = None,
        brief: Mapping[str, Any] | None = None,
        workflow_id: str | None = None,
        context_id: str | None = None,
        parent_task_id: str | None = None,
        reference_task_ids: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        completion_criteria: Sequence[str] | None = None,
        retry: Retry | Mapping[str, Any] | None = None,
        lease_seconds: int | None = None,
        deadline_seconds: int | None = None,
        approval_gate: bool | ApprovalGate | Mapping[str, Any] | None = None,
    ) -> Request[CreatedTask]:
        """Put a task on a queue."""
        return post(
            at("queues", queue, "tasks"),
            CreatedTask,
            title=title,
            description=description,
            required_roles=required_roles,
            required_capabilities=required_capabilities,
            depends_on=depends_on,
            priority=priority,
            input=input,
            brief=brief,
            workflow_id=workflow_id,
            context_id=context_id,
            parent_task_id=parent_task_id,
            reference_task_ids=reference_task_ids,
            outputs=outputs,
            completion_criteria=completion_criteria,
            retry=as_object(retry),
            lease_seconds=lease_seconds,
            deadline_seconds=deadline_seconds,
            approval_gate=as_object(approval_gate),
        )

    @Operation
    def create_many(self, queue: str, tasks: Sequence[NewTask | Mapping[str, Any]]) -> Request[TaskResults]:
        """Put up to 500 tasks on a queue, each with its own result."""
        return post(at("queues", queue, "tasks", "batch"), TaskResults, tasks=[as_object(one) for one in tasks])

    @Operation
    def get(self, task_id: str, *, at_sequence: int | None = None) -> Request[Task]:
        """One task in full, now or as it was at any place of the ledger."""
        return get(at("tasks", task_id), Task, at=at_sequence)

    @Operation
    def explain(self, task_id: str) -> Request[Explanation]:
        """Why a task is not running, and what would move it."""
        return get(at("tasks", task_id, "explain"), Explanation)

    @Operation
    def cancel(self, task_id: str) -> Request[TaskChanged]:
        """Cancel a task; its holder learns it at the next call."""
        return post(at("tasks", task_id, "cancel"), TaskChanged)

    @Operation
    def retry(self, task_id: str) -> Request[TaskChanged]:
        """Try a failed or cancelled task again, as a new attempt."""
        return post(at("tasks", task_id, "retry"), TaskChanged)

    @Operation
    def unblock(self, task_id: str, answer: str | None = None) -> Request[TaskChanged]:
        """Answer a block: the task may be claimed again, and its next holder reads the answer."""
        return post(at("tasks", task_id, "unblock"), TaskChanged, answer=answer)

    @Listing
    def messages(
        self, task_id: str, *, limit: int | None = None, after: str | None = None
    ) -> Request[Page[TaskMessage]]:
        """What was said about a task, in order."""
        return get(at("tasks", task_id, "messages"), Page[TaskMessage], limit=limit, after=after)

    @Operation
    def raise_concern(
        self, task_id: str, concern: str, *, severity: Literal["info", "minor", "major", "blocking"] | None = None
    ) -> Request[MessageAdded]:
        """Raise a concern about work in progress."""
        return post(at("tasks", task_id, "concerns"), MessageAdded, concern=concern, severity=severity)

    @Operation
    def context(self, context_id: str) -> Request[ContextState]:
        """The state of a context: all tasks that share it."""
        return get(at("contexts", context_id, "state"), ContextState)
