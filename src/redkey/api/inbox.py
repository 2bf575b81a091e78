"""The inbox: messages to an agent, to the holders of a role, or to the humans, by priority, then by age."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import Body, Id, Listed, Name, Page, Text, given, place_after, wrong
from redkey.commands.decision import not_found
from redkey.commands.registry import ReadMessage, SendMessage
from redkey.http.route import AGENT, PRODUCE, READ, Route
from redkey.ledger.ports import Row
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import entity, message_list
from redkey.readmodel.task_view import MessageView, message_view
from redkey.readmodel.view import Document, View, read_document
from redkey.reducers.entities import Message
from redkey.reducers.world import World
from redkey.services.use_cases.texts import keep
from redkey.shapes.fields import TaskId
from redkey.wire.ids import event_id
from redkey.wire.names import role_id


class NewMail(Body, frozen=True, kw_only=True):
    """The payload of seed 000's inbox wire. `to` is an agent (id or slug), a role, or human; `toAgent` is the same."""

    to: Name | None = None
    to_agent: Name | None = None
    priority: Annotated[int, Meta(ge=1, le=3)] = 3
    message_type: Literal["task.feedback", "status.update", "task.blocked", "exec.gate", "question", "info"] = "info"
    ref_task_id: TaskId | None = None
    subject: Annotated[str, Meta(min_length=1, max_length=500)]
    body: Text = ""
    action_required: bool = False
    # The agent whose words these are, where a runner speaks for it.
    agent_id: Id | None = None


class Sent(View, frozen=True, kw_only=True):
    """One message that was sent."""

    message_id: str
    to: str
    event_id: str


class SentMail(View, frozen=True, kw_only=True):
    """What was sent; to a role, one message went to each active agent that has it."""

    message_id: str
    event_id: str
    messages: tuple[Sent, ...]


class InboxQuery(Page, frozen=True, kw_only=True):
    """Whose messages, and whether read ones too."""

    to: Name | None = None
    unread: bool = False


class AgentInboxQuery(Page, frozen=True, kw_only=True):
    """Whether read messages too."""

    unread: bool = False


class MarkedRead(View, frozen=True, kw_only=True):
    """The message is read; an event only when it was not before."""

    message_id: str
    event_id: str = ""
    status: Literal["read"]


async def send_message(call: Call, body: NewMail) -> SentMail:
    """Send a message."""
    name = body.to or body.to_agent
    if name is None or (body.to is not None and body.to_agent is not None):
        raise wrong("recipient_missing", "/to", "give to or toAgent, and not both")
    to = _recipient(call.services.coordinator.peek(call.topic), name, "/to" if body.to else "/toAgent")
    if body.ref_task_id is not None and call.services.store.row(call.topic, "task", body.ref_task_id) is None:
        raise wrong("unknown_task", "/refTaskId", "there is no such task in this workspace")
    ref, content = keep(call, given(body, "subject", "body"))
    command = SendMessage(
        "msg_" + call.services.ids.ulid(),
        to,
        body.priority,
        body.message_type,
        ref,
        body.ref_task_id or "",
        body.action_required,
        body.agent_id or "",
    )
    outcome = await call.submit(command, (content,))
    sent = tuple(
        Sent(
            message_id=one.wire["payload"]["message_id"],
            to=one.wire["payload"]["to"].removeprefix("agent:"),
            event_id=event_id(one.event.wire_id),
        )
        for one in outcome.records
        if one.event.type == "inbox.sent"
    )
    return SentMail(message_id=sent[0].message_id, event_id=sent[0].event_id, messages=sent)


def _recipient(world: World, name: str, pointer: str) -> str:
    """Whom a name means: the humans, an agent by id or slug, a role."""
    if name == "human":
        return name
    plain = name.removeprefix("agent:")
    agent_id = plain if plain in world.agents else world.slugs.get(plain)
    if agent_id is not None:
        return f"agent:{agent_id}"
    role = role_id(name.removeprefix("role:"))
    if role in world.roles:
        return f"role:{role}"
    raise wrong("recipient_unknown", pointer, "there is no such agent or role in this workspace")


