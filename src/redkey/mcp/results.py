"""What tools answer: one named object each, never a top-level `status`, because some hosts grade results by it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic import BaseModel, Field

from redkey.shapes.claims import ArtifactAdded, Assignment
from redkey.shapes.gates import Gate
from redkey.shapes.inbox import InboxMessage
from redkey.shapes.tasks import Artifact, Explanation, Task, TaskSummary

# Any JSON value; said out loud, because a schema without a type is not understood by every host.
Json = dict[str, Any] | list[Any] | str | float | bool | None


def plain(value: Any) -> Any:
    """A reply of the SDK as JSON values."""
    return msgspec.to_builtins(value)


class UpstreamArtifact(BaseModel):
    """An artifact of a task before this one; read it with get_artifact."""

    name: str
    artifact_id: str
    task_id: str
    bytes: int
    media_type: str = ""


class Work(BaseModel):
    """The task that is now yours, with everything that it comes with."""

    task_id: str
    queue: str
    title: str
    description: str = ""
    input: Json = None
    brief: dict[str, Any] | None = None
    completion_criteria: list[str] = []
    required_outputs: list[str] = Field(
        default=[], description="Add an artifact under each of these names before completing."
    )
    output_contract: dict[str, Any] | None = None
    answer: str = Field(default="", description="The answer to the question that blocked this task before.")
    reviewer_note: str = Field(default="", description="What the approver said who sent the work back.")
    notes_of_earlier_tasks: list[str] = []
    upstream: list[UpstreamArtifact] = []
    workflow_input: Json = None
    attempt: int = 1

    @classmethod
    def of(cls, task: Assignment) -> Work:
        """The assignment in the words of the tools."""
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
                    name=one.name,
                    artifact_id=one.artifact_id,
                    task_id=one.task_id,
                    bytes=one.bytes,
                    media_type=one.media_type,
                )
                for one in task.upstream
            ],
            workflow_input=task.workflow_input,
            attempt=task.attempt,
        )


class Claim(BaseModel):
    """How an attempt to get a task went. Losing a race and finding nothing are normal."""

    outcome: Literal["claimed", "nothing_yet", "missed", "rejected"]
    next_step: str = Field(description="What to do now, in one sentence.")
    claim_id: str = ""
    task: Work | None = None
    lease_expires_at: str = ""
    won_by: str = Field(default="", description="Who has the task, when the race was lost.")


class ClaimReply(BaseModel):
    """How an attempt to get a task went."""

    claim: Claim


class Ended(BaseModel):
    """What became of a task that you held."""

    task_id: str
    state: Literal["completed", "failed", "blocked", "released"]
    event_id: str = Field(description="The record of it; get_receipt proves it.")
    next_step: str
    another_attempt: bool = False
    gate_id: str = Field(default="", description="The approval that the finished work waits for.")


class EndedReply(BaseModel):
    """What became of a task that you held."""

    task: Ended


class Reported(BaseModel):
    """A report, and whether it was recorded: a task has one record each second at most."""

    task_id: str
    recorded: bool


class ReportedReply(BaseModel):
    """How a report went."""

    report: Reported


class ArtifactInfo(BaseModel):
    """An artifact. Its content comes when it is short text, and else is saved to a file."""

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
    def of(cls, found: Artifact | ArtifactAdded, task_id: str, **more: Any) -> ArtifactInfo:
        """The artifact in the words of the tools."""
        named = {name: getattr(found, name) for name in ("name", "artifact_id", "version", "sha256")}
        return cls(task_id=task_id, **named, **more)


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
        """The summary in the words of the tools."""
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
    """A task that was put on a queue."""

    task_id: str
    queue: str
    event_id: str


class NewTaskReply(BaseModel):
    """A task that was put on a queue."""

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
    """One thing between a task and its end."""

    code: str
    message: str


class ExplanationInfo(BaseModel):
    """Where a task stands and what would move it."""

    task_id: str
    title: str
    state: str
    reasons: list[ReasonInfo]
    agent_id: str = ""
    failure: str = ""
    question: str = ""
    summary: str = ""

    @classmethod
    def of(cls, task: Task, explained: Explanation) -> ExplanationInfo:
        """Both views of a task in the words of the tools."""
        return cls(
            task_id=task.task_id,
            title=task.title,
            state=explained.state,
            reasons=[ReasonInfo(code=one.code, message=one.message) for one in explained.reasons],
            agent_id=task.agent_id,
            failure=task.failure.reason if task.failure is not None else "",
            question=task.blocker.reason if task.blocker is not None else "",
            summary=task.summary,
        )


class ExplanationReply(BaseModel):
    """Where a task stands and what would move it."""

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
        """The gate in the words of the tools."""
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
        """The message in the words of the tools."""
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
    """Who is in the live session of this project."""

    session: str
    you: str
    agents: list[BusAgentInfo]
