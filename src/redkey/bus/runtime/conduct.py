"""The rules of conduct: a conversation has one owner, and loops end.

Ownership: the first message decides the owner. Only the owner sends `user` or `control` messages in a conversation;
others answer with `reply`. Loops: a reply must not answer a reply, a chain of answers has a limit, and two agents that
keep starting conversations with each other in turn are stopped. Every decision depends on earlier messages only, never
on retries. The bus applies the rules to guarded sessions; each client applies them to what it sends.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, Protocol, TypeVar

import msgspec

from redkey.bus.envelope import USER
from redkey.bus.runtime.events import Kind, Message

CHAIN_LIMIT = 16
# Two agents may start this many conversations with each other in turn within TURN_SECONDS.
TURNS = 64
TURN_SECONDS = 60.0
_REMEMBERED = 50_000
# Kinds that give instructions; the others answer or inform.
DIRECTING: tuple[Kind, ...] = ("user", "control")
V = TypeVar("V")


class Breach(msgspec.Struct, frozen=True):
    """The rule that a message breaks."""

    code: str
    message: str


class EarlierMessage(msgspec.Struct, frozen=True, gc=False):
    """The fields of an earlier message that the rules need."""

    src: str
    kind: Kind
    cause: str | None = None


class Earlier(Protocol):
    """Finds messages that are no longer in memory."""

    def said(self, session_id: str, message_id: str) -> EarlierMessage | None: ...

    def owner(self, session_id: str, conversation_id: str) -> str | None: ...


class _Place(msgspec.Struct, frozen=True, gc=False):
    """A message's kind and its place in the chain of answers, 0 for the first."""

    kind: Kind
    depth: int


class _Recent(Generic[V]):
    """A mapping that forgets its oldest entries."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, str], V] = OrderedDict()

    def get(self, key: tuple[str, str]) -> V | None:
        return self._entries.get(key)

    def put(self, key: tuple[str, str], value: V) -> None:
        self._entries[key] = value
        if len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)


class _Exchange(msgspec.Struct):
    """Two agents that start conversations with each other in turn: the last two senders and when they sent."""

    senders: tuple[str, str]
    times: deque[float]


class Conduct:
    """The rules, applied to the messages noted so far."""

    def __init__(self, earlier: Earlier | None = None, *, chain: int = CHAIN_LIMIT) -> None:
        self._earlier, self._chain = earlier, chain
        self._places: _Recent[_Place] = _Recent()
        self._owners: _Recent[str] = _Recent()
        # The last message to each agent in each conversation; a reply without a link answers this one.
        self._last: _Recent[str] = _Recent()
        self._exchanges: _Recent[_Exchange] = _Recent()

    def judge(self, message: Message, now: float) -> Breach | None:
        """Return the rule that a message would break; None if it may be sent."""
        return self._judge_owner(message) or self._judge_loop(message, now)

    def note(self, message: Message, now: float) -> None:
        """Remember a message that was sent or received."""
        self._places.put((message.session_id, message.id), _Place(message.kind, self._depth(message)))
        key = message.session_id, message.conversation_id
        # A reply cannot begin a conversation, so the owner that it names does not count.
        if message.kind in DIRECTING and self._owners.get(key) is None:
            self._owners.put(key, self.owner(*key) or message.conversation_owner)
        self._last.put((message.session_id, f"{message.conversation_id}\n{message.dst or ''}"), message.id)
        if (run := self._exchange(message, now)) is not None:
            self._exchanges.put(self._pair(message), run)

    def owner(self, session_id: str, conversation_id: str) -> str | None:
        """The owner of a conversation; None if it has not begun."""
        known = self._owners.get((session_id, conversation_id))
        if known is None and self._earlier is not None:
            known = self._earlier.owner(session_id, conversation_id)
        return known

    def is_foreign_follow_up(self, message: Message) -> bool:
        """Whether a message is an instruction in a conversation that its sender does not own."""
        return message.kind in DIRECTING and self._judge_owner(message) is not None

    def may_answer(self, message: Message) -> bool:
        """False if an answer to this message would exceed the limit of its chain."""
        return self._depth(message) < self._chain

    def _judge_owner(self, message: Message) -> Breach | None:
        owner = self.owner(message.session_id, message.conversation_id)
        if message.kind in DIRECTING and (owner or message.conversation_owner) != message.src:
            text = f"only {owner or message.conversation_owner} may follow up in this conversation; begin your own"
            return Breach("not_owner", text)
        if owner is not None and message.conversation_owner != owner:
            return Breach("conversation_owned", f"this conversation belongs to {owner}; name that owner")
        return None

    def _judge_loop(self, message: Message, now: float) -> Breach | None:
        cause = self._cause(message)
        place = self._place(message.session_id, cause, self._chain) if cause is not None else None
        if place is not None and place.kind == "reply" and message.kind == "reply":
            return Breach("loop_stopped", "a reply must not answer a reply")
        if place is not None and place.depth >= self._chain:
            return Breach("loop_stopped", f"this chain of answers has reached its limit of {self._chain}")
        run = self._exchange(message, now)
        if run is not None and len(run.times) > TURNS and now - run.times[0] < TURN_SECONDS:
            text = (
                f"{TURNS} conversations were begun in turn within {TURN_SECONDS:g} seconds; answer with a reply instead"
            )
            return Breach("loop_stopped", text)
        return None

    def _depth(self, message: Message) -> int:
        known = self._places.get((message.session_id, message.id))
        if known is not None:
            return known.depth
        cause = self._cause(message)
        place = self._place(message.session_id, cause, self._chain) if cause is not None else None
        return place.depth + 1 if place is not None else 0

    def _cause(self, message: Message) -> str | None:
        """The message that this one answers: the one it names, or for a reply the last one that its sender got."""
        named = message.parent_message_id or message.reply_to
        if named is not None or message.kind != "reply":
            return named
        session_id, conversation = message.session_id, message.conversation_id
        to_sender = self._last.get((session_id, f"{conversation}\n{message.src}"))
        return to_sender or self._last.get((session_id, f"{conversation}\n"))

    def _place(self, session_id: str, message_id: str, left: int) -> _Place | None:
        """The position of a message in its chain; after `left` links the chain is too long anyway."""
        known = self._places.get((session_id, message_id))
        if known is not None or self._earlier is None:
            return known
        said = self._earlier.said(session_id, message_id)
        if said is None:
            return None
        before = self._place(session_id, said.cause, left - 1) if said.cause is not None and left > 0 else None
        place = _Place(said.kind, before.depth + 1 if before is not None else 0)
        self._places.put((session_id, message_id), place)
        return place

    def _pair(self, message: Message) -> tuple[str, str]:
        return message.session_id, "\n".join(sorted((message.src, message.dst or "")))

    def _exchange(self, message: Message, now: float) -> _Exchange | None:
        """The run of turns that a message would continue or begin; None if it is linked, or from or to a person."""
        known = message.conversation_id != message.id and self.owner(message.session_id, message.conversation_id)
        if known or self._cause(message) is not None or message.kind == "system":
            return None
        if USER in (message.src, message.dst):
            return None
        run = self._exchanges.get(self._pair(message))
        if run is None or run.senders[1] == message.src or run.senders[0] not in ("", message.src):
            return _Exchange(("", message.src), deque([now], maxlen=TURNS + 1))
        return _Exchange((run.senders[1], message.src), deque([*run.times, now], maxlen=TURNS + 1))
