"""One HTTP connection: it reads requests, answers them one at a time in order, and limits their sizes. The time limits
are in `deadlines`.

A handler starts when the whole body has arrived, if the body is small. A larger body is passed to the handler in
pieces, no faster than the handler reads them. A request that cannot be parsed is answered with a problem (RFC 9457)
after the answers to the requests before it; nothing after it is read.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol

import structlog

from redkey.config import Limits
from redkey.http import problems
from redkey.http.chunked import ChunkedBody
from redkey.http.deadlines import Deadlines
from redkey.http.exchange import Exchange, header_lines
from redkey.http.head import HEAD_BYTES, Head, is_hopeless, malformed, parse_head
from redkey.http.limits import Strangers
from redkey.http.problems import Declined
from redkey.http.security import SECURITY

# A body up to this size is received whole before its handler starts; of a larger one at most this much is buffered.
_SMALL_BODY = 64 * 1024
# How many requests may wait for their answers; the bytes of later requests are not parsed yet.
_PIPELINE = 16
# How many bytes of a chunked body are decoded before other connections get the event loop.
_CHUNKED_SLICE = 16 * 1024
# After a refusal, further input is read and dropped for this long: closing at once would send a TCP reset, and the
# caller's system would discard the answer.
_LINGER_SECONDS = 2.0
# The value of SO_LINGER that makes a close send a reset: on, zero seconds.
_RESET = struct.pack("ii", 1, 0)

_log = structlog.get_logger("redkey.http")
_UNREAD = Head("", "", b"", {}, 0, keep_alive=False, chunks=False)
_PROBLEM_HEAD = header_lines([(b"content-type", problems.MEDIA_TYPE.encode()), *SECURITY])


class Board(Protocol):
    """What the connections of a server share."""

    limits: Limits
    connections: set[Connection]
    tasks: set[asyncio.Task[None]]
    strangers: Strangers
    common_headers: bytes

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        ...

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Handle a request; return None if no coroutine is needed for the answer, or the coroutine to run."""
        ...


