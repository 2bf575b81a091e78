"""An agent's runtime as a state machine: local words, messages and model output in; things to do out.

It owns conversations: each has one owner, and only the owner follows up or relays in it. The targets of a
conversation are frozen when it begins. While a relay is under way, replies to it go first (in their order), and
everything else waits. No I/O: who runs it sends the messages and asks the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

from redkey.bus.runtime.conduct import CHAIN_LIMIT, Conduct
from redkey.bus.runtime.events import AgentsUpdated, Message, Peer
from redkey.bus.runtime.intents import Invalid, LocalAnswer, MessageAgent, TaskDone, read_intent, wants_plan
from redkey.bus.runtime.targets import plain, read_mentions, resolve

# Invalid output is answered with what is wrong with it, this often.
RETRIES = 2
# A relay that has asked its model so often is not going to end by itself.
ROUNDS = 64


class Conversation(msgspec.Struct):
    """A relay under way. The owner is fixed for now; it is a field, so that a transfer can be added."""

    id: str
    owner: str
    targets: frozenset[str]
    task: str
    plan: tuple[str, ...] = ()
    plans: bool = False
    rounds: int = 0
    retries: int = 0


class Prompt(msgspec.Struct, frozen=True):
    """What the model is asked: to answer somebody, or as owner of a relay to say its next intent."""

    role: Literal["answer", "relay"]
    text: str
    sender: str | None = None
    # Of a relay: its task, its targets as (id, name), whether a plan is wanted, and what was wrong before.
    task: str | None = None
    targets: tuple[tuple[str, str], ...] = ()
    wants_plan: bool = False
    error: str | None = None


class AskModel(msgspec.Struct, frozen=True):
    """Ask the model; its output comes back as `output`."""

    prompt: Prompt


class Send(msgspec.Struct, frozen=True):
    """Send a message."""

    dst: str
    text: str
    kind: Literal["user", "reply"]
    conversation: tuple[str, str]
    reply_to: Message | None = None


class Show(msgspec.Struct, frozen=True):
    """Show something to the local user."""

    text: str
    kind: Literal["answer", "summary", "message", "error", "plan", "sent"]


Action = AskModel | Send | Show


class _Work(msgspec.Struct, frozen=True):
    """Something that waits for the model: local words, or a message."""

    text: str
    message: Message | None = None


class Owner:
    """The runtime of one agent in one session."""

    def __init__(self, agent: str, ids: Callable[[], str], *, chain: int = CHAIN_LIMIT) -> None:
        self._agent, self._ids, self._conduct = agent, ids, Conduct(chain=chain)
        self._peers: tuple[Peer, ...] = ()
        self.conversation: Conversation | None = None
        self._asking: _Work | None = None
        self._replies: deque[_Work] = deque()
        self._waiting: deque[_Work] = deque()

    # In.

    def agents(self, update: AgentsUpdated) -> None:
        self._peers = update.agents

    def label(self, agent_id: str) -> str:
        """How an agent is shown."""
        return next((peer.label for peer in self._peers if peer.id == agent_id), agent_id)

    def sent(self, message: Message) -> None:
        """A message of ours went out: answers to it stand in its chain."""
        self._conduct.note(message, 0.0)

    def local(self, text: str) -> list[Action]:
        """The local user says something: with mentions it begins a conversation, else it is for the model."""
        errors = read_mentions(text, self._peers, self._agent).errors
        if errors:
            return [Show(f"not sent: {'; '.join(errors)}", "error")]
        self._waiting.append(_Work(text))
        return self._next()

    def received(self, message: Message) -> list[Action]:
        """A message came. Only a user message is answered; a reply goes on with the relay it belongs to."""
        if self._conduct.is_follow_up_of_a_stranger(message):
            owner = self._conduct.owner(message.session_id, message.conversation_id) or message.conversation_owner
            return [Show(f"{message.src} follows up in a conversation of {owner}; not answered", "error")]
        self._conduct.note(message, 0.0)
        may_answer = self._conduct.may_answer(message)
        if message.kind == "reply" and self._is_ours(message):
            self._replies.append(_Work(message.text, message))
            return self._next()
        if message.kind != "user":
            return [Show(f"{message.sender_name or message.src}: {message.text}", "message")]
        if not may_answer:
            return [Show(f"{message.src} goes on and on; not answered", "error")]
        self._waiting.append(_Work(message.text, message))
        return self._next()

    def output(self, text: str) -> list[Action]:
        """The model has spoken."""
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
        """The model could not be asked: what it was asked for is over, and with it the relay."""
        self._asking = self.conversation = None
        return [Show(reason, "error"), *self._next()]

    # Inside.

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
        """Ask the model for what comes next, if it is free."""
        if self._asking is not None:
            return []
        if self.conversation is not None:
            if not self._replies:
                return []
            work = self._replies.popleft()
            return self._ask_relay(self.conversation, work, error=None)
        # Replies to a relay that is over are only shown.
        shown: list[Action] = [Show(f"{_sender(work)}: {work.text}", "message") for work in self._replies]
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
        return [*shown, AskModel(Prompt("answer", work.text, work.message.src if work.message else None))]

    def _ask_relay(self, conversation: Conversation, work: _Work, *, error: str | None) -> list[Action]:
        conversation.rounds += 1
        if conversation.rounds > ROUNDS:
            self.conversation = None
            return [Show(f"the relay did not end within {ROUNDS} rounds", "error"), *self._next()]
        self._asking = work
        names = tuple((peer.id, peer.label) for peer in self._peers if peer.id in conversation.targets)
        wants = conversation.plans and not conversation.plan
        sender = work.message.src if work.message is not None else None
        return [AskModel(Prompt("relay", work.text, sender, conversation.task, names, wants, error))]

    def _answered(self, work: _Work, text: str) -> list[Action]:
        if work.message is None:
            return [Show(text, "answer")]
        asked = work.message
        conversation = (asked.conversation_id, asked.conversation_owner)
        return [Send(asked.src, text, "reply", conversation, asked)]

    def _intended(self, conversation: Conversation, work: _Work, text: str) -> list[Action]:
        intent = read_intent(text)
        if isinstance(intent, LocalAnswer):
            self.conversation = None
            return [Show(intent.text, "answer")]
        if isinstance(intent, TaskDone):
            self.conversation = None
            done: list[Action] = [Show(_plan(conversation.plan, done=True), "plan")] if conversation.plan else []
            return [*done, Show(intent.summary or "done", "summary")]
        if isinstance(intent, MessageAgent):
            targets = resolve(intent.targets, self._peers, conversation.targets)
            if targets:
                return self._relayed(conversation, intent, targets)
            intent = Invalid(f"none of {', '.join(intent.targets)} is a target of this conversation")
        return self._again(conversation, work, intent.reason)

    def _relayed(self, conversation: Conversation, intent: MessageAgent, targets: list[str]) -> list[Action]:
        conversation.retries = 0
        actions: list[Action] = []
        if intent.plan and conversation.plans and not conversation.plan:
            conversation.plan = intent.plan
            actions.append(Show(_plan(intent.plan, done=False), "plan"))
        about = (conversation.id, conversation.owner)
        return actions + [Send(target, intent.text, "user", about) for target in targets]

    def _again(self, conversation: Conversation, work: _Work, reason: str) -> list[Action]:
        conversation.retries += 1
        if conversation.retries > RETRIES:
            self.conversation = None
            return [Show(f"the model did not give a usable intent: {reason}", "error")]
        return self._ask_relay(conversation, work, error=reason)


def _sender(work: _Work) -> str:
    return work.message.src if work.message is not None else ""


def _plan(steps: tuple[str, ...], *, done: bool) -> str:
    marks = ["x" if done else ">" if index == 0 else " " for index in range(len(steps))]
    return "\n".join(f"[{mark}] {step}" for mark, step in zip(marks, steps, strict=True))
