"""One connection over a Unix socket: lines in, lines out, both bounded.

It owns framing, the agents that speak through it and the streams that it follows; what a command does is left to
`commands`. While a reader takes less than it is sent, messages and records wait in the log, live events are counted as
missed, and requests wait in a bounded queue. Acknowledgements are still read and done: they cause no output, and a
client that must acknowledge before it reads on would otherwise wait for a bus that waits for the client.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from redkey.bus.envelope import BUS, LINE_LIMIT, Envelope, Fault, asked_id, fault_of, read_ack, read_line
from redkey.bus.mailbox import Parcel
from redkey.bus.polls import Poll
from redkey.bus.state import MESSAGE
from redkey.bus.weave1 import as_v1, for_v0, for_v1
from redkey.errors import BusRefused, JsonRefused, RedKeyError
from redkey.http.unix_sockets import peer_user

if TYPE_CHECKING:
    from redkey.bus.state import Session
    from redkey.bus.uds import UdsFace

_log = structlog.get_logger("redkey.bus")
_encode = msgspec.json.Encoder().encode
# How long a reader that was told that it is too slow has to take that in.
_FAREWELL_SECONDS = 10.0
# The usual types, written once.
_TYPES = {name: _encode(name) for name in ("agent.list", "agent.add", "message.send", "session.list", "events.history")}
# How long a caller whose stream has ended may still ask for something else.
_LINGER_SECONDS = 0.25


class Connection(asyncio.Protocol):
    """A caller on the socket of the bus, or on that of one session."""

    def __init__(self, face: UdsFace, session_id: str | None) -> None:
        self._face, self.bound_session = face, session_id
        self.bus, self.workspace = face.bus, face.workspace
        # (session, agent) that speak through here.
        self.agents: set[tuple[str, str]] = set()
        # The version that this connection speaks, by what it asked last.
        self.version = 0
        self.streams: dict[str, Any] = {}
        self._polls: set[Poll[Any]] = set()
        self.paused = False
        self._buffer = bytearray()
        # Requests that arrived while output was blocked.
        self._deferred: deque[bytes] = deque()
        self._deferred_bytes = 0
        # Bytes given to the transport so far, and how many of them the reader had taken at the last look.
        self._written = self._taken = 0
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._missed = 0
        self._closing = False
        self._heard_at = 0.0
        self._stalled: asyncio.TimerHandle | None = None
        self._patience: asyncio.TimerHandle | None = None
        # Ends a connection after a stream that was not to be followed.
        self._linger: asyncio.TimerHandle | None = None

    # What the event loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport, self._loop = transport, asyncio.get_running_loop()
        transport.set_write_buffer_limits(high=self.bus.limits.output_bytes)
        self._heard_at = self._loop.time()
        if not self._face.admit(self):
            self._refuse(Fault("too_many_connections", "the bus has as many connections as it takes"))
            return
        user = peer_user(transport.get_extra_info("socket"))
        if user not in (os.geteuid(), 0):
            _log.warning("a connection of another user was refused", user=user)
            self._refuse(Fault("peer_refused", "this bus is another user's"))
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._closing:
            return
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if not self._buffer and data.endswith(b"\n") and len(data) <= LINE_LIMIT:
            # Whole lines, as nearly always.
            for whole in data[:-1].split(b"\n"):
                self._line(whole)
            return
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        for line in lines:
            self._line(bytes(line))
        if len(rest) > LINE_LIMIT:
            self._refuse(Fault("line_too_long", f"a line has at most {LINE_LIMIT:,} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._outgoing.clear()
        for timer in (self._stalled, self._patience, self._linger):
            if timer is not None:
                timer.cancel()
        self._depart()
        self._face.gone(self)

    def pause_writing(self) -> None:
        self.paused = True
        self._taken = self._written - self._transport.get_write_buffer_size()
        self._stalled = self._loop.call_later(self.bus.limits.stalled_seconds, self._check_progress)

    def resume_writing(self) -> None:
        self.paused = False
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if self._closing:
            return
        self._run_deferred()
        if self.paused or self._closing:
            return
        if self._missed:
            missed, self._missed = self._missed, 0
            self.say("events.missed", payload={"count": missed})
        for session_id, agent_id in tuple(self.agents):
            self.bus.resume(session_id, agent_id)
        for stream in tuple(self.streams.values()):
            stream.wake()

    # What the bus calls.

    def write(self, line: bytes) -> None:
        """Send a line with all others of this turn of the loop: what is said together goes out by one call."""
        if self._closing:
            return
        if not self._outgoing:
            self._face.flush_later(self)
        self._outgoing.append(line)
        self._outgoing_bytes += len(line)
        if self._outgoing_bytes > self.bus.limits.output_bytes:
            self.flush()

    def deliver(self, parcel: Parcel) -> None:
        """Send a message in the version that the reader speaks."""
        if self.version:
            self.write(for_v1(parcel))
        elif parcel.newer or parcel.type != MESSAGE:
            self.write(for_v0(parcel))
        else:
            self.write(parcel.line)

    def flush(self) -> None:
        """Hand over to the transport what was written in this turn."""
        if self._outgoing:
            lines, self._outgoing = self._outgoing, []
            self._written += self._outgoing_bytes
            self._outgoing_bytes = 0
            self._transport.write(b"".join(lines))

    def tell(self, line: bytes) -> None:
        if self.paused:
            self._missed += 1
        else:
            self.write(as_v1(line) if self.version else line)

    def part(self, session: Session) -> None:
        """A session is over. A connection that was there for it alone ends with it."""
        self.agents = {bound for bound in self.agents if bound[0] != session.key}
        if not self.agents and not self.streams:
            self.close()

    # What commands use.

    def poll(self, poll: Poll[Any]) -> None:
        """Keep a question that waits for its answer as long as this connection lasts."""
        self._polls = {one for one in self._polls if one.waits}
        if poll.waits:
            self._polls.add(poll)

    def reply(
        self, asked: Envelope, payload: Any = None, *, session: str | None = None, fault: Fault | None = None
    ) -> None:
        """Answer a request: its type, `corr` its id, and how it went."""
        part = b""
        if payload is not None:
            part = b',"payload":%b' % _encode(payload)
        if fault is not None:
            part += b',"status":"error","error":%b' % _encode(fault)
        else:
            part += b',"status":"ok"'
        self._answer(asked, session or asked.session, part)

    def reply_raw(self, asked: Envelope, payload: bytes) -> None:
        """Answer with a payload that is JSON already."""
        self._answer(asked, asked.session, b',"payload":%b,"status":"ok"' % payload)

    def _answer(self, asked: Envelope, session: str | None, part: bytes) -> None:
        # Written by hand: this is what every request waits for.
        self.write(
            b'{"v":%d,"type":%b,"id":"%b","ts":"%b","src":"bus"%b,"corr":%b%b}\n'
            % (
                asked.v,
                _TYPES.get(asked.type) or _encode(asked.type),
                self._face.new_id(),
                self.bus.stamp(),
                b',"session":%b' % _encode(session) if session is not None else b"",
                _encode(asked.id),
                part,
            )
        )

    def say(self, event: str, *, payload: Any = None, fault: Fault | None = None, corr: str | None = None) -> None:
        """Say something that nobody asked for, or that a stream is over."""
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

    def done(self, asked: Envelope, payload: Any = None, *, session: str | None = None) -> Any:
        """What answers a request once it is durable."""

        def told(refused: BusRefused | None) -> None:
            if refused is None:
                self.reply(asked, payload, session=session)
            else:
                self.reply(asked, fault=fault_of(refused))

        return told

    def end_stream(self, key: str, place: int, *, follow: bool) -> None:
        """Say that a stream is over. One that was not to be followed ends its connection, if nothing else is asked."""
        self.say("events.end", payload={"seq": place}, corr=key)
        if not follow and not self.agents and not self.streams and not self._deferred and not self._buffer:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self.close)

    def close(self) -> None:
        """End the connection after what was written; its agents are away from now on."""
        if not self._closing:
            self._closing = True
            self.flush()
            self._transport.close()
            self._depart()

    def _depart(self) -> None:
        for stream in tuple(self.streams.values()):
            stream.end()
        for poll in self._polls:
            poll.leave()
        for session_id, agent_id in self.agents:
            self.bus.leave(self, session_id, agent_id)
        self.agents.clear()
        self._buffer.clear()
        self._deferred.clear()

    # Inside.

    def _line(self, line: bytes) -> None:
        line = line.rstrip()
        # `find`, because `in` tries bytes as a number first, and costs ten times as much.
        if not line or self._closing or (line.find(b'"message.ack"') >= 0 and self._acknowledges(line)):
            return
        if self.paused or self._deferred:
            self._defer(line)
        else:
            self._run(line)

    def _acknowledges(self, line: bytes) -> bool:
        """Do what every second line of a busy agent asks for, on a short way: it needs no answer."""
        found = read_ack(line)
        if found is None:
            return False
        session, agent, message = found
        named = session or self.bound_session
        if named is None or (self.bound_session is not None and named != self.bound_session):
            return False
        return self.bus.confirm_from(self, named, agent, message)

    def _run(self, line: bytes) -> None:
        try:
            asked = read_line(line)
        except (BusRefused, JsonRefused) as refused:
            self.say("error", fault=fault_of(refused), corr=asked_id(line))
            return
        self.version = asked.v
        try:
            self._face.run(self, asked)
        except BusRefused as refused:
            self.reply(asked, fault=fault_of(refused))
        except RedKeyError as failed:
            _log.error("a command failed", type=asked.type[:64], code=failed.code, reason=failed.message)
            self.reply(asked, fault=Fault("unavailable", "the bus cannot do this now; try again"))

    def _defer(self, line: bytes) -> None:
        """Keep a request until output has drained."""
        self._deferred.append(line)
        self._deferred_bytes += len(line)
        if self._deferred_bytes > self.bus.limits.input_bytes:
            self._transport.pause_reading()

    def _run_deferred(self) -> None:
        """Do what waits, in order, until the output is full again."""
        was_full = self._deferred_bytes > self.bus.limits.input_bytes
        while self._deferred and not self.paused and not self._closing:
            line = self._deferred.popleft()
            self._deferred_bytes -= len(line)
            self._run(line)
            # Write now, so that the next one knows whether there is room.
            self.flush()
        if was_full and self._deferred_bytes <= self.bus.limits.input_bytes and not self._closing:
            self._transport.resume_reading()

    def _refuse(self, fault: Fault) -> None:
        self.say("error", fault=fault)
        self.close()
        self._patience = self._loop.call_later(
            min(_FAREWELL_SECONDS, self.bus.limits.stalled_seconds), self._transport.abort
        )

    def _check_progress(self) -> None:
        """Close a connection that has taken nothing since the last look; a slow reader may take its time."""
        seconds = self.bus.limits.stalled_seconds
        taken = self._written - self._transport.get_write_buffer_size()
        if taken > self._taken:
            self._taken = taken
            self._stalled = self._loop.call_later(seconds, self._check_progress)
            return
        self._stalled = None
        self._refuse(Fault("slow_reader", f"nothing was read for {seconds:g} seconds; reconnect for what waits"))

    def _watch(self) -> None:
        """End a connection whose line does not end, or that is silent without an agent or a stream."""
        limits = self.bus.limits
        silent = self._loop.time() - self._heard_at
        if self._closing:
            return
        if self._buffer and silent >= limits.line_seconds:
            self._refuse(Fault("line_too_slow", f"a line must end within {limits.line_seconds:g} seconds"))
            return
        waits = any(poll.waits for poll in self._polls)
        if not self.agents and not self.streams and not waits and silent >= limits.idle_seconds:
            self._refuse(Fault("idle", f"nothing was said for {limits.idle_seconds:g} seconds"))
            return
        self._patience = self._loop.call_later(limits.line_seconds / 2, self._watch)
