"""Queues, tasks, artifacts and messages as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Document, Shelf, moment
from redkey.reducers.entities import PRIORITIES, Artifact, Message, Queue, Task
from redkey.reducers.spending import NANO
from redkey.reducers.world import SECOND
from redkey.shapes import queues, tasks
from redkey.shapes.claims import Assignment
from redkey.shapes.inbox import InboxMessage
from redkey.shapes.tasks import Blocker, Failure, Progress, TaskHold, TaskSummary, Upstream, UpstreamResult

Read = Callable[[str], Document | None]


def queue_view(queue: Queue, document: Document | None) -> queues.Queue:
    """Show a queue."""
    stated, settings = document or {}, queue.settings
    return queues.Queue(
        queue_id=queue.queue_id,
        name=stated.get("name", ""),
        description=stated.get("description", ""),
        lease_seconds=settings.lease_seconds,
        max_attempts=settings.max_attempts,
        priority=settings.priority,
        paused=settings.paused,
        allow_secrets=settings.allow_secrets,
        max_live_claims=settings.max_live_claims,
        max_lease_losses=settings.lease_losses,
        idle_seconds=settings.idle_seconds,
        created_at=moment(queue.created_at),
        erased=document is None and queue.content_sha256 != "",
    )


def _asked(document: Document | None, task: Task) -> dict[str, Any]:
    """Return the fields of the task's document, by the names of the views."""
    stated = document or {}
    return {
        "title": stated.get("title", ""),
        "description": stated.get("description", ""),
        "input": stated.get("input"),
        "brief": _brief(stated["brief"], task) if stated.get("brief") else None,
        "completion_criteria": tuple(stated.get("completionCriteria", ())),
        "erased": document is None,
    }


def _brief(brief: dict[str, Any], task: Task) -> dict[str, Any]:
    """A Brief Wire with the ids that its author could not know: of the task, and of the project it is of."""
    payload = brief["payload"]
    kind, _, project_id = task.context_id.partition(":")
    filled = {"task_id": task.task_id, **({"project_id": project_id} if kind == "project" else {})}
    return {**brief, "payload": {**payload, "env": {**payload["env"], **filled}}}


def planned(document: Document, plan_task: str) -> Document:
    """Return the part of a plan for one of its tasks."""
    tasks = document["plan"].get("tasks", ())
    found: Document = next((task for task in tasks if task.get("id") == plan_task), {})
    return found


def _named(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "queue_id": task.queue_id,
        "workflow_id": task.workflow_id or run_beside(task),
        "plan_task_id": task.plan_task,
        "priority": PRIORITIES[task.priority],
        "required_roles": task.roles,
        "required_capabilities": task.capabilities,
    }


def run_beside(task: Task) -> str:
    """The run that a simple task belongs to, by its context; empty when there is none."""
    kind, _, subject = task.context_id.partition(":")
    return subject if kind == "workflow" else ""


def _where(task: Task) -> dict[str, Any]:
    return {
        "state": task.shown_state,
        "attempt": task.attempt,
        # Who holds it, or who has completed it.
        "agent_id": task.agent_id or (task.winner_agent_id if task.state == "completed" else ""),
        "created_at": iso_time(task.created_at),
        "updated_at": iso_time(task.updated_at),
    }


def first_created(shelf: Shelf, topic: str, task: Task) -> str:
    """When the task was created: the time of its first attempt, whichever attempt it is at."""
    first = shelf.events(topic, task.task_id, 0, 1) if task.attempt > 1 else ()
    return iso_time(first[0].timestamp if first else task.created_at)


def summary_view(task: Task, document: Document | None, read: Read) -> TaskSummary:
    """Show a task as an item of a list; `read` returns documents by hash."""
    asked = _asked(document, task)
    return TaskSummary(
        **_named(task),
        **_where(task),
        progress=progress_view(task, read),
        title=asked["title"],
        erased=asked["erased"],
    )


def progress_view(task: Task, read: Read) -> Progress | None:
    """Show what the holder reported last; None if it reported nothing, or if the task waits for its next claim."""
    if not task.progress_at or task.state in ("created", "available"):
        return None
    document = read(task.progress_sha256) if task.progress_sha256 else {}
    return Progress(
        text=(document or {}).get("text", ""),
        percent=task.progress_percent if task.progress_percent >= 0 else None,
        at=iso_time(task.progress_at),
        erased=document is None,
    )


def assignment(
    task: Task,
    attempt: int,
    document: Document | None,
    *,
    upstream: tuple[Upstream, ...] = (),
    results: tuple[UpstreamResult, ...] = (),
    workflow_input: Any = None,
    note: str = "",
    answer: str = "",
    prior_context: tuple[str, ...] = (),
) -> Assignment:
    """Show a task to the agent that has claimed it."""
    stated = document or {}
    return Assignment(
        **_named(task),
        **_asked(document, task),
        attempt=attempt,
        context_id=task.context_id,
        outputs=task.outputs,
        correlation_id=task.correlation_id,
        parent_task_id=task.parent_task_id,
        reference_task_ids=task.reference_task_ids,
        extensions=task.extensions,
        expected_inputs=tuple(stated.get("expectedInputs", ())),
        output_contract=stated.get("outputContract"),
        upstream=upstream,
        results=results,
        workflow_input=workflow_input,
        note=note,
        prior_context=prior_context,
        answer=answer,
    )


