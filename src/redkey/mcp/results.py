"""Results of tools: one named object each, never a top-level `status`, because some hosts grade results by it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic import BaseModel, Field

from redkey.shapes.claims import ArtifactAdded, Assignment
from redkey.shapes.gates import Gate
from redkey.shapes.inbox import InboxMessage
from redkey.shapes.tasks import Artifact, Explanation, Task, TaskSummary

# Any JSON value, spelled out, because not every host understands a schema without a type.
Json = dict[str, Any] | list[Any] | str | float | bool | None


def plain(value: Any) -> Any:
    """A reply of the SDK as JSON values."""
    return msgspec.to_builtins(value)


class UpstreamArtifact(BaseModel):
    """An artifact of a task that this one depends on; read it with get_artifact."""

    name: str
    artifact_id: str
    task_id: str
    bytes: int
    media_type: str = ""


class Lineage(BaseModel):
    """The place of a task among others, and the data that its creation left on the record."""

    context_id: str = ""
    correlation_id: str = ""
    parent_task_id: str = ""
    reference_task_ids: list[str] = []
    extensions: dict[str, Any] | None = None

    @classmethod
    def of(cls, task: Assignment | Task) -> Lineage:
        """The lineage of a task in the words of the tools."""
        return cls(
            context_id=task.context_id,
            correlation_id=task.correlation_id,
            parent_task_id=task.parent_task_id,
            reference_task_ids=list(task.reference_task_ids),
            extensions=task.extensions,
        )


class Work(BaseModel):
    """The task that is now yours."""

    task_id: str
    queue: str
    title: str
    description: str = ""
    input: Json = None
    brief: dict[str, Any] | None = None
    completion_criteria: list[str] = []
    required_outputs: list[str] = Field(
        default=[], description="Add an artifact under each of these names before you complete the task."
    )
    output_contract: dict[str, Any] | None = None
    answer: str = Field(default="", description="The answer to the question that blocked this task before.")
    reviewer_note: str = Field(default="", description="The note of the approver who rejected the last attempt.")
    notes_of_earlier_tasks: list[str] = []
    upstream: list[UpstreamArtifact] = []
    workflow_input: Json = None
    attempt: int = 1
    lineage: Lineage

    @classmethod
    def of(cls, task: Assignment) -> Work:
        """Convert the SDK's assignment."""
        return cls(
            task_id=task.task_id,
            queue=task.queue_id.removeprefix("queue_"),
            title=task.title,
            description=task.description,
            input=task.input,
            brief=task.brief,
            completion_criteria=list(task.completion_criteria),
            required_outputs=list(task.outputs),
            output_contract=task.output_contract,
            answer=task.answer,
            reviewer_note=task.note,
            notes_of_earlier_tasks=list(task.prior_context),
            upstream=[
                UpstreamArtifact(
                    name=artifact.name,
                    artifact_id=artifact.artifact_id,
                    task_id=artifact.task_id,
                    bytes=artifact.bytes,
                    media_type=artifact.media_type,
                )
                for artifact in task.upstream
            ],
            workflow_input=task.workflow_input,
            attempt=task.attempt,
            lineage=Lineage.of(task),
        )


class Claim(BaseModel):
    """The outcome of a claim. Losing a race and finding nothing are normal."""

    outcome: Literal["claimed", "nothing_yet", "missed", "rejected"]
    next_step: str = Field(description="What to do now, in one sentence.")
    claim_id: str = ""
    task: Work | None = None
    lease_expires_at: str = ""
    won_by: str = Field(default="", description="The agent that has the task, if you lost the race.")


class ClaimReply(BaseModel):
    """The outcome of a claim."""

    claim: Claim


class Ended(BaseModel):
    """A task that you no longer hold."""

    task_id: str
    state: Literal["completed", "failed", "blocked", "released"]
    event_id: str = Field(description="The event that records it; get_receipt proves it.")
    next_step: str
    another_attempt: bool = False
    gate_id: str = Field(default="", description="The approval that the finished work waits for.")


class EndedReply(BaseModel):
    """A task that you no longer hold."""

    task: Ended


class Reported(BaseModel):
    """A report, and whether it was recorded: a task gets at most one record per second."""

    task_id: str
    recorded: bool


class ReportedReply(BaseModel):
    """The result of a report."""

    report: Reported


class ArtifactInfo(BaseModel):
    """An artifact. Short text is in `content`; anything else is saved to a file."""

    name: str
    artifact_id: str
    task_id: str
    version: int = 1
    bytes: int = 0
    media_type: str = ""
    sha256: str = ""
    content: str | None = None
    saved_to: str = ""

    @classmethod
    def of(cls, artifact: Artifact | ArtifactAdded, task_id: str, **more: Any) -> ArtifactInfo:
        """Convert the SDK's artifact."""
        fields = {name: getattr(artifact, name) for name in ("name", "artifact_id", "version", "sha256")}
        return cls(task_id=task_id, **fields, **more)


class ArtifactReply(BaseModel):
    """An artifact."""

    artifact: ArtifactInfo


