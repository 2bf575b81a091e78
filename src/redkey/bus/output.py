"""What one connection sends: replies, events and messages, joined per turn of the loop and bounded in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from redkey.bus.envelope import BUS, Envelope, EnvelopeFault, fault_of
from redkey.bus.mailbox import OutgoingMessage
from redkey.bus.model import MESSAGE, SessionRecord
from redkey.bus.weave1 import event_for_v1, for_v0, for_v1
from redkey.errors import BusRefused

if TYPE_CHECKING:
    from redkey.bus.uds import UdsFace

_encode = msgspec.json.Encoder().encode
# The usual types, encoded once.
_TYPES = {name: _encode(name) for name in ("agent.list", "agent.add", "message.send", "session.list", "events.history")}


class ConnectionOutput(asyncio.Protocol):
    """The sending half of a connection. `paused` is true while the reader takes less than it is sent."""

    def __init__(self, face: UdsFace) -> None:
        self._face, self.bus = face, face.bus
        # The protocol version of the connection's last request.
        self.version = 0
        self.paused = False
        self._closing = False
        # Lines of this turn of the loop, and their size.
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        # Bytes given to the transport so far, and how many of them the reader had taken at the last check.
        self._written = self._taken = 0
        # Live events that a slow reader could not take.
        self._missed = 0
        self._transport: asyncio.Transport

    def write(self, line: bytes) -> None:
        """Send a line with all others of this turn of the loop, in one call of the transport."""
        if self._closing:
            return
        if not self._outgoing:
            self._face.flush_later(self)
        self._outgoing.append(line)
        self._outgoing_bytes += len(line)
        if self._outgoing_bytes > self.bus.limits.output_bytes:
            self.flush()

    def flush(self) -> None:
        """Give the lines of this turn to the transport."""
        if self._outgoing:
            lines, self._outgoing = self._outgoing, []
            self._written += self._outgoing_bytes
            self._outgoing_bytes = 0
            self._transport.write(b"".join(lines))

    def deliver(self, message: OutgoingMessage) -> None:
        """Send a message in the version that the reader speaks."""
        if self.version:
            self.write(for_v1(message))
        elif message.newer or message.type != MESSAGE:
            self.write(for_v0(message))
        else:
            self.write(message.line)

    def tell(self, record: SessionRecord, agent_id: str) -> None:
        """Send an event of a session to an agent, or count it as missed while the reader is slow."""
        if self.paused:
            self._missed += 1
        else:
            self.write(event_for_v1(record, agent_id) if self.version else record.envelope + b"\n")

    def report_missed(self) -> None:
        """Send how many live events were missed, if any."""
        if self._missed:
            missed, self._missed = self._missed, 0
            self.say("events.missed", payload={"count": missed})

    def reply(
        self, request: Envelope, payload: Any = None, *, session: str | None = None, fault: EnvelopeFault | None = None
    ) -> None:
        """Answer a request: the reply has the request's type, and its id as `corr`."""
        part = b""
        if payload is not None:
            part = b',"payload":%b' % _encode(payload)
        if fault is not None:
            part += b',"status":"error","error":%b' % _encode(fault)
        else:
            part += b',"status":"ok"'
        self._reply(request, session or request.session, part)

    def reply_raw(self, request: Envelope, payload: bytes) -> None:
        """Answer with a payload that is already JSON."""
        self._reply(request, request.session, b',"payload":%b,"status":"ok"' % payload)

    def _reply(self, request: Envelope, session: str | None, part: bytes) -> None:
        # Formatted by hand, because every request waits for this.
        self.write(
            b'{"v":%d,"type":%b,"id":"%b","ts":"%b","src":"bus"%b,"corr":%b%b}\n'
            % (
                request.v,
                _TYPES.get(request.type) or _encode(request.type),
                self._face.new_id(),
                self.bus.stamp(),
                b',"session":%b' % _encode(session) if session is not None else b"",
                _encode(request.id),
                part,
            )
        )

    def say(
        self, event: str, *, payload: Any = None, fault: EnvelopeFault | None = None, corr: str | None = None
    ) -> None:
        """Send an event of the bus itself, such as an error or the end of a stream."""
        self.write(
            Envelope(
                v=self.version,
                type=event,
                id=self._face.new_id().decode(),
                ts=self.bus.now(),
                src=BUS,
                corr=corr,
                payload=payload,
                status="error" if fault is not None else None,
                error=fault,
            ).encode()
            + b"\n"
        )

    def done(self, request: Envelope, payload: Any = None, *, session: str | None = None) -> Any:
        """Give the callback that answers a request once its change is durable."""

        def answer(refused: BusRefused | None) -> None:
            if refused is None:
                self.reply(request, payload, session=session)
            else:
                self.reply(request, fault=fault_of(refused))

        return answer
