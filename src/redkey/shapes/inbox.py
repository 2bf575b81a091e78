"""The inbox: messages to an agent, to the holders of a role, or to the humans, by priority, then by age."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from redkey.shapes.fields import Extended, Id, Identified, Name, Page, PageQuery, Reply, TaskId, Text, one_of
from redkey.shapes.operation import AGENT, PRODUCE, READ, Operation

MessageType = Literal["task.feedback", "status.update", "task.blocked", "exec.gate", "question", "info"]


class NewInboxMessage(Extended, frozen=True, kw_only=True):
    """The payload of seed 000's inbox wire. `to` is an agent (id or slug), a role, or human; `toAgent` is an alias."""

    to: Name | None = None
    to_agent: Name | None = None
    subject: Annotated[str, Meta(min_length=1, max_length=500)]
    body: Text = ""
    priority: Annotated[int, Meta(ge=1, le=3)] = 3
    message_type: MessageType = "info"
    ref_task_id: TaskId | None = None
    action_required: bool = False
    # The agent that sends the message, if a runner sends it for an agent.
    agent_id: Id | None = None


class InboxFilter(PageQuery, frozen=True, kw_only=True):
    """Whose messages to list; with `unread`, only unread ones."""

    to: Name | None = None
    unread: bool = False


class AgentInboxFilter(PageQuery, frozen=True, kw_only=True):
    """With `unread`, only unread messages."""

    unread: bool = False


class SentMessage(Identified, frozen=True, kw_only=True):
    """One message that was sent."""

    SPECIFIC: ClassVar[str] = "message_id"
    message_id: str
    to: str
    event_id: str


class SentMessages(Reply, frozen=True, kw_only=True):
    """The messages that were sent; a message to a role is sent to each active agent that has it."""

    message_id: str
    event_id: str
    messages: tuple[SentMessage, ...]


class InboxMessage(Identified, frozen=True, kw_only=True):
    """An inbox message."""

    SPECIFIC: ClassVar[str] = "message_id"
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


class MessageRead(Reply, frozen=True, kw_only=True):
    """The message is read; an event is written only if it was unread."""

    message_id: str
    event_id: str = ""
    status: Annotated[str, one_of("read")]


SEND_MESSAGE = Operation(
    "send_message",
    "POST",
    "/inbox",
    (*PRODUCE, *AGENT),
    body=NewInboxMessage,
    reply=SentMessages,
    status=201,
    summary="Send a message to an agent, to a role or to the humans.",
    description="Send a message; `agentId` is the agent that a runner sends it for.",
    replies={404: "The caller may not act for agentId, or there is no such agent."},
    example={
        "to": "human",
        "priority": 2,
        "messageType": "question",
        "subject": "Which audience?",
        "body": "The brief names none.",
        "actionRequired": True,
    },
    method_name="inbox.send",
    positional=("to", "subject"),
)
LIST_INBOX = Operation(
    "list_inbox",
    "GET",
    "/inbox",
    READ,
    query=InboxFilter,
    reply=Page[InboxMessage],
    summary="List messages to the humans or to an agent, by priority, then by age.",
    description="List the messages to the humans, or to one agent; an agent key sees only its own.",
    replies={404: "An agent key may read only the inbox of its agent."},
    method_name="inbox.list",
)
LIST_AGENT_INBOX = Operation(
    "list_agent_inbox",
    "GET",
    "/agents/{agent_id}/inbox",
    READ,
    query=AgentInboxFilter,
    reply=Page[InboxMessage],
    summary="List messages to an agent, by priority, then by age.",
    description="List the messages to an agent.",
    method_name="agents.inbox",
)
READ_MESSAGE = Operation(
    "read_message",
    "POST",
    "/inbox/{message_id}/read",
    (*PRODUCE, *AGENT),
    body=Extended,
    reply=MessageRead,
    summary="Mark a message as read.",
    method_name="inbox.read",
    command="inbox read MESSAGE",
)

OPERATIONS = (SEND_MESSAGE, LIST_INBOX, LIST_AGENT_INBOX, READ_MESSAGE)
