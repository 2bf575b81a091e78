"""The runtime of an agent as a state machine: local lines, messages and model output in; actions out.

Each conversation has one owner, and only the owner follows up or relays in it. Its targets are fixed when it begins.
During a relay, replies to it are processed first, in their order, and everything else waits. No I/O: `driver` sends the
messages and asks the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

from redkey.bus.runtime.chatting import message_lines
from redkey.bus.runtime.conduct import CHAIN_LIMIT, Conduct
from redkey.bus.runtime.events import AgentsUpdated, Message, Peer
from redkey.bus.runtime.intents import InvalidIntent, LocalAnswer, MessageAgent, TaskDone, read_intent, wants_plan
from redkey.bus.runtime.targets import plain, read_mentions, resolve

# Invalid model output is sent back with the error this often.
RETRIES = 2
# A relay ends after asking its model this often.
ROUNDS = 64


class Conversation(msgspec.Struct):
    """A running relay. The owner is fixed; it is a field so that a transfer can be added."""

    id: str
    owner: str
    targets: frozenset[str]
    task: str
    plan: tuple[str, ...] = ()
    plans: bool = False
    rounds: int = 0
    retries: int = 0


class ModelPrompt(msgspec.Struct, frozen=True):
    """What the model is asked for: an answer, or the next intent of a relay."""

    role: Literal["answer", "relay"]
    text: str
    sender: str | None = None
    # For a relay: its task, its targets as (id, name), whether a plan is wanted, and the last error.
    task: str | None = None
    targets: tuple[tuple[str, str], ...] = ()
    wants_plan: bool = False
    error: str | None = None


class AskModelAction(msgspec.Struct, frozen=True):
    """Ask the model; its output comes back as `output`."""

    prompt: ModelPrompt


class SendAction(msgspec.Struct, frozen=True):
    """Send a message."""

    dst: str
    text: str
    kind: Literal["user", "reply"]
    conversation: tuple[str, str]
    reply_to: Message | None = None


class ShowAction(msgspec.Struct, frozen=True):
    """Show something to the local user."""

    text: str
    kind: Literal["answer", "summary", "message", "error", "plan", "sent"]


Action = AskModelAction | SendAction | ShowAction


class _Work(msgspec.Struct, frozen=True):
    """Something that waits for the model: a local line or a message."""

    text: str
    message: Message | None = None


class AgentRuntime:
    """The runtime of one agent in one session."""

    def __init__(self, agent: str, ids: Callable[[], str], *, chain: int = CHAIN_LIMIT) -> None:
        self._agent, self._ids, self._conduct = agent, ids, Conduct(chain=chain)
        self._peers: tuple[Peer, ...] = ()
        self.conversation: Conversation | None = None
        self._asking: _Work | None = None
        self._replies: deque[_Work] = deque()
        self._waiting: deque[_Work] = deque()

    # Input.

    def agents(self, update: AgentsUpdated) -> None:
        """Take over the agents of the session."""
        self._peers = update.agents

    def label(self, agent_id: str) -> str:
        """The name of an agent, else its id."""
        return next((peer.label for peer in self._peers if peer.id == agent_id), agent_id)

    def sent(self, message: Message) -> None:
        """Note a sent message, so that answers to it count in its chain."""
        self._conduct.note(message, 0.0)

    def local(self, text: str) -> list[Action]:
        """Process a local line: with mentions it begins a conversation, else it is for the model."""
        errors = read_mentions(text, self._peers, self._agent).errors
        if errors:
            return [ShowAction(f"not sent: {'; '.join(errors)}", "error")]
        self._waiting.append(_Work(text))
        return self._next()

    def received(self, message: Message) -> list[Action]:
        """Process a message: a user message is answered, a reply continues its relay."""
        if self._conduct.is_foreign_follow_up(message):
            owner = self._conduct.owner(message.session_id, message.conversation_id) or message.conversation_owner
            return [ShowAction(f"{message.src} follows up in a conversation of {owner}; not answered", "error")]
        self._conduct.note(message, 0.0)
        may_answer = self._conduct.may_answer(message)
        if message.kind == "reply" and self._is_ours(message):
            self._replies.append(_Work(message.text, message))
            return self._next()
        if message.kind != "user":
            return [ShowAction(message_lines(message.sender_name or message.src, message.text), "message")]
        if not may_answer:
            return [ShowAction(f"the chain of answers with {message.src} reached its limit; not answered", "error")]
        self._waiting.append(_Work(message.text, message))
        return self._next()

    def output(self, text: str) -> list[Action]:
        """Process the output of the model."""
        work, self._asking = self._asking, None
        if work is None:
            return []
        conversation = self.conversation
        if conversation is None:
            actions = self._answered(work, text)
        elif work.message is None or self._is_ours(work.message):
            actions = self._intended(conversation, work, text)
        else:
            actions = self._answered(work, text)
        return actions + self._next()

    def failed(self, reason: str) -> list[Action]:
        """Drop the question, and end the relay, because the model could not be asked."""
        self._asking = self.conversation = None
        return [ShowAction(reason, "error"), *self._next()]

    # Internals.

    def _is_ours(self, message: Message) -> bool:
        conversation = self.conversation
        return (
            conversation is not None
            and conversation.owner == self._agent
            and message.conversation_owner == self._agent
            and message.conversation_id == conversation.id
            and message.src in conversation.targets
        )

    def _next(self) -> list[Action]:
        """Give the model its next question, if it is free."""
        if self._asking is not None:
            return []
        if self.conversation is not None:
            if not self._replies:
                return []
            work = self._replies.popleft()
            return self._ask_relay(self.conversation, work, error=None)
        # Replies to a finished relay are only shown.
        shown: list[Action] = [ShowAction(message_lines(_sender(work), work.text), "message") for work in self._replies]
        self._replies.clear()
        if not self._waiting:
            return shown
        work = self._waiting.popleft()
        targets = read_mentions(work.text, self._peers, self._agent).targets if work.message is None else ()
        if targets:
            self.conversation = Conversation(
                self._ids(), self._agent, frozenset(targets), plain(work.text), plans=wants_plan(work.text)
            )
            return shown + self._ask_relay(self.conversation, work, error=None)
        self._asking = work
        return [*shown, AskModelAction(ModelPrompt("answer", work.text, work.message.src if work.message else None))]

    def _ask_relay(self, conversation: Conversation, work: _Work, *, error: str | None) -> list[Action]:
        conversation.rounds += 1
        if conversation.rounds > ROUNDS:
            self.conversation = None
            return [ShowAction(f"the relay did not end within {ROUNDS} rounds", "error"), *self._next()]
        self._asking = work
        names = tuple((peer.id, peer.label) for peer in self._peers if peer.id in conversation.targets)
        wants = conversation.plans and not conversation.plan
        sender = work.message.src if work.message is not None else None
        return [AskModelAction(ModelPrompt("relay", work.text, sender, conversation.task, names, wants, error))]

    def _answered(self, work: _Work, text: str) -> list[Action]:
        if work.message is None:
            return [ShowAction(text, "answer")]
        asked = work.message
        conversation = (asked.conversation_id, asked.conversation_owner)
        return [SendAction(asked.src, text, "reply", conversation, asked)]

    def _intended(self, conversation: Conversation, work: _Work, text: str) -> list[Action]:
        intent = read_intent(text)
        if isinstance(intent, LocalAnswer):
            self.conversation = None
            return [ShowAction(intent.text, "answer")]
        if isinstance(intent, TaskDone):
            self.conversation = None
            done: list[Action] = [ShowAction(_plan(conversation.plan, done=True), "plan")] if conversation.plan else []
            return [*done, ShowAction(intent.summary or "done", "summary")]
        if isinstance(intent, MessageAgent):
            targets = resolve(intent.targets, self._peers, conversation.targets)
            if targets:
                return self._relayed(conversation, intent, targets)
            intent = InvalidIntent(f"none of {', '.join(intent.targets)} is a target of this conversation")
        return self._again(conversation, work, intent.reason)

    def _relayed(self, conversation: Conversation, intent: MessageAgent, targets: list[str]) -> list[Action]:
        conversation.retries = 0
        actions: list[Action] = []
        if intent.plan and conversation.plans and not conversation.plan:
            conversation.plan = intent.plan
            actions.append(ShowAction(_plan(intent.plan, done=False), "plan"))
        about = (conversation.id, conversation.owner)
        return actions + [SendAction(target, intent.text, "user", about) for target in targets]

    def _again(self, conversation: Conversation, work: _Work, reason: str) -> list[Action]:
        conversation.retries += 1
        if conversation.retries > RETRIES:
            self.conversation = None
            return [ShowAction(f"the model did not give a usable intent: {reason}", "error")]
        return self._ask_relay(conversation, work, error=reason)


def _sender(work: _Work) -> str:
    return work.message.src if work.message is not None else ""


def _plan(steps: tuple[str, ...], *, done: bool) -> str:
    marks = ["x" if done else ">" if index == 0 else " " for index in range(len(steps))]
    return "\n".join(f"[{mark}] {step}" for mark, step in zip(marks, steps, strict=True))