async def list_inbox(call: Call) -> Listed[MessageView]:
    """The messages to the humans, or to one agent; an agent key sees its own only."""
    asked: InboxQuery = call.query
    own = call.actor.agent_id
    if asked.to is None:
        return _box(call, f"agent:{own}" if own else "human", asked)
    to = _recipient(call.services.coordinator.peek(call.topic), asked.to, "/to")
    if to.startswith("role:"):
        raise wrong("recipient_unknown", "/to", "mail to a role is in the inboxes of the agents that have it")
    if own and to != f"agent:{own}":
        raise not_found("inbox")
    return _box(call, to, asked)


async def list_agent_inbox(call: Call) -> Listed[MessageView]:
    """The messages to an agent."""
    agent_id, own = call.path["agent_id"], call.actor.agent_id
    if call.services.store.row(call.topic, "agent", agent_id) is None or (own and own != agent_id):
        raise not_found("agent")
    return _box(call, f"agent:{agent_id}", call.query)


def _box(call: Call, to: str, asked: InboxQuery | AgentInboxQuery) -> Listed[MessageView]:
    """A page of one inbox; read and unread messages are two lists of one order."""
    store, topic, after = call.services.store, call.topic, place_after(asked)
    rows: list[Row] = []
    for read in (False,) if asked.unread else (False, True):
        rows.extend(store.rows(topic, "message", message_list(to, read=read), after, asked.limit))
    rows.sort(key=lambda row: (row.position, row.key))
    page = rows[: asked.limit]
    following = f"{page[-1].position}.{page[-1].key}" if len(page) == asked.limit else None
    found = [entity(row) for row in page]
    return Listed(tuple(message_view(one, _said(call, one)) for one in found), following)


def _said(call: Call, message: Message) -> Document | None:
    """What a message says; where it points at a task's own document, what that asks, of a plan the one task."""
    store, topic = call.services.store, call.topic
    row = store.row(topic, "task", message.ref_task_id) if message.ref_task_id else None
    if row is not None and entity(row).content_sha256 == message.body_sha256:
        return task_document(store, topic, entity(row))
    return read_document(store, topic, message.body_sha256)


async def read_message(call: Call) -> MarkedRead:
    """Mark a message as read."""
    outcome = await call.submit(ReadMessage(call.path["message_id"]))
    record = outcome.first("inbox.read")
    happened = event_id(record.event.wire_id) if record is not None else ""
    return MarkedRead(message_id=call.path["message_id"], status="read", event_id=happened)


ROUTES = [
    Route(
        "POST",
        "/inbox",
        send_message,
        (*PRODUCE, *AGENT),
        body=NewMail,
        reply=SentMail,
        status=201,
        summary="Send a message to an agent, to a role or to the humans.",
        replies={404: "The caller may not speak for agentId, or there is no such agent."},
        idempotent=True,
        example={
            "to": "human",
            "priority": 2,
            "messageType": "question",
            "subject": "Which audience?",
            "body": "The brief names none.",
            "actionRequired": True,
        },
    ),
    Route(
        "GET",
        "/inbox",
        list_inbox,
        READ,
        query=InboxQuery,
        reply=Listed[MessageView],
        summary="Messages to the humans or to an agent, by priority, then by age.",
        replies={404: "An agent key asks for an inbox that is not its agent's."},
    ),
    Route(
        "GET",
        "/agents/{agent_id}/inbox",
        list_agent_inbox,
        READ,
        query=AgentInboxQuery,
        reply=Listed[MessageView],
        summary="Messages to an agent, by priority, then by age.",
    ),
    Route(
        "POST",
        "/inbox/{message_id}/read",
        read_message,
        (*PRODUCE, *AGENT),
        reply=MarkedRead,
        summary="Mark a message as read.",
        idempotent=True,
    ),
]