class TaskInfo(BaseModel):
    """A task in a list."""

    task_id: str
    title: str
    state: str
    queue: str
    priority: str
    attempt: int
    required_roles: list[str] = []
    agent_id: str = ""
    workflow_id: str = ""

    @classmethod
    def of(cls, task: TaskSummary) -> TaskInfo:
        """Convert the SDK's summary of a task."""
        return cls(
            task_id=task.task_id,
            title=task.title,
            state=task.state,
            queue=task.queue_id.removeprefix("queue_"),
            priority=task.priority,
            attempt=task.attempt,
            required_roles=[role.removeprefix("role_") for role in task.required_roles],
            agent_id=task.agent_id,
            workflow_id=task.workflow_id,
        )


class TaskList(BaseModel):
    """Tasks of a queue."""

    tasks: list[TaskInfo]
    more: bool = Field(default=False, description="Whether there are more than these.")


class NewTaskInfo(BaseModel):
    """A task that was created."""

    task_id: str
    queue: str
    event_id: str


class NewTaskReply(BaseModel):
    """A task that was created."""

    task: NewTaskInfo


class PlanInfo(BaseModel):
    """A plan that was started."""

    workflow_id: str
    queue: str
    tasks: int
    next_step: str


class PlanReply(BaseModel):
    """A plan that was started."""

    plan: PlanInfo


class ReasonInfo(BaseModel):
    """One thing that keeps a task from running."""

    code: str
    message: str


class ExplanationInfo(BaseModel):
    """Why a task is in its state, and what would change it."""

    task_id: str
    title: str
    state: str
    reasons: list[ReasonInfo]
    agent_id: str = ""
    failure: str = ""
    question: str = ""
    summary: str = ""
    lineage: Lineage

    @classmethod
    def of(cls, task: Task, explained: Explanation) -> ExplanationInfo:
        """Combine the SDK's two views of a task."""
        return cls(
            task_id=task.task_id,
            title=task.title,
            state=explained.state,
            reasons=[ReasonInfo(code=reason.code, message=reason.message) for reason in explained.reasons],
            agent_id=task.agent_id,
            failure=task.failure.reason if task.failure is not None else "",
            question=task.blocker.reason if task.blocker is not None else "",
            summary=task.summary,
            lineage=Lineage.of(task),
        )


class ExplanationReply(BaseModel):
    """Why a task is in its state, and what would change it."""

    explanation: ExplanationInfo


class ApprovalInfo(BaseModel):
    """Finished work that waits for an approval."""

    gate_id: str
    task_id: str
    title: str
    done_by: str
    opened_at: str
    approvers: list[str] = []

    @classmethod
    def of(cls, gate: Gate) -> ApprovalInfo:
        """Convert the SDK's gate."""
        return cls(
            gate_id=gate.gate_id,
            task_id=gate.task_id,
            title=gate.title,
            done_by=gate.agent_id or gate.worker,
            opened_at=gate.opened_at,
            approvers=list(gate.approvers),
        )


class ApprovalList(BaseModel):
    """Finished work that waits for an approval."""

    approvals: list[ApprovalInfo]


class DecisionInfo(BaseModel):
    """A decision that was recorded."""

    gate_id: str
    task_id: str
    decision: str
    event_id: str


class DecisionReply(BaseModel):
    """A decision that was recorded."""

    approval: DecisionInfo


class SentInfo(BaseModel):
    """A message that was sent."""

    message_id: str
    recipients: list[str]


class SentReply(BaseModel):
    """A message that was sent."""

    message: SentInfo


class MessageInfo(BaseModel):
    """An inbox message."""

    message_id: str
    sender: str
    subject: str
    body: str = ""
    about_task: str = ""
    action_required: bool = False
    sent_at: str = ""

    @classmethod
    def of(cls, message: InboxMessage) -> MessageInfo:
        """Convert the SDK's message."""
        return cls(
            message_id=message.message_id,
            sender=message.sender,
            subject=message.subject,
            body=message.body,
            about_task=message.ref_task_id,
            action_required=message.action_required,
            sent_at=message.sent_at,
        )


class Inbox(BaseModel):
    """Messages to you."""

    messages: list[MessageInfo]


class ReceiptInfo(BaseModel):
    """The proof that an event is on the ledger."""

    event_id: str
    type: str = ""
    sequence: int = 0
    document: dict[str, Any] | None = None
    saved_to: str = ""


class ReceiptReply(BaseModel):
    """The proof that an event is on the ledger."""

    receipt: ReceiptInfo


class BusMessageInfo(BaseModel):
    """A live message of another agent."""

    message_id: str
    sender: str
    text: str


class BusMessages(BaseModel):
    """Live messages of other agents, oldest first."""

    messages: list[BusMessageInfo]
    next_step: str


class BusAgentInfo(BaseModel):
    """An agent of the live session."""

    agent: str
    name: str = ""


class BusAgents(BaseModel):
    """The agents in the live session of this project."""

    session: str
    you: str
    agents: list[BusAgentInfo]