class Connection(asyncio.Protocol):
    """The connection of one client."""

    transport: asyncio.Transport
    address = ""
    _deadlines: Deadlines

    def __init__(self, board: Board, loop: asyncio.AbstractEventLoop) -> None:
        self.board, self._loop = board, loop
        # The part of a head that has been received.
        self._buffer, self._skipped_line = b"", False
        # Received bytes that are not parsed yet, because the pipeline is full.
        self._held = b""
        # The request whose body is being received; the bytes that are missing, or the decoder of its chunks.
        self.coming: Exchange | None = None
        self._missing = 0
        self._chunked: ChunkedBody | None = None
        # The pieces of a small body until it is complete; None when pieces go to the handler as they arrive.
        self._pieces: list[bytes] | None = None
        # The requests that wait for their answers, in order; the first one is being answered.
        self.line: deque[Exchange] = deque()
        # `_deaf`: no further request is read, after a parse error or because either side ends the connection.
        # `_at_end`: the client has closed its sending side.
        self._deaf = self._at_end = False
        self.is_reading = True
        # True while the write buffer is full; `drain` waits for the event.
        self.is_stalled = False
        self._writable = asyncio.Event()
        # How many bytes of the current request have been received.
        self.size = 0
        self.is_stranger = False

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        board = self.board
        board.connections.add(self)
        self._deadlines = Deadlines(self, self._loop, board.limits)
        if len(board.connections) > board.limits.connections:
            self.refuse(
                Declined(503, "too_many_connections", "The server has reached its limit of connections; retry later.")
            )
            return
        if self.address:
            self.is_stranger = True
            if board.strangers.add(self.address) > board.limits.strangers:
                detail = "Too many connections from this address have not shown a valid key."
                self.refuse(Declined(503, "too_many_connections", detail))
                return
        self._deadlines.await_arrival()

    def connection_lost(self, exc: Exception | None) -> None:
        self.board.forget(self)
        self.authenticated()
        self._deaf = True
        self._deadlines.cancel()
        line = list(self.line)
        if self.coming is not None and self.coming not in line:
            line.append(self.coming)
        for exchange in line:
            exchange.lose()
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._held:
            self._held += data
        elif not self._deaf:
            self._parse(data)

    def eof_received(self) -> bool:
        """The client has closed its sending side. It may still read, so its requests are answered; only requests that
        wait for an event, such as streams, count as disconnected."""
        self._deaf = self._at_end = True
        self._deadlines.arrived()
        if self.coming is not None:
            self.coming.lose()
            if self.coming in self.line:
                self.line.remove(self.coming)
            self.coming = None
        for exchange in tuple(self.line):
            if exchange.awaits_disconnect:
                exchange.lose()
        if self.line:
            self.line[-1].keep_alive = False
        self._pass_over_gone()
        return bool(self.line) and not self.transport.is_closing()

    def pause_writing(self) -> None:
        self.is_stalled = True
        self._writable.clear()
        self._deadlines.await_reading()

    def resume_writing(self) -> None:
        self._deadlines.read()
        self.is_stalled = False
        self._writable.set()
        if self.line and not self.line[0].begun:
            self._start(self.line[0])

    # From bytes to requests.

    def _parse(self, data: bytes) -> None:
        self.size += len(data)
        try:
            while data and not self._deaf:
                if self.coming is not None:
                    data = self._read_body(self.coming, data)
                elif len(self.line) >= _PIPELINE:
                    self._held = data
                    self._pause()
                    return
                else:
                    data = self._read_head(data)
        except Declined as declined:
            self.refuse(declined)
        deadlines = self._deadlines
        if self.coming is not None or self._buffer:
            if not self._deaf:
                deadlines.await_arrival()
        elif deadlines.arrival is not None:
            deadlines.arrived()

    def _read_head(self, data: bytes) -> bytes:
        """Parse the head if it has arrived whole; return the bytes after it."""
        known = len(self._buffer)
        if known:
            data = self._buffer + data
        else:
            self.size = len(data)
            if self._deadlines.arrival is not None:
                # The clock of this request starts now, not with the previous request.
                self._deadlines.arriving_since = self._loop.time()
        if data.startswith(b"\r\n") and not self._skipped_line:
            # RFC 9112 asks servers to ignore empty lines before a request; one line is ignored here.
            self._skipped_line = True
            data, known = data[2:], 0
        end = data.find(b"\r\n\r\n", max(0, known - 3))
        if end < 0 or end + 4 > HEAD_BYTES:
            part = data[:HEAD_BYTES]
            if is_hopeless(part):
                raise malformed("a control character, or a line that does not end with CR LF")
            if len(data) > HEAD_BYTES or end >= 0:
                raise Declined(431, "headers_too_large", f"The headers are larger than {HEAD_BYTES:,} bytes.")
            self._buffer = data
            return b""
        self._buffer, self._skipped_line = b"", False
        head = parse_head(data[:end])
        rest = data[end + 4 :]
        length = head.length
        if length is not None and length <= len(rest):
            self._enter(Exchange(self, head, rest[:length]))
            return rest[length:]
        exchange = Exchange(self, head)
        self.coming = exchange
        self._pieces = None
        if length is None:
            self._chunked = ChunkedBody()
        else:
            self._missing = length
        if exchange.headers.get(b"expect", b"").lower() == b"100-continue" and head.chunks:
            exchange.continues = True
        elif length is not None and length <= _SMALL_BODY:
            self._pieces = []
            return rest
        self._enter(exchange)
        return rest

    def _read_body(self, exchange: Exchange, data: bytes) -> bytes:
        """Add bytes to the body; return the bytes after its end."""
        later = b""
        if self._chunked is not None:
            # Decoding many chunks of one byte takes long, so other connections get the event loop in between.
            data, later = data[:_CHUNKED_SLICE], data[_CHUNKED_SLICE:]
            pieces, rest = self._chunked.feed(data)
            ended = self._chunked.done
        else:
            pieces, rest = [data[: self._missing]], data[self._missing :]
            self._missing -= len(pieces[0])
            ended = not self._missing
        if self._pieces is not None:
            self._pieces += pieces
            if not ended:
                return rest
            pieces = self._pieces
        if ended:
            self.coming = self._chunked = None
            self._deaf = self._deaf or not exchange.keep_alive
        if not exchange.complete:
            exchange.feed(b"".join(pieces), more=not ended)
            if exchange.untaken > _SMALL_BODY:
                self._pause()
        if ended and self._pieces is not None:
            self._pieces = None
            self._enter(exchange)
        elif ended and exchange.complete and exchange.keep_alive:
            # The answer was sent before the whole body had arrived.
            self._go_on()
        if later and not self._deaf:
            self._held = rest + later + self._held
            self._pause()
            self._loop.call_soon(self._parse_held)
            return b""
        return rest

    def _parse_held(self) -> None:
        held, self._held = self._held, b""
        if not self._deaf:
            self._parse(held)
        self.take_more()

    def refuse(self, declined: Declined) -> None:
        """Answer an unreadable request with a problem, after the answers before it, and read nothing further."""
        self._deaf = True
        self._deadlines.arrived()
        coming, self.coming, self._buffer = self.coming, None, b""
        if coming is None or self._pieces is not None:
            self._enter(Exchange(self, _UNREAD, b"", declined))
        else:
            # Its handler is running: `receive` raises the problem there.
            coming.fail(declined)
            if coming.complete:
                self._close()

    # From one exchange to the next.

    def _enter(self, exchange: Exchange) -> None:
        line = self.line
        line.append(exchange)
        if not exchange.keep_alive and not exchange.more:
            # Later requests on this connection get no answer, so they must not run either.
            self._deaf = True
        if len(line) == 1 and not self.is_stalled:
            self._start(exchange)

    def _start(self, exchange: Exchange) -> None:
        exchange.begun = True
        if exchange.refusal is not None:
            answer = problems.answer(exchange.refusal)
            exchange.reply(answer.status, _PROBLEM_HEAD + header_lines(answer.headers), answer.body)
            return
        try:
            work = self.board.answer(exchange)
        except Exception as error:
            _log.error("a request handler failed", path=exchange.path, exc_info=error)
            self.abort()
            return
        self._see_end(exchange)
        if work is not None:
            task = exchange.task = self._loop.create_task(self._run(exchange, work))
            # The event loop holds only a weak reference to a task.
            self.board.tasks.add(task)

    def _see_end(self, exchange: Exchange) -> None:
        if self._at_end and exchange.awaits_disconnect:
            # The client had closed its sending side before the handler began to wait.
            exchange.lose()
            self._pass_over_gone()

    async def _run(self, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            _log.error("a request handler failed", path=exchange.path, exc_info=error)
        finally:
            if exchange.task is not None:
                self.board.tasks.discard(exchange.task)
            if exchange.gone:
                if not self.line:
                    self.transport.close()
            elif exchange.is_answered_later:
                self._see_end(exchange)
            elif not exchange.complete:
                # A reset shows the client that the answer is incomplete.
                self.abort()

    def _pass_over_gone(self) -> None:
        """Drop requests whose client has left from the front of the line, and start the next one."""
        line = self.line
        while line and line[0].gone:
            line.popleft()
        if line and not line[0].begun and not self.is_stalled:
            self._start(line[0])
        elif not line and self._at_end and not self.transport.is_closing():
            self.end()

    def answered(self, exchange: Exchange) -> None:
        line = self.line
        line.popleft()
        self._deadlines.idle_since = self._loop.time()
        if not exchange.keep_alive:
            line.clear()
            self._close()
        elif self.coming is exchange:
            # Read and drop the rest of its body.
            self.take_more()
        elif line or self._held:
            self._go_on()
        elif not self.is_reading:
            self.take_more()

    def _go_on(self) -> None:
        """Start the next request, or read on."""
        if self.line:
            if not self.is_stalled:
                self._start(self.line[0])
        elif self._held:
            self._parse_held()
        else:
            self.take_more()

    def _close(self) -> None:
        """Close the connection after everything has been sent; drop further input for a moment first."""
        transport = self.transport
        self._held = b""
        if transport.is_closing():
            return
        self._deaf = True
        self._deadlines.arrived()
        if self.size and not self._at_end:
            transport.write_eof()
            self.take_more()
            self._deadlines.end_after(_LINGER_SECONDS)
        else:
            self.end()

    def end(self) -> None:
        self.transport.close()
        self._deadlines.await_closing()

    def shutdown(self) -> None:
        """Close the connection when the requests read so far have been answered."""
        if not self.line:
            self._deaf = True
            self.end()
            return
        # Receive the rest of a body whose request waits in line.
        self._deaf = self.coming is not self.line[-1]
        self.line[-1].keep_alive = False

    # Called by exchanges and handlers.

    async def drain(self) -> None:
        await self._writable.wait()

    def take_more(self) -> None:
        if not self.is_reading and not self._held and not self.transport.is_closing():
            self.is_reading = True
            self.transport.resume_reading()

    def _pause(self) -> None:
        if self.is_reading and not self.transport.is_closing():
            self.is_reading = False
            self.transport.pause_reading()

    def skips(self, exchange: Exchange) -> bool:
        # A client that waits for 100 Continue may omit the body, and send its next request instead.
        expected = self.coming is exchange and not exchange.continues
        return expected and self._chunked is None and self._missing <= _SMALL_BODY

    def authenticated(self) -> None:
        if self.is_stranger:
            self.is_stranger = False
            self.board.strangers.remove(self.address)

    def abort(self) -> None:
        sock = self.transport.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            # Reset the connection: otherwise the system keeps unread output for a client that never reads it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def bound_output(self, size: int) -> None:
        if self.transport.is_closing():
            return
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
