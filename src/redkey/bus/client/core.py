"""What both clients do: bytes in, answers and messages out; requests in, bytes out. No sockets.

A message is handed to the application once for each id, whatever the bus delivers: redelivered copies are confirmed
again and go no further. The memory of ids outlives the connection, so that this holds over reconnects too. What the
agent sends keeps the rules of conduct, whatever the bus at the other end enforces.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from redkey.bus.envelope import VERSION
from redkey.bus.runtime.conduct import DIRECTING, Conduct
from redkey.bus.runtime.events import Kind, Message, message_of
from redkey.errors import BusRefused
from redkey.wire.times import write_time

T = TypeVar("T")
_REMEMBERED = 100_000
Envelope = dict[str, Any]


class Ask(msgspec.Struct, Generic[T], frozen=True):
    """A request: what is sent, what its answer means, and whether it may be sent again after a lost connection."""

    type: str
    read: Callable[[Envelope], T]
    fields: dict[str, Any] = {}
    again: bool = True
    # Who asks, if not the agent of the client.
    src: str = ""


class Received:
    """The ids of messages that the application has been given."""

    def __init__(self, limit: int = _REMEMBERED) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._limit = limit

    def first(self, message_id: str) -> bool:
        """True the first time that an id comes."""
        if message_id in self._ids:
            self._ids.move_to_end(message_id)
            return False
        self._ids[message_id] = None
        if len(self._ids) > self._limit:
            self._ids.popitem(last=False)
        return True


class ClientCore:
    """One agent's (or nobody's) side of the protocol."""

    def __init__(self) -> None:
        self._buffer = b""
        self._received = Received()
        self._conduct = Conduct()
        self._answers: dict[str, Envelope] = {}
        self._pending: set[str] = set()
        self._streams: set[str] = set()
        # Confirmations that wait to be sent.
        self.outgoing: deque[bytes] = deque()
        self.messages: deque[Message] = deque()
        self.records: deque[Envelope] = deque()
        # What happened in the session beside messages.
        self.events: deque[Envelope] = deque(maxlen=1000)
        self.agent = ""

    # Out.

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def compose(
        self,
        session: str,
        name: str | None,
        dst: str | None,
        text: str,
        kind: Kind | None,
        reply_to: Message | None,
        conversation: tuple[str, str] | None,
        message_id: str | None,
    ) -> Message:
        """A message of the agent: an answer stays in its conversation, another begins one of its own.

        BusRefused when it would break a rule of conduct.
        """
        key = message_id or self.new_id()
        if conversation is None and reply_to is not None:
            conversation = (reply_to.conversation_id, reply_to.conversation_owner)
        conversation_id, owner = conversation or (key, self.agent)
        if kind is None:
            kind = "user" if owner == self.agent else "reply"
        message = Message(
            id=key,
            session_id=session,
            src=self.agent,
            dst=dst,
            kind=kind,
            text=text,
            conversation_id=conversation_id,
            conversation_owner=owner,
            parent_message_id=reply_to.id if reply_to is not None else None,
            sender_name=name,
            created_at=_now(),
        )
        breach = self._conduct.judge(message, time.monotonic())
        if breach is not None:
            raise BusRefused(breach.message, code=breach.code)
        self._conduct.note(message, time.monotonic())
        return message

    def may_reply(self, message: Message) -> bool:
        """True for a message that is answered: not for replies and notices, nor where the chain must end."""
        answers = message.kind in DIRECTING and self._conduct.may_answer(message)
        return answers and not self._conduct.is_follow_up_of_a_stranger(message)

    def encode(self, ask: Ask[Any], key: str, src: str) -> bytes:
        """The line of a request; its answer is waited for from now on."""
        fields = {name: value for name, value in ask.fields.items() if value is not None}
        self._pending.add(key)
        if ask.type == "events.stream":
            self._streams.add(key)
        envelope = {"v": VERSION, "type": ask.type, "id": key, "ts": _now(), "src": src, **fields}
        return orjson.dumps(envelope) + b"\n"

    def confirmation(self, message: Message) -> bytes:
        """The line that confirms a message."""
        return orjson.dumps(
            {
                "v": VERSION,
                "type": "message.ack",
                "id": self.new_id(),
                "ts": _now(),
                "src": self.agent,
                "session": message.session_id,
                "corr": message.id,
                "payload": {"acked": message.id},
            }
        ) + b"\n"  # fmt: skip

    # In.

    def feed(self, data: bytes) -> None:
        """Take in what came."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            try:
                envelope = orjson.loads(line)
            except orjson.JSONDecodeError:
                # What cannot be read is somebody else's mistake; the next line may be fine.
                continue
            if isinstance(envelope, dict):
                self._take(envelope)

    def forget_connection(self) -> None:
        """The connection is gone, and with it half a line and the answers that were waited for."""
        self._buffer = b""
        self._pending.clear()
        self._streams.clear()
        self._answers.clear()
        self.outgoing.clear()

    def answer(self, key: str, ask: Ask[T]) -> T:
        """What a request was answered; KeyError while it was not."""
        envelope = self._answers.pop(key)
        self._pending.discard(key)
        if envelope.get("status") == "error":
            error = envelope.get("error") or {}
            raise BusRefused(str(error.get("message", "refused")), code=str(error.get("code", "bus_refused")))
        return ask.read(envelope)

    def answered(self, key: str) -> bool:
        return key in self._answers

    def _take(self, envelope: Envelope) -> None:
        corr, kind = envelope.get("corr"), envelope.get("type")
        if corr in self._streams and kind in ("events.record", "events.end"):
            self.records.append(envelope)
        elif corr in self._pending and kind != "message.send":
            self._answers[corr] = envelope
        elif kind == "message.send" and envelope.get("session"):
            self._take_message(envelope)
        else:
            self.events.append(envelope)

    def _take_message(self, envelope: Envelope) -> None:
        # The answer to a `message.send` has its type too, and says how it went.
        if envelope.get("corr") in self._pending and "status" in envelope:
            self._answers[envelope["corr"]] = envelope
            return
        message = message_of(envelope)
        if message.src == self.agent or message.dst != self.agent:
            return
        if self._received.first(message.id):
            if not self._conduct.is_follow_up_of_a_stranger(message):
                self._conduct.note(message, time.monotonic())
            self.messages.append(message)
        mode = (envelope.get("ack") or {}).get("mode")
        if mode == "auto":
            self.outgoing.append(self.confirmation(message))


def _now() -> str:
    return write_time(time.time_ns())[:23] + "Z"
