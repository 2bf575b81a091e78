"""The inbox: messages to an agent, to the holders of a role, or to the humans, by priority, then by age.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, post
from redkey.shapes.fields import Page
from redkey.shapes.inbox import InboxMessage, MessageRead, MessageType, SentMessages


class Inbox(Resource[Mode]):
    """The inbox: messages to an agent, to the holders of a role, or to the humans, by priority, then by age."""

    @Operation
    def send(
        self,
        to: str,
        subject: str,
        *,
        body: str | None = None,
        priority: int | None = None,
        message_type: MessageType | None = None,
        ref_task_id: str | None = None,
        action_required: bool | None = None,
        agent_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[SentMessages]:
        """Send a message; `agentId` is the agent that a runner sends it for."""
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
            extensions=extensions,
        )

    @Listing
    def list(
        self, *, to: str | None = None, unread: bool | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[InboxMessage]]:
        """List the messages to the humans, or to one agent; an agent key sees only its own."""
        return get("/inbox", Page[InboxMessage], to=to, unread=unread, limit=limit, after=after)

    @Operation
    def read(self, message_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[MessageRead]:
        """Mark a message as read."""
        return post(at("inbox", message_id, "read"), MessageRead, extensions=extensions)
