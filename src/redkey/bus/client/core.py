"""The core of both clients: bytes in, replies and messages out; requests in, bytes out. No sockets.

A message is given to the application once for each id: redelivered copies are only confirmed again. The ids are kept
over reconnects too. What the agent sends keeps the rules of conduct, whether or not the bus enforces them.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from redkey.bus.envelope import VERSION
from redkey.bus.home import find_home
from redkey.bus.runtime.conduct import DIRECTING, Conduct
from redkey.bus.runtime.events import Kind, Message, message_of
from redkey.errors import BusRefused
from redkey.wire.times import write_time

T = TypeVar("T")
_REMEMBERED = 100_000
Envelope = dict[str, Any]


class ClientRequest(msgspec.Struct, Generic[T], frozen=True):
    """A request: its fields, how to read its reply, and whether it may be sent again after a lost connection."""

    type: str
    read: Callable[[Envelope], T]
    fields: dict[str, Any] = {}
    again: bool = True
    # The sender, if not the client's agent.
    src: str = ""


class Received:
    """The ids of messages that the application already got."""

    def __init__(self, limit: int = _REMEMBERED) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._limit = limit

    def first(self, message_id: str) -> bool:
        """True the first time that an id arrives."""
        if message_id in self._ids:
            self._ids.move_to_end(message_id)
            return False
        self._ids[message_id] = None
        if len(self._ids) > self._limit:
            self._ids.popitem(last=False)
        return True


class ClientState:
    """What both clients know besides their connection."""

    def __init__(
        self, home: Path | str | None = None, *, timeout: float = 30.0, reconnect_seconds: float = 30.0
    ) -> None:
        self._home = Path(home) if home is not None else find_home(os.environ)
        self._timeout, self._reconnect = timeout, reconnect_seconds
        self._core = ClientCore()
        self.session: str = ""
        self.name: str | None = None


class ClientCore:
    """The client side of the protocol, before and after an agent has joined."""

    def __init__(self) -> None:
        self._buffer = b""
        self._received = Received()
        self._conduct = Conduct()
        self._answers: dict[str, Envelope] = {}
        self._pending: set[str] = set()
        self._streams: set[str] = set()
        # Confirmations to be sent.
        self.outgoing: deque[bytes] = deque()
        self.messages: deque[Message] = deque()
        self.records: deque[Envelope] = deque()
        # Events of the session other than messages.
        self.events: deque[Envelope] = deque(maxlen=1000)
        self.agent = ""

    # Output.

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
        """Compose a message of the agent: an answer stays in its conversation, any other begins a new one.

        Raise BusRefused if it would break a rule of conduct.
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
        """Whether a message may be answered: not replies and notices, nor at the end of a chain."""
        answers = message.kind in DIRECTING and self._conduct.may_answer(message)
        return answers and not self._conduct.is_foreign_follow_up(message)

    def encode(self, request: ClientRequest[Any], key: str, src: str) -> bytes:
        """Encode a request as a line, and expect its reply from now on."""
        fields = {name: value for name, value in request.fields.items() if value is not None}
        self._pending.add(key)
        if request.type == "events.stream":
            self._streams.add(key)
        envelope = {"v": VERSION, "type": request.type, "id": key, "ts": _now(), "src": src, **fields}
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

    # Input.

    def feed(self, data: bytes) -> None:
        """Process bytes that arrived."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            try:
                envelope = orjson.loads(line)
            except orjson.JSONDecodeError:
                # Skip a line that cannot be read; the next one may be valid.
                continue
            if isinstance(envelope, dict):
                self._take(envelope)

    def forget_connection(self) -> None:
        """Drop the state of a lost connection: half a line, pending requests and confirmations."""
        self._buffer = b""
        self._pending.clear()
        self._streams.clear()
        self._answers.clear()
        self.outgoing.clear()

    def answer(self, key: str, request: ClientRequest[T]) -> T:
        """Read the reply to a request; KeyError if there is none yet."""
        envelope = self._answers.pop(key)
        self._pending.discard(key)
        if envelope.get("status") == "error":
            error = envelope.get("error") or {}
            raise BusRefused(str(error.get("message", "refused")), code=str(error.get("code", "bus_refused")))
        return request.read(envelope)

    def answered(self, key: str) -> bool:
        """Whether a request has its reply."""
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
        # A reply to `message.send` has the same type, but a `status`.
        if envelope.get("corr") in self._pending and "status" in envelope:
            self._answers[envelope["corr"]] = envelope
            return
        message = message_of(envelope)
        if message.src == self.agent or message.dst != self.agent:
            return
        if self._received.first(message.id):
            if not self._conduct.is_foreign_follow_up(message):
                self._conduct.note(message, time.monotonic())
            self.messages.append(message)
        mode = (envelope.get("ack") or {}).get("mode")
        if mode == "auto":
            self.outgoing.append(self.confirmation(message))


def _now() -> str:
    return write_time(time.time_ns())[:23] + "Z"
