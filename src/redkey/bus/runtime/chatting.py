"""A person at a terminal as a state machine: what a typed line becomes, who gets it, and what is shown.

A line that mentions agents begins a conversation with them, or answers the open question of the one that it mentions.
A line without a mention goes to the last writer, or to the last recipients. The terminal fixes the recipients when the
person begins to type, so a message that arrives meanwhile cannot change them. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from redkey.bus.envelope import ALL_AGENTS, LEDGER
from redkey.bus.runtime.events import Message, Peer
from redkey.bus.runtime.targets import matches, plain, read_mentions
from redkey.bus.runtime.weave1_fields import given


class Outgoing(msgspec.Struct, frozen=True):
    """A line to send: the same text to one or several agents."""

    targets: tuple[str, ...]
    text: str
    kind: Literal["user", "reply"]
    conversation: tuple[str, str]
    reply_to: Message | None = None


class _Thread(msgspec.Struct, frozen=True):
    """What the next line to an agent belongs to: its question, or the person's own conversation."""

    conversation: tuple[str, str]
    question: Message | None = None


class Chat:
    """One person in one session."""

    def __init__(self, agent: str, ids: Callable[[], str]) -> None:
        self._agent, self._ids = agent, ids
        self._peers: dict[str, Peer] = {}
        self._threads: dict[str, _Thread] = {}
        # Unanswered questions by sender.
        self._open: dict[str, Message] = {}
        # The recipients of a line without a mention.
        self.recipients: tuple[str, ...] = ()

    def agents(self, peers: Sequence[Peer]) -> None:
        """Take over the agents of the session."""
        self._peers = {peer.id: peer for peer in peers}

    def label(self, agent_id: str) -> str:
        """The name of an agent, with its id if the name could mean another agent too."""
        peer = self._peers.get(agent_id)
        if peer is None or peer.name is None:
            return agent_id
        shared = len(matches(peer.name, list(self._peers.values()), any_case=True)) > 1
        return f"{peer.name} ({agent_id})" if shared else peer.name

    def labels(self, agent_ids: Sequence[str]) -> str:
        """The names of several agents."""
        return ", ".join(self.label(key) for key in agent_ids)

    def received(self, message: Message) -> str:
        """Take in a message; return the text that shows it."""
        if message.src != LEDGER and message.kind in ("user", "reply"):
            self.recipients = (message.src,)
            if message.kind == "user":
                self._open[message.src] = message
                self._threads[message.src] = _Thread((message.conversation_id, message.conversation_owner), message)
            elif message.conversation_owner == self._agent:
                self._threads[message.src] = _Thread((message.conversation_id, self._agent))
        known = message.src in self._peers
        sender = self.label(message.src) if known else message.sender_name or message.src
        return message_lines(sender, message.text)

    def happened(self, envelope: Mapping[str, Any]) -> str | None:
        """Take in another event; return the line that shows it, if it is shown."""
        payload = envelope.get("payload")
        fields: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
        key, event = given(fields.get("id")), envelope.get("type")
        if event == "session.closed":
            return "The session was closed."
        if event == "message.refused" and fields.get("src") == self._agent:
            return f"not sent: {fields.get('reason')}"
        if key is None or key == self._agent:
            return None
        before, name = self._peers.get(key), given(fields.get("name"))
        if event == "agent.created":
            self._peers[key] = Peer(key, name, bool(fields.get("lead")))
            return f"{self.label(key)} joined."
        if event == "agent.online":
            return f"{self.label(key)} is back."
        if event == "agent.away":
            return f"{self.label(key)} is away."
        if event == "agent.deleted":
            label = self.label(key)
            self._forget(key)
            return f"{label} left."
        if event == "agent.updated":
            label = self.label(key)
            self._peers[key] = Peer(key, name, bool(fields.get("lead")))
            return f"{label} is now {self.label(key)}." if before is None or before.name != name else None
        return None

    def compose(self, text: str, recipients: tuple[str, ...] | None = None) -> Outgoing | str:
        """Turn a typed line into a message, or a sentence that says why it is not sent.

        `recipients` were fixed when typing began.
        """
        mentions = read_mentions(text, self._peers.values(), self._agent)
        if mentions.errors:
            return f"not sent: {'; '.join(mentions.errors)}"
        targets = mentions.targets or (self.recipients if recipients is None else recipients)
        gone = [key for key in targets if key not in self._peers]
        if not targets:
            return "mention an agent with #name; /agents shows who is here"
        if gone:
            return f"not sent: {', '.join(gone)} left the session"
        return self._outgoing(targets, plain(text), mentioned=bool(mentions.targets))

    def sent(self, line: Outgoing) -> None:
        """Note a sent line: the next one goes to the same agents, in the same conversation."""
        self.recipients = line.targets
        for key in line.targets:
            if line.reply_to is not None and self._open.get(key) is line.reply_to:
                del self._open[key]
            self._threads[key] = _Thread(line.conversation, line.reply_to)

    def _outgoing(self, targets: tuple[str, ...], text: str, *, mentioned: bool) -> Outgoing:
        threads = {self._threads[key] for key in targets if key in self._threads} if len(targets) == 1 else set()
        question = self._open.get(targets[0]) if len(targets) == 1 else None
        if question is not None:
            about = (question.conversation_id, question.conversation_owner)
            return Outgoing(targets, text, "reply", about, question)
        if not mentioned and len(targets) == 1 and threads:
            thread = threads.pop()
            kind: Literal["user", "reply"] = "reply" if thread.question is not None else "user"
            return Outgoing(targets, text, kind, thread.conversation, thread.question)
        if not mentioned and len({self._conversation(key) for key in targets}) == 1:
            shared = self._conversation(targets[0])
            if shared is not None and shared[1] == self._agent:
                return Outgoing(targets, text, "user", shared)
        return Outgoing(targets, text, "user", (self._ids(), self._agent))

    def _conversation(self, key: str) -> tuple[str, str] | None:
        thread = self._threads.get(key)
        return thread.conversation if thread is not None else None

    def _forget(self, key: str) -> None:
        self._peers.pop(key, None)
        self._threads.pop(key, None)
        self._open.pop(key, None)
        # Do not fall back to the previous recipient.
        self.recipients = tuple(recipient for recipient in self.recipients if recipient != key)


def message_lines(sender: str, text: str) -> str:
    """Show a message after its sender; further lines are indented, so none can pass for another agent's message."""
    return f"{sender}: " + "\n    ".join(text.splitlines())


def destination(envelope: Mapping[str, Any]) -> str:
    """The destination of a message as text: an agent, `all agents` or `leads`."""
    to_all = envelope.get("topic") == ALL_AGENTS
    return str(envelope.get("dst") or ("all agents" if to_all else "leads"))
