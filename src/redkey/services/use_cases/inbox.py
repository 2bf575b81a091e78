"""The inbox: messages to an agent, to the holders of a role, or to the humans, by priority, then by age."""

from __future__ import annotations

from redkey.commands.decision import not_found, wrong
from redkey.commands.registry import ReadMessage, SendMessage
from redkey.ledger.ports import Row
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import entity, message_list
from redkey.readmodel.task_view import message_view
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.pages import cursor_of, place_after
from redkey.services.use_cases.texts import keep
from redkey.shapes import inbox
from redkey.shapes.fields import Page, set_fields
from redkey.shapes.inbox import (
    AgentInboxFilter,
    InboxFilter,
    InboxMessage,
    MessageRead,
    NewInboxMessage,
    SentMessage,
    SentMessages,
)
from redkey.wire.events import InboxSent
from redkey.wire.ids import event_id
from redkey.wire.names import role_id

HUMANS = "human"


@use_case(inbox.SEND_MESSAGE)
def send_message(caller: Caller, new: NewInboxMessage, *, message_id: str = "") -> Pending[SentMessages]:
    """Send a message. An interface with a message id of its own derives `message_id` from it.

    Such a message is sent once: a second time it is refused as `message_exists`.
    """
    name = new.to or new.to_agent
    if name is None or (new.to is not None and new.to_agent is not None):
        raise wrong("recipient_missing", "/to", "give to or toAgent, and not both")
    to = recipient(caller, name, "/to" if new.to else "/toAgent")
    if new.ref_task_id is not None and caller.means.store.row(caller.topic, "task", new.ref_task_id) is None:
        raise wrong("unknown_task", "/refTaskId", "there is no such task in this workspace")
    ref, content = keep(caller, set_fields(new, "subject", "body"))
    command = SendMessage(
        message_id or "msg_" + caller.means.ids.ulid(),
        to,
        new.priority,
        new.message_type,
        ref,
        new.ref_task_id or "",
        new.action_required,
        new.agent_id or "",
    )
    return Pending(command, _sent, (content,))


def _sent(outcome: Outcome, place: Place) -> SentMessages:
    sent = tuple(
        SentMessage(
            message_id=payload.message_id,
            to=payload.to.removeprefix("agent:"),
            event_id=event_id(one.event.wire_id),
        )
        for one in outcome.records
        if type(payload := one.event.payload) is InboxSent
    )
    return SentMessages(message_id=sent[0].message_id, event_id=sent[0].event_id, messages=sent)


def recipient(caller: Caller, name: str, pointer: str = "/to", *, or_humans: bool = False) -> str:
    """Return the recipient for a name: `human`, `agent:ID` (by id or slug) or `role:ID`.

    An unknown name is refused at its place in the request, or means the humans.
    """
    if name == HUMANS:
        return name
    world = caller.means.coordinator.peek(caller.topic)
    plain = name.removeprefix("agent:")
    agent_id = plain if plain in world.agents else world.slugs.get(plain)
    if agent_id is not None:
        return f"agent:{agent_id}"
    role = role_id(name.removeprefix("role:"))
    if role in world.roles:
        return f"role:{role}"
    if or_humans:
        return HUMANS
    raise wrong("recipient_unknown", pointer, "there is no such agent or role in this workspace")


@use_case(inbox.LIST_INBOX)
def list_inbox(caller: Caller, asked: InboxFilter) -> Page[InboxMessage]:
    """List the messages to the humans, or to one agent; an agent key sees its own only."""
    own = caller.actor.agent_id
    if asked.to is None:
        return _box(caller, f"agent:{own}" if own else HUMANS, asked)
    to = recipient(caller, asked.to)
    if to.startswith("role:"):
        raise wrong("recipient_unknown", "/to", "mail to a role is in the inboxes of the agents that have it")
    if own and to != f"agent:{own}":
        raise not_found("inbox")
    return _box(caller, to, asked)


@use_case(inbox.LIST_AGENT_INBOX)
def list_agent_inbox(caller: Caller, agent_id: str, asked: AgentInboxFilter) -> Page[InboxMessage]:
    """List the messages to an agent."""
    own = caller.actor.agent_id
    if caller.means.store.row(caller.topic, "agent", agent_id) is None or (own and own != agent_id):
        raise not_found("agent")
    return _box(caller, f"agent:{agent_id}", asked)


def _box(caller: Caller, to: str, asked: InboxFilter | AgentInboxFilter) -> Page[InboxMessage]:
    """Return a page of one inbox; read and unread messages are two lists in one order."""
    store, topic, after = caller.means.store, caller.topic, place_after(asked)
    rows: list[Row] = []
    for read in (False,) if asked.unread else (False, True):
        rows.extend(store.rows(topic, "message", message_list(to, read=read), after, asked.limit))
    rows.sort(key=lambda row: (row.position, row.key))
    page = rows[: asked.limit]
    following = cursor_of(page[-1]) if len(page) == asked.limit else None
    return Page(tuple(_show(caller, entity(row)) for row in page), following)


def _show(caller: Caller, message: entities.Message) -> InboxMessage:
    """Show a message with its text. One that points at a task's own document shows the text of the task."""
    store, topic = caller.means.store, caller.topic
    row = store.row(topic, "task", message.ref_task_id) if message.ref_task_id else None
    if row is not None and entity(row).content_sha256 == message.body_sha256:
        return message_view(message, task_document(store, topic, entity(row)))
    return message_view(message, read_document(store, topic, message.body_sha256))


@use_case(inbox.READ_MESSAGE)
def read_message(caller: Caller, message_id: str) -> Pending[MessageRead]:
    """Mark a message as read."""

    def reply(outcome: Outcome, place: Place) -> MessageRead:
        record = outcome.first("inbox.read")
        happened = event_id(record.event.wire_id) if record is not None else ""
        return MessageRead(message_id=message_id, status="read", event_id=happened)

    return Pending(ReadMessage(message_id), reply)
