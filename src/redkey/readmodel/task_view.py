"""Queues, tasks, artifacts and messages as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Document, View, moment
from redkey.reducers.entities import PRIORITIES, Artifact, Message, Queue, Task

Read = Callable[[str], Document | None]


class QueueView(View, frozen=True, kw_only=True):
    """A queue and what it decides for its tasks."""

    queue_id: str
    name: str = ""
    description: str = ""
    lease_seconds: int
    max_attempts: int
    priority: str
    paused: bool
    allow_secrets: bool
    max_live_claims: int
    max_lease_losses: int
    created_at: str | None
    erased: bool = False


def queue_view(queue: Queue, document: Document | None) -> QueueView:
    stated, settings = document or {}, queue.settings
    return QueueView(
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
        created_at=moment(queue.created_at),
        erased=document is None and queue.content_sha256 != "",
    )


class ClaimView(View, frozen=True, kw_only=True):
    """Who holds a task now, and until when."""

    claim_id: str
    agent_id: str
    claimed_at: str | None
    started_at: str | None = None
    lease_expires_at: str | None


class BlockerView(View, frozen=True, kw_only=True):
    """Why a task stands still, in the words of the agent that met it."""

    blocker_type: str
    reason: str = ""
    suggested_resolution: str = ""
    depends_on: tuple[str, ...] = ()
    erased: bool = False


class FailureView(View, frozen=True, kw_only=True):
    """How a task failed."""

    kind: str
    reason: str = ""


class ArtifactView(View, frozen=True, kw_only=True):
    """An artifact of the current attempt; `sha256` is that of its bytes."""

    artifact_id: str
    name: str
    version: int
    readiness: str
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False


class TaskSummary(View, frozen=True, kw_only=True):
    """A task in a list."""

    task_id: str
    queue_id: str
    workflow_id: str = ""
    plan_task_id: str = ""
    title: str = ""
    state: str
    attempt: int
    priority: str
    required_roles: tuple[str, ...]
    required_capabilities: tuple[str, ...]
    agent_id: str = ""
    created_at: str
    updated_at: str
    erased: bool = False


class TaskView(TaskSummary, frozen=True, kw_only=True):
    """A task in full: what is asked, where it stands, how it went."""

    context_id: str
    parent_task_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    description: str = ""
    input: Any = None
    brief: dict[str, Any] | None = None
    completion_criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    depends_on: tuple[str, ...] = ()
    # What of it has not completed yet.
    waits_for: tuple[str, ...] = ()
    max_attempts: int
    lease_seconds: int | None = None
    deadline_at: str | None = None
    claim: ClaimView | None = None
    blocker: BlockerView | None = None
    failure: FailureView | None = None
    cancelled_because: str = ""
    gate_id: str = ""
    # What the approver said who sent the last attempt back, and what lifted the last block.
    note: str = ""
    answer: str = ""
    artifacts: tuple[ArtifactView, ...] = ()
    output: Any = None
    summary: str = ""
    notes: str = ""
    completed_by: str = ""
    lease_losses: int = 0
    ended_at: str | None = None
    # The place in the ledger at which the task was like this, when one was asked for.
    sequence: int | None = None


class UpstreamView(View, frozen=True, kw_only=True):
    """An artifact of a task that this one depends on; `sha256` is that of its bytes."""

    name: str
    artifact_id: str
    task_id: str
    plan_task_id: str
    version: int
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False


class Assignment(View, frozen=True, kw_only=True):
    """The work that comes with a claim: what never changes about a task, so that the same claim is told alike."""

    task_id: str
    queue_id: str
    attempt: int
    workflow_id: str = ""
    plan_task_id: str = ""
    context_id: str
    title: str = ""
    description: str = ""
    input: Any = None
    brief: dict[str, Any] | None = None
    completion_criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    required_roles: tuple[str, ...]
    required_capabilities: tuple[str, ...]
    priority: str
    parent_task_id: str = ""
    reference_task_ids: tuple[str, ...] = ()
    # Of a plan's task: what it works from, what it must hand back, what the run was given, what an approver said.
    expected_inputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    upstream: tuple[UpstreamView, ...] = ()
    workflow_input: Any = None
    note: str = ""
    # The notes that those left who did the tasks before this one; not who they are.
    prior_context: tuple[str, ...] = ()
    erased: bool = False


def _asked(document: Document | None, task: Task) -> dict[str, Any]:
    """What the task's document says, by the names of the views."""
    stated = document or {}
    return {
        "title": stated.get("title", ""),
        "description": stated.get("description", ""),
        "input": stated.get("input"),
        "brief": stated.get("brief"),
        "completion_criteria": tuple(stated.get("completionCriteria", ())),
        "erased": document is None,
    }


