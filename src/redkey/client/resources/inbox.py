"""The inbox: messages to an agent, to the holders of a role, or to the humans."""

from __future__ import annotations

from typing import Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import Page
from redkey.client.request import Request, at, get, post
from redkey.shapes.inbox import InboxMessage as InboxMessage
from redkey.shapes.inbox import MessageRead as MessageRead
from redkey.shapes.inbox import MessageType as MessageType
from redkey.shapes.inbox import SentMessage as SentMessage
from redkey.shapes.inbox import SentMessages as SentMessages


class Inbox(Resource[Mode]):
    """Messages."""

    @Operation
    def send(
        self,
        to: str,
        subject: str,
        *,
        body: str | None = None,
        priority: Literal[1, 2, 3] | None = None,
        message_type: MessageType | None = None,
        ref_task_id: str | None = None,
        action_required: bool | None = None,
        agent_id: str | None = None,
    ) -> Request[SentMessages]:
        """Send a message to an agent (id or slug), to a role, or to `human`; `agent_id` is whom a runner speaks for."""
        return post(
            "/inbox",
            SentMessages,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            message_type=message_type,
            ref_task_id=ref_task_id,
            action_required=action_required,
            agent_id=agent_id,
        )

    @Listing
    def list(
        self,
        *,
        to: str | None = None,
        unread: bool | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[InboxMessage]]:
        """Messages to the humans or to an agent, by priority, then by age."""
        return get("/inbox", Page[InboxMessage], to=to, unread=unread, limit=limit, after=after)

    @Operation
    def read(self, message_id: str) -> Request[MessageRead]:
        """Mark a message as read."""
        return post(at("inbox", message_id, "read"), MessageRead)
