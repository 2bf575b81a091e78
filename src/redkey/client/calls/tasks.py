"""Tasks: create, show (now or at any sequence), explain, cancel, retry and discuss them.

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
    Priority,
    Retry,
    Task,
    TaskChanged,
    TaskMessage,
    TaskState,
    TaskSummary,
)


class Tasks(Resource[Mode]):
    """Tasks: create, show (now or at any sequence), explain, cancel, retry and discuss them."""

    @Operation
    def claim(
        self,
        task_id: str,
        agent_id: str,
        *,
        lease_seconds: int | None = None,
        with_task: bool | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ClaimOutcome]:
        """Claim a task: exactly one agent wins, every other learns who. A lost race is a reply, not an error."""
        return post(
            at("tasks", task_id, "claim"),
            ClaimOutcome,
            agent_id=agent_id,
            lease_seconds=lease_seconds,
            with_task=with_task,
            extensions=extensions,
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
        """List what happened to a task, including the attempts to claim it."""
        return get(at("tasks", task_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)

    @Listing
    def list(
        self, queue: str, *, state: TaskState, limit: int | None = None, after: str | None = None
    ) -> Request[Page[TaskSummary]]:
        """List the tasks of a queue in one state: by priority, then oldest first."""
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
        """List what may be claimed in a queue now; with `wait`, as soon as there is something."""
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
        correlation_id: str | None = None,
        reference_task_ids: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        completion_criteria: Sequence[str] | None = None,
        retry: Retry | Mapping[str, Any] | None = None,
        lease_seconds: int | None = None,
        deadline_seconds: int | None = None,
        approval_gate: bool | ApprovalGate | Mapping[str, Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreatedTask]:
        """Create a task in a queue."""
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
            correlation_id=correlation_id,
            reference_task_ids=reference_task_ids,
            outputs=outputs,
            completion_criteria=completion_criteria,
            retry=as_object(retry),
            lease_seconds=lease_seconds,
            deadline_seconds=deadline_seconds,
            approval_gate=as_object(approval_gate),
            extensions=extensions,
        )

    @Operation
    def get(self, task_id: str, *, at_sequence: int | None = None) -> Request[Task]:
        """Show a task in full, now or as it was at any sequence of the ledger."""
        return get(at("tasks", task_id), Task, at=at_sequence)

    @Operation
    def explain(self, task_id: str) -> Request[Explanation]:
        """Explain why a task is not running, and what would change that."""
        return get(at("tasks", task_id, "explain"), Explanation)

    @Operation
    def cancel(self, task_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[TaskChanged]:
        """Cancel a task; its holder learns of it at its next call."""
        return post(at("tasks", task_id, "cancel"), TaskChanged, extensions=extensions)

    @Operation
    def retry(self, task_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[TaskChanged]:
        """Retry a failed or cancelled task, as a new attempt."""
        return post(at("tasks", task_id, "retry"), TaskChanged, extensions=extensions)

    @Operation
    def unblock(
        self, task_id: str, answer: str | None = None, *, extensions: Mapping[str, Any] | None = None
    ) -> Request[TaskChanged]:
        """Answer a block: the task may be claimed again, and its next holder reads the answer."""
        return post(at("tasks", task_id, "unblock"), TaskChanged, answer=answer, extensions=extensions)

    @Listing
    def messages(
        self, task_id: str, *, limit: int | None = None, after: str | None = None
    ) -> Request[Page[TaskMessage]]:
        """List the messages about a task, in order."""
        return get(at("tasks", task_id, "messages"), Page[TaskMessage], limit=limit, after=after)

    @Operation
    def raise_concern(
        self,
        task_id: str,
        concern: str,
        *,
        severity: Literal["info", "minor", "major", "blocking"] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[MessageAdded]:
        """Raise a concern about work in progress."""
        return post(
            at("tasks", task_id, "concerns"), MessageAdded, concern=concern, severity=severity, extensions=extensions
        )

    @Operation
    def context(self, context_id: str) -> Request[ContextState]:
        """Show the state of a context: of all tasks that share it."""
        return get(at("contexts", context_id, "state"), ContextState)
