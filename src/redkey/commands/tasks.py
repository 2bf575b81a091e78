"""Tasks: create, cancel, retry and unblock them; add messages and concerns."""

from __future__ import annotations

from typing import Any, final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.claims import stream
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.due import another_attempt
from redkey.commands.past import Past
from redkey.commands.policies import check_rules
from redkey.reducers.entities import Task
from redkey.reducers.task import is_done, is_hopeless, recipients, was_rejected
from redkey.reducers.world import World
from redkey.wire.events import (
    AnyPayload,
    MessageAdded,
    Ref,
    ReviewConcern,
    TaskCancelled,
    TaskCreated,
    TaskUnblocked,
)
from redkey.wire.ids import task_stream

# Limits the requirement sets of a queue: claim-next looks at the best task of each set.
REQUIREMENT_SETS_LIMIT = 1024
# The first version of the workspace rules with pauses between attempts.
RETRY_RULES = 2


@final
class CreateTask(msgspec.Struct, frozen=True):
    """Create a simple task for roles. What does not fit on the wire goes into a structure, with its ref."""

    task_id: str
    queue_id: str
    content_ref: Ref
    priority: str = ""
    context_id: str = ""
    roles: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    lease_seconds: int = 0
    deadline_seconds: int = 0
    max_attempts: int = 0
    reference_task_ids: tuple[str, ...] = ()
    parent_task_id: str = ""
    correlation_id: str = ""
    # The run that the task joins beside its plan; its context is that of the run.
    workflow_id: str = ""
    structure: dict[str, Any] | None = None
    structure_ref: Ref | None = None


@final
class CancelTask(msgspec.Struct, frozen=True):
    """Cancel a task that has not ended."""

    task_id: str


@final
class RetryTask(msgspec.Struct, frozen=True):
    """Create another attempt at a failed or cancelled task."""

    task_id: str


@final
class UnblockTask(msgspec.Struct, frozen=True):
    """End the block of a task, with an answer for its next holder."""

    task_id: str
    answer_ref: Ref | None = None


@final
class AddMessage(msgspec.Struct, frozen=True):
    """Add a message to the conversation about a task."""

    task_id: str
    message_id: str
    role: str
    parts_ref: Ref


@final
class RaiseConcern(msgspec.Struct, frozen=True):
    """Record a reviewer's concern about a task."""

    task_id: str
    message_id: str
    severity: str
    concern_ref: Ref