def planned(document: Document, plan_task: str) -> Document:
    """What a plan says of one of its tasks."""
    tasks = document["plan"].get("tasks", ())
    found: Document = next((task for task in tasks if task.get("id") == plan_task), {})
    return found


def _named(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "queue_id": task.queue_id,
        "workflow_id": task.workflow_id,
        "plan_task_id": task.plan_task,
        "priority": PRIORITIES[task.priority],
        "required_roles": task.roles,
        "required_capabilities": task.capabilities,
    }


def _where(task: Task) -> dict[str, Any]:
    return {
        "state": task.state,
        "attempt": task.attempt,
        "agent_id": task.agent_id,
        "created_at": iso_time(task.created_at),
        "updated_at": iso_time(task.updated_at),
    }


def summary_view(task: Task, document: Document | None) -> TaskSummary:
    asked = _asked(document, task)
    return TaskSummary(**_named(task), **_where(task), title=asked["title"], erased=asked["erased"])


def assignment(
    task: Task,
    attempt: int,
    document: Document | None,
    *,
    upstream: tuple[UpstreamView, ...] = (),
    workflow_input: Any = None,
    note: str = "",
    prior_context: tuple[str, ...] = (),
) -> Assignment:
    stated = document or {}
    return Assignment(
        **_named(task),
        **_asked(document, task),
        attempt=attempt,
        context_id=task.context_id,
        outputs=task.outputs,
        parent_task_id=task.parent_task_id,
        reference_task_ids=task.reference_task_ids,
        expected_inputs=tuple(stated.get("expectedInputs", ())),
        output_contract=stated.get("outputContract"),
        upstream=upstream,
        workflow_input=workflow_input,
        note=note,
        prior_context=prior_context,
    )


def task_view(task: Task, read: Read, sequence: int | None = None) -> TaskView:
    """A task in full; `read` gives documents by hash."""
    document = read(task.content_sha256)
    if document is not None and task.plan_task:
        document = planned(document, task.plan_task)
    ended = read(task.output_sha256) if task.output_sha256 else None
    said = ended or {}
    return TaskView(
        **_named(task),
        **_where(task),
        **_asked(document, task),
        context_id=task.context_id,
        parent_task_id=task.parent_task_id,
        reference_task_ids=task.reference_task_ids,
        outputs=task.outputs,
        output_contract=(document or {}).get("outputContract"),
        depends_on=tuple((document or {}).get("dependsOn", ())),
        waits_for=task.waits_for,
        max_attempts=task.max_attempts,
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
        ended_at=moment(task.ended_at),
        sequence=sequence,
    )


def claim_view(task: Task) -> ClaimView | None:
    """Who holds the task; None when nobody does."""
    if not task.claim_id:
        return None
    return ClaimView(
        claim_id=task.claim_id,
        agent_id=task.agent_id,
        claimed_at=moment(task.claimed_at),
        started_at=moment(task.started_at),
        lease_expires_at=moment(task.lease_expires_at),
    )


def _blocker(task: Task, read: Read) -> BlockerView | None:
    if task.state != "blocked":
        return None
    document = read(task.reason_sha256)
    said = document or {}
    return BlockerView(
        blocker_type=task.blocker_type,
        reason=said.get("reason", ""),
        suggested_resolution=said.get("suggestedResolution", ""),
        depends_on=task.blocked_by,
        erased=document is None,
    )


def _failure(task: Task, read: Read) -> FailureView | None:
    if task.state != "failed":
        return None
    said = (read(task.reason_sha256) or {}) if task.reason_sha256 else {}
    return FailureView(kind=task.failure_kind, reason=said.get("reason", ""))


def _artifact(artifact: Artifact, read: Read) -> ArtifactView:
    document = read(artifact.document_sha256)
    said = document or {}
    return ArtifactView(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        version=artifact.version,
        readiness=artifact.readiness,
        sha256=artifact.sha256,
        bytes=artifact.bytes,
        media_type=said.get("mediaType", ""),
        uri=said.get("uri", ""),
        erased=document is None,
    )


class MessageView(View, frozen=True, kw_only=True):
    """An inbox message."""

    message_id: str
    to: str
    sender: str
    priority: int
    message_type: str
    subject: str = ""
    body: str = ""
    action_required: bool
    ref_task_id: str = ""
    sent_at: str
    read_at: str | None = None
    erased: bool = False


# What a message says that RedKey itself sent: its text is the document of what happened.
_SUBJECTS = {"task.blocked": "A task is blocked", "exec.gate": "A task waits for approval"}


def message_view(message: Message, document: Document | None) -> MessageView:
    said = document or {}
    return MessageView(
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