def task_view(task: Task, read: Read, sequence: int | None = None) -> tasks.Task:
    """Show a task in full; `read` returns documents by hash."""
    document = read(task.content_sha256)
    if document is not None and task.plan_task:
        document = planned(document, task.plan_task)
    ended = read(task.output_sha256) if task.output_sha256 else None
    said = ended or {}
    return tasks.Task(
        **_named(task),
        **_where(task),
        **_asked(document, task),
        progress=progress_view(task, read),
        context_id=task.context_id,
        correlation_id=task.correlation_id,
        parent_task_id=task.parent_task_id,
        reference_task_ids=task.reference_task_ids,
        extensions=task.extensions,
        outputs=task.outputs,
        output_contract=(document or {}).get("outputContract"),
        depends_on=tuple((document or {}).get("dependsOn", ())),
        waits_for=task.waits_for,
        max_attempts=task.max_attempts,
        opens_at=moment(task.opens_at) if task.state == "created" else None,
        lease_seconds=task.lease_seconds or None,
        deadline_at=moment(task.deadline_at),
        claim=claim_view(task),
        blocker=_blocker(task, read),
        failure=_failure(task, read),
        cancelled_because=task.cause,
        gate_id=task.gate_id,
        note=(read(task.note_sha256) or {}).get("note", "") if task.note_sha256 else "",
        answer=(read(task.answer_sha256) or {}).get("answer", "") if task.answer_sha256 else "",
        artifacts=tuple(_artifact(artifact, read) for artifact in task.artifacts),
        output=said.get("output"),
        summary=said.get("summary", ""),
        notes=said.get("notes", ""),
        completed_by=task.winner_agent_id if task.state == "completed" else "",
        lease_losses=task.lease_losses,
        cost_usd=task.nano_usd / NANO,
        duration_seconds=_duration(task),
        ended_at=moment(task.ended_at),
        sequence=sequence,
    )


def _duration(task: Task) -> int | None:
    """How long the last holder worked on a task that has ended; None when nobody did."""
    since = task.started_at or task.claimed_at
    return (task.ended_at - since + SECOND // 2) // SECOND if since and task.ended_at else None


def claim_view(task: Task) -> TaskHold | None:
    """Show who holds the task; None if no agent does."""
    if not task.claim_id:
        return None
    return TaskHold(
        claim_id=task.claim_id,
        agent_id=task.agent_id,
        claimed_at=moment(task.claimed_at),
        started_at=moment(task.started_at),
        lease_expires_at=moment(task.lease_expires_at),
    )


def _blocker(task: Task, read: Read) -> Blocker | None:
    if task.state != "blocked":
        return None
    document = read(task.reason_sha256)
    said = document or {}
    return Blocker(
        blocker_type=task.blocker_type,
        reason=said.get("reason", ""),
        suggested_resolution=said.get("suggestedResolution", ""),
        depends_on=task.blocked_by,
        erased=document is None,
    )


def _failure(task: Task, read: Read) -> Failure | None:
    if task.state != "failed":
        return None
    said = (read(task.reason_sha256) or {}) if task.reason_sha256 else {}
    return Failure(kind=task.failure_kind, reason=said.get("reason", ""))


def media_type(document: Document | None) -> str:
    """The media type of an artifact by its document; the first version spelled it otherwise."""
    said = document or {}
    return str(said.get("media_type") or said.get("mediaType") or "")


def _artifact(artifact: Artifact, read: Read) -> tasks.Artifact:
    document = read(artifact.document_sha256)
    said = document or {}
    return tasks.Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        version=artifact.version,
        readiness=artifact.readiness,
        sha256=artifact.sha256,
        bytes=artifact.bytes,
        media_type=media_type(said),
        uri=said.get("uri", ""),
        erased=document is None,
        unverified=artifact.unverified,
    )


# The subject of a message that RedKey itself sent; its body is the document of the event.
_SUBJECTS = {"task.blocked": "A task is blocked", "exec.gate": "A task waits for approval"}


def message_view(message: Message, document: Document | None) -> InboxMessage:
    """Show a message of an inbox."""
    said = document or {}
    return InboxMessage(
        message_id=message.message_id,
        to=message.to.removeprefix("agent:"),
        sender=message.sender,
        priority=message.priority,
        message_type=message.message_type,
        subject=said.get("subject", "") or _SUBJECTS.get(message.message_type, ""),
        body=said.get("body", "") or said.get("reason", "") or said.get("title", ""),
        action_required=message.action_required,
        ref_task_id=message.ref_task_id,
        sent_at=iso_time(message.sent_at),
        read_at=moment(message.read_at),
        erased=document is None,
    )