def create(world: World, command: CreateTask, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Create a task."""
    queue = world.queues.get(command.queue_id)
    if queue is None:
        raise not_found("queue")
    if command.workflow_id and command.workflow_id not in world.runs:
        raise Refused(409, "workflow_ended", "This workflow has ended and takes no more tasks; start another one.")
    check_credits(world)
    if command.structure is not None and "retry" in command.structure:
        check_rules(world, RETRY_RULES)
    waits_for = [key for key in command.waits_for if _open_dependency(world, past, key)]
    for role in command.roles:
        if role not in world.roles:
            raise Refused(422, "unknown_role", f"There is no role {role!r}; create it first.", "/requiredRoles")
    sets = world.heaps.get(command.queue_id, {})
    if len(sets) >= REQUIREMENT_SETS_LIMIT and (command.roles, command.capabilities) not in sets:
        detail = f"The queue holds {len(sets)} different sets of roles and capabilities; use another queue for more."
        raise Refused(422, "requirement_sets_too_many", detail, "/requiredRoles")
    # The requirements are on the wire, or in the structure that it names.
    inline = command.structure_ref is None
    payload = TaskCreated(
        queue_id=command.queue_id,
        priority=command.priority or queue.settings.priority,
        content_ref=command.content_ref,
        structure_ref=command.structure_ref,
        roles=(command.roles or None) if inline else None,
        capabilities=(command.capabilities or None) if inline else None,
        waits_for=(tuple(waits_for) or None) if inline else None,
        outputs=(command.outputs or None) if inline else None,
        lease_seconds=(command.lease_seconds or None) if inline else None,
        deadline_seconds=(command.deadline_seconds or None) if inline else None,
        max_attempts=(command.max_attempts or None) if inline else None,
    )
    draft = Draft(
        payload,
        task_stream(command.task_id, 1),
        command.context_id or f"queue:{command.queue_id}",
        actor.sender(world),
        reference_task_ids=command.reference_task_ids,
        parent_task_id=command.parent_task_id,
        correlation_id=command.correlation_id,
        structure=command.structure,
    )
    return Decision([draft])


def _open_dependency(world: World, past: Past, task_id: str) -> bool:
    """True when the task is not done yet; a task that ended without success, or never existed, is refused."""
    if task_id in world.tasks:
        return not is_done(world, task_id)
    task = past.task(task_id)
    if task is None or task.state != "completed":
        raise Refused(422, "unknown_dependency", f"There is no live or completed task {task_id[:64]!r}.", "/dependsOn")
    return False


def check_credits(world: World) -> None:
    """Refuse new work in a workspace without credits; running work may finish."""
    workspace = world.workspace
    if workspace.credits_granted and workspace.credits_used >= workspace.credits_granted:
        detail = f"All {workspace.credits_granted} credits are used; ask an operator to grant more."
        raise Refused(402, "credits_exhausted", detail)


def any_task(world: World, past: Past, task_id: str) -> Task:
    """The task from the world or, if it has left the world, from its row."""
    task = world.tasks.get(task_id) or past.task(task_id)
    if task is None:
        raise not_found("task")
    return task


def _open_task(world: World, past: Past, task_id: str) -> Task:
    task = any_task(world, past, task_id)
    if task.ended_at:
        raise Refused(409, "already_terminal", f"The task is {task.state}; a terminal task does not change.")
    return task


def cancel(world: World, command: CancelTask, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Cancel a task."""
    task = _open_task(world, past, command.task_id)
    return Decision([_on(task, TaskCancelled(cause="requested"), actor.sender(world))])


def _on(task: Task, payload: AnyPayload, sender: str, cause: str = "") -> Draft:
    return Draft(payload, stream(task), task.context_id, sender, causation_id=cause)


def retry(world: World, command: RetryTask, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Create another attempt at a task."""
    task = any_task(world, past, command.task_id)
    if task.state not in ("failed", "cancelled") and not was_rejected(task):
        raise Refused(409, "not_failed", f"The task is {task.state}; only a failed or cancelled task can be retried.")
    ended_with_run = task.cause == "workflow_cancelled"
    if ended_with_run or (task.workflow_id and task.workflow_id not in world.runs):
        raise Refused(409, "workflow_ended", "Its workflow has ended; start another one.")
    for dependency in task.waits_for:
        upstream = world.tasks.get(dependency) or past.task(dependency)
        if upstream is not None and is_hopeless(upstream):
            raise Refused(409, "dependency_failed", f"It waits for {dependency}, which failed; retry that one first.")
    check_credits(world)
    return Decision([another_attempt(task, sender=actor.sender(world), causation_id=task.moved_by)])


def unblock(world: World, command: UnblockTask, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """End the block of a task."""
    task = _open_task(world, past, command.task_id)
    if task.state != "blocked":
        raise Refused(409, "not_blocked", f"The task is {task.state}, not blocked.")
    if actor.agent_id and f"agent:{actor.agent_id}" not in recipients(world, task.blocker_type):
        raise Refused(403, "not_asked", "Only agents that were notified of this block may unblock the task.")
    payload = TaskUnblocked(answer_ref=command.answer_ref)
    return Decision([_on(task, payload, actor.sender(world), task.moved_by)])


def add_message(world: World, command: AddMessage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Add a message to a task that has not ended."""
    task = _open_task(world, past, command.task_id)
    payload = MessageAdded(message_id=command.message_id, role=command.role, parts_ref=command.parts_ref)
    return Decision([_on(task, payload, actor.sender(world))])


def raise_concern(world: World, command: RaiseConcern, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Record a concern about a task that an agent holds."""
    task = _open_task(world, past, command.task_id)
    if not task.claim_id:
        raise Refused(409, "not_held", "No agent holds this task; a concern is about work in progress.")
    sender = actor.sender(world)
    payload = ReviewConcern(
        message_id=command.message_id, by=sender, severity=command.severity, concern_ref=command.concern_ref
    )
    return Decision([_on(task, payload, sender)])
