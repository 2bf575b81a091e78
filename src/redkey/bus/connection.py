"""One connection over a Unix socket: lines in, lines out, both bounded.

It owns framing, the agents that use it and the streams that it follows; `commands` does what a request asks for, and
`output` sends. While a reader takes less than it is sent, messages and records wait in the log, live events are counted
as missed, and requests wait in a bounded queue. Acknowledgements are still read and applied: they cause no output, and
a client that must acknowledge before it reads on would otherwise deadlock with the bus.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING, Any

import structlog

from redkey.bus.envelope import LINE_LIMIT, EnvelopeFault, fault_of, read_ack, read_line, request_id
from redkey.bus.output import ConnectionOutput
from redkey.bus.polls import Poll
from redkey.errors import BusRefused, JsonRefused, RedKeyError
from redkey.http.unix_sockets import peer_user

if TYPE_CHECKING:
    from redkey.bus.model import SessionState
    from redkey.bus.uds import UdsFace

_log = structlog.get_logger("redkey.bus")
# A slow reader has this long to read the error before the connection is cut.
_FAREWELL_SECONDS = 10.0
# After a finished stream, a caller has this long to send another request.
_LINGER_SECONDS = 0.25


class BusConnection(ConnectionOutput):
    """A caller on the socket of the bus, or on the socket of one session."""

    def __init__(self, face: UdsFace, session_id: str | None) -> None:
        super().__init__(face)
        self.bound_session, self.workspace = session_id, face.workspace
        # The (session, agent) pairs that use this connection.
        self.agents: set[tuple[str, str]] = set()
        self.streams: dict[str, Any] = {}
        self._polls: set[Poll[Any]] = set()
        self._buffer = bytearray()
        # Requests that arrived while output was blocked.
        self._deferred: deque[bytes] = deque()
        self._deferred_bytes = 0
        self._heard_at = 0.0
        self._stalled: asyncio.TimerHandle | None = None
        self._patience: asyncio.TimerHandle | None = None
        # Closes the connection some time after a stream that was not followed.
        self._linger: asyncio.TimerHandle | None = None

    # Called by the event loop.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport, self._loop = transport, asyncio.get_running_loop()
        transport.set_write_buffer_limits(high=self.bus.limits.output_bytes)
        self._heard_at = self._loop.time()
        if not self._face.admit(self):
            self._refuse(EnvelopeFault("too_many_connections", "the bus has no room for more connections; retry later"))
            return
        user = peer_user(transport.get_extra_info("socket"))
        if user not in (os.geteuid(), 0):
            _log.warning("a connection of another user was refused", user=user)
            self._refuse(EnvelopeFault("peer_refused", "this bus belongs to another user"))
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
            # Whole lines: nearly always the case.
            for whole in data[:-1].split(b"\n"):
                self._line(whole)
            return
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        for line in lines:
            self._line(bytes(line))
        if len(rest) > LINE_LIMIT:
            self._refuse(EnvelopeFault("line_too_long", f"a line has at most {LINE_LIMIT:,} bytes; split the message"))

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
        self.report_missed()
        for session_id, agent_id in tuple(self.agents):
            self.bus.resume(session_id, agent_id)
        for stream in tuple(self.streams.values()):
            stream.wake()

    def part(self, session: SessionState) -> None:
        """Drop the agents of a session that has ended; close the connection if it has no other use."""
        self.agents = {bound for bound in self.agents if bound[0] != session.key}
        if not self.agents and not self.streams:
            self.close()

    # Called by the bus and by commands.

    def poll(self, poll: Poll[Any]) -> None:
        """Keep a long poll, so that it ends with the connection."""
        self._polls = {kept for kept in self._polls if kept.waits}
        if poll.waits:
            self._polls.add(poll)

    def end_stream(self, key: str, place: int, *, follow: bool) -> None:
        """Send the end of a stream. A caller that did not follow it is disconnected if it asks for nothing else."""
        self.say("events.end", payload={"seq": place}, corr=key)
        if not follow and not self.agents and not self.streams and not self._deferred and not self._buffer:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self.close)

    def close(self) -> None:
        """Close the connection once everything written has gone out; its agents are away from then on."""
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

    # Internals.

    def _line(self, line: bytes) -> None:
        line = line.rstrip()
        # `find` is ten times as fast here as `in`, which first tries the bytes as a number.
        if not line or self._closing or (line.find(b'"message.ack"') >= 0 and self._acknowledges(line)):
            return
        if self.paused or self._deferred:
            self._defer(line)
        else:
            self._run(line)

    def _acknowledges(self, line: bytes) -> bool:
        """Apply an acknowledgement directly: half of the lines of a busy agent are these, and they get no reply."""
        ack = read_ack(line)
        if ack is None:
            return False
        named_session, agent, message = ack
        session = named_session or self.bound_session
        if session is None or (self.bound_session is not None and session != self.bound_session):
            return False
        return self.bus.confirm_from(self, session, agent, message)

    def _run(self, line: bytes) -> None:
        try:
            request = read_line(line)
        except (BusRefused, JsonRefused) as refused:
            self.say("error", fault=fault_of(refused), corr=request_id(line))
            return
        self.version = request.v
        try:
            self._face.run(self, request)
        except BusRefused as refused:
            self.reply(request, fault=fault_of(refused))
        except RedKeyError as failed:
            _log.error("a command failed", type=request.type[:64], code=failed.code, reason=failed.message)
            self.reply(request, fault=EnvelopeFault("unavailable", "the bus cannot do this now; retry later"))

    def _defer(self, line: bytes) -> None:
        """Keep a request until output has drained."""
        self._deferred.append(line)
        self._deferred_bytes += len(line)
        if self._deferred_bytes > self.bus.limits.input_bytes:
            self._transport.pause_reading()

    def _run_deferred(self) -> None:
        """Run deferred requests in order until the output is full again."""
        was_full = self._deferred_bytes > self.bus.limits.input_bytes
        while self._deferred and not self.paused and not self._closing:
            line = self._deferred.popleft()
            self._deferred_bytes -= len(line)
            self._run(line)
            # Flush now, so that the next request sees whether there is room.
            self.flush()
        if was_full and self._deferred_bytes <= self.bus.limits.input_bytes and not self._closing:
            self._transport.resume_reading()

    def _refuse(self, fault: EnvelopeFault) -> None:
        self.say("error", fault=fault)
        self.close()
        self._patience = self._loop.call_later(
            min(_FAREWELL_SECONDS, self.bus.limits.stalled_seconds), self._transport.abort
        )

    def _check_progress(self) -> None:
        """Close a connection whose reader took nothing since the last check; one that is only slow goes on."""
        seconds = self.bus.limits.stalled_seconds
        taken = self._written - self._transport.get_write_buffer_size()
        if taken > self._taken:
            self._taken = taken
            self._stalled = self._loop.call_later(seconds, self._check_progress)
            return
        self._stalled = None
        self._refuse(
            EnvelopeFault("slow_reader", f"nothing was read for {seconds:g} seconds; reconnect to get what waits")
        )

    def _watch(self) -> None:
        """Close a connection whose line does not end, or that is silent without an agent or a stream."""
        limits = self.bus.limits
        silent = self._loop.time() - self._heard_at
        if self._closing:
            return
        if self._buffer and silent >= limits.line_seconds:
            self._refuse(EnvelopeFault("line_too_slow", f"a line must end within {limits.line_seconds:g} seconds"))
            return
        waits = any(poll.waits for poll in self._polls)
        if not self.agents and not self.streams and not waits and silent >= limits.idle_seconds:
            self._refuse(EnvelopeFault("idle", f"no request came for {limits.idle_seconds:g} seconds"))
            return
        self._patience = self._loop.call_later(limits.line_seconds / 2, self._watch)
