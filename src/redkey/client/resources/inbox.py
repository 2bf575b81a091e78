"""The inbox: messages to an agent, to the holders of a role, or to the humans."""

from __future__ import annotations

from redkey.client.calls.inbox import Inbox
from redkey.shapes.inbox import InboxMessage, MessageRead, MessageType, SentMessage, SentMessages

__all__ = ["Inbox", "InboxMessage", "MessageRead", "MessageType", "SentMessage", "SentMessages"]
