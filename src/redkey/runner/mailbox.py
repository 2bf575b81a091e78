"""An agent's inbox at the server: read unread messages, mark them as read, send messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from redkey.client import ClientError, Invalid, RedKey
from redkey.runner.mail import Mail
from redkey.runner.prompt import Message, Remark
from redkey.runner.words import repeatable
from redkey.shapes.tasks import ArtifactPart, DataPart, FilePart, Part, TextPart

_log = logging.getLogger("redkey.runner")
URGENT = 1
_REMARKS = 20
_READ = 500


def remarks_on(rk: RedKey, task_id: str, answer: str = "") -> list[Remark]:
    """Return the messages about a task without progress, newest last, and the answer to its block."""
    said = []
    # The server lists the oldest first; a task with more messages shows the last of these.
    for message in islice(rk.tasks.messages(task_id), _READ):
        text = "\n".join(_words(part) for part in message.parts)
        if not message.erased and (message.metadata or {}).get("kind") != "progress" and text.strip():
            said.append(Remark(message.sender, message.at, text))
    if answer:
        said.append(Remark("answer to the block", "now", answer))
    return said[-_REMARKS:]


def _words(part: Part) -> str:
    """Return a part of a message as text."""
    match part:
        case TextPart():
            return part.text
        case DataPart():
            return msgspec.json.encode(part.data).decode()
        case ArtifactPart():
            return f"(artifact {part.artifact_id})"
        case FilePart():
            return f"({part.uri}, sha256 {part.sha256})"


class Mailbox:
    """The inbox of one agent. Calls of the sync client go to threads: its connections are shared with the worker."""

    def __init__(self, rk: RedKey, agent_id: str, limit: int) -> None:
        self._rk, self._agent_id, self._limit = rk, agent_id, limit

    async def unread(self) -> list[Message]:
        """Return unread messages, most urgent first."""
        return await asyncio.to_thread(self._unread)

    def _unread(self) -> list[Message]:
        listed = self._rk.agents.inbox(self._agent_id, unread=True, limit=self._limit)
        return [
            Message(
                message_id=one.message_id,
                priority=one.priority,
                message_type=one.message_type,
                sender=one.sender,
                subject=one.subject or ("(erased)" if one.erased else "(no subject)"),
                body=one.body,
                ref_task_id=one.ref_task_id,
                action_required=one.action_required,
            )
            for one in islice(listed, self._limit)
        ]

    async def until_urgent(self, known: set[str], seconds: float) -> list[Message]:
        """Wait for an urgent message that the agent has not been shown yet."""
        while True:
            await asyncio.sleep(seconds)
            try:
                found = await self.unread()
            except ClientError as failure:
                _log.warning("the inbox could not be read (%s)", failure.code)
                continue
            if any(one.priority == URGENT and one.message_id not in known for one in found):
                return found

    async def mark_read(self, message_ids: Iterable[str]) -> None:
        """Mark messages as read after the agent has run with them in its prompt."""
        for message_id in message_ids:
            try:
                await asyncio.to_thread(self._rk.inbox.read, message_id)
            except ClientError as failure:
                # The message stays unread and is shown again; that must not fail the work.
                _log.warning("%s could not be marked as read (%s)", message_id, failure.code)

    async def send(self, mail: Iterable[Mail], task_id: str) -> None:
        """Send messages in the agent's name; messages to unknown recipients go to the humans."""
        for message in mail:
            try:
                await self._send(message.to_agent, message, message.subject, task_id)
            except Invalid as refused:
                _log.warning("a message to %s was refused (%s)", message.to_agent, refused.code)
                subject = f"(meant for {message.to_agent}) {message.subject}"
                await self._send("human", message, subject[:500], task_id)

    async def _send(self, to: str, message: Mail, subject: str, task_id: str) -> None:
        said: dict[str, Any] = {
            "body": repeatable(message.body) if message.body else None,
            "priority": message.priority,
            "message_type": message.message_type,
            # The agent's reference may not exist; its own task does.
            "ref_task_id": task_id,
            "action_required": message.action_required,
            "agent_id": self._agent_id,
        }
        await asyncio.to_thread(lambda: self._rk.inbox.send(to, repeatable(subject), **said))
