"""One request and its answer: receive the body, send the answer.

Most answers are sent whole in one write (`reply`). An answer sent in pieces (`send`) is chunked unless it states its
length. `receive` and `send` use ASGI messages, so an ASGI application can be mounted. The connection decides when an
exchange starts and what follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from redkey.http.head import Head
from redkey.http.problems import Declined

T = TypeVar("T")
Headers = Iterable[tuple[bytes, bytes]]

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
# Statuses whose answers never have a body or a length.
_BODILESS = frozenset({204, 304})
# A larger body is written separately from its head, so that a body sent to many clients is shared and not copied.
_SHARED_BYTES = 16 * 1024
_DISCONNECT = {"type": "http.disconnect"}
_CLOSE = b"connection: close\r\n"


class Board(Protocol):
    """What an exchange uses of its server."""

    # The header lines of every answer.
    common_headers: bytes


class Line(Protocol):
    """What an exchange uses of its connection."""

    transport: asyncio.Transport
    # The IP address of the client; empty on a Unix socket.
    address: str
    # True while the write buffer is full.
    is_stalled: bool

    # True until a request on this connection had a valid key.
    is_stranger: bool

    @property
    def board(self) -> Board:
        """What the connections of a server share."""
        ...

    async def drain(self) -> None:
        """Wait until the write buffer has room again."""
        ...

    def take_more(self) -> None:
        """Continue to read from the socket."""
        ...

    def skips(self, exchange: Exchange) -> bool:
        """Return whether the rest of the body is small enough to be read and dropped."""
        ...

    def authenticated(self) -> None:
        """Stop to count the client as a stranger: it has sent a valid key."""
        ...

    def answered(self, exchange: Exchange) -> None:
        """Go on to the next exchange: this answer has been sent."""
        ...

    def abort(self) -> None:
        """Close at once and discard buffered output."""
        ...

    def bound_output(self, size: int) -> None:
        """Limit the system's send buffer to about this many bytes."""
        ...


class Exchange:
    """One request on a connection, and its answer."""

    # The refusal of a request that could not be read; no handler runs.
    refusal: Declined | None = None
    # Whether the handler got the end of the body, and why the rest of the body cannot be received.
    _end_seen = False
    _failure: Declined | None = None
    # The client waits for "100 Continue" before it sends the body.
    continues = False
    # begun: a handler runs. gone: the client disconnected. started, complete: the first or last bytes were sent.
    begun = gone = started = complete = False
    # True when the answer is sent later by a callback, so the end of the handler's coroutine is not a failure.
    is_answered_later = False
    task: asyncio.Task[None] | None = None
    # Called once if the client disconnects before it has its answer.
    on_lost: Callable[[], object] | None = None
    _event: asyncio.Event | None = None
    _listening = False
    # Unsent bytes of an answer that stated its length; None if it did not.
    _left: int | None = None

    def __init__(
        self, connection: Line, head: Head, body: bytes | None = None, refusal: Declined | None = None
    ) -> None:
        """Create an exchange; pass `body` if it has been received whole."""
        self.connection = connection
        self.method, self.path, self.query, self.headers = head.method, head.path, head.query, head.headers
        self.keep_alive, self._chunks = head.keep_alive, head.chunks
        # Unread body bytes; whether more will arrive.
        self._pending, self.more = body or b"", body is None
        if refusal is not None:
            self.refusal = refusal

    # The request.

    @property
    def untaken(self) -> int:
        """How many received body bytes the handler has not read."""
        return len(self._pending)

    def feed(self, data: bytes, *, more: bool) -> None:
        """Add received body bytes; `more` is False with the last ones."""
        self._pending = self._pending + data if self._pending else data
        self.more = more
        self.wake()

    def fail(self, failure: Declined) -> None:
        """Make `receive` raise this: the rest of the body cannot be received. The connection ends after the answer."""
        self._failure, self.keep_alive, self.more = failure, False, False
        self.wake()

    def lose(self) -> None:
        """Record that the client has disconnected, and call `on_lost`."""
        self.gone = True
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()
        self.wake()

    @property
    def awaits_disconnect(self) -> bool:
        """True while the handler waits for an event and wants to be notified of a disconnect."""
        return self.on_lost is not None or (self._listening and self._end_seen)

    async def while_connected(self, work: Awaitable[T]) -> T:
        """Await `work`, and cancel it if the client disconnects. The body must have been read."""
        if self._is_gone():
            raise ConnectionResetError
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("while_connected runs inside a task")
        self.on_lost = task.cancel
        # A disconnect is noticed only while the socket is read.
        self.connection.take_more()
        try:
            return await work
        except asyncio.CancelledError:
            if self._is_gone():
                task.uncancel()
                raise ConnectionResetError from None
            raise
        finally:
            self.on_lost = None

    def _is_gone(self) -> bool:
        return self.gone

    def wake(self) -> None:
        """Wake a waiting `receive`."""
        if self._event is not None:
            self._event.set()

    def take_whole(self, limit: int) -> bytes | None:
        """Return the body if it has arrived whole and nothing was read from it; None if `receive` must be used."""
        if self.more or self._end_seen or self._failure is not None or len(self._pending) > limit:
            return None
        self._end_seen = True
        whole, self._pending = self._pending, b""
        return whole

    async def receive(self) -> dict[str, Any]:
        """Return the next piece of the body; after the last one, wait for a disconnect or for the end of the answer."""
        if self.continues and not (self.started or self.gone):
            self.continues = False
            self.connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (
            self._pending or self.gone or self.complete or self._failure is not None or self.more == self._end_seen
        ):
            self._event = self._event or asyncio.Event()
            self.connection.take_more()
            self._listening = True
            try:
                await self._event.wait()
            finally:
                self._listening = False
            self._event.clear()
        if self.gone or self.complete:
            return _DISCONNECT
        if self._failure is not None:
            raise self._failure
        body, self._pending = self._pending, b""
        self._end_seen = not self.more
        return {"type": "http.request", "body": body, "more_body": self.more}

    # The answer.

    def reply(self, status: int, head: bytes, body: bytes) -> None:
        """Send a whole answer; `head` has its header lines without the content length."""
        if self.gone:
            return
        if self.started:
            # A reset shows the client that the answer is incomplete.
            self.connection.abort()
            return
        self.started = self.complete = True
        if self.more and not self.connection.skips(self):
            self.keep_alive = False
        end = b"\r\n" if self.keep_alive else _CLOSE + b"\r\n"
        connection = self.connection
        common = connection.board.common_headers
        if status in _BODILESS:
            lines = b"%b%b%b%b" % (STATUS_LINES[status], common, head, end)
            body = b""
        else:
            lines = b"%b%b%bcontent-length: %d\r\n%b" % (STATUS_LINES[status], common, head, len(body), end)
        write = connection.transport.write
        if self.method == "HEAD":
            write(lines)
        elif len(body) > _SHARED_BYTES:
            write(lines)
            write(body)
        else:
            write(lines + body)
        if self._event is not None:
            self._event.set()
        connection.answered(self)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send the next part of an answer: first the status and headers, then pieces of the body."""
        if self.connection.is_stalled:
            await self.connection.drain()
        if self.gone or self.complete:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
        else:
            self._continue(message.get("body", b""), last=not message.get("more_body", False))

    def _begin(self, status: int, headers: Headers) -> None:
        self.started = True
        if self.more and not self.connection.skips(self):
            self.keep_alive = False
        length = next((value for name, value in headers if name == b"content-length"), None)
        self._left = None if length is None else int(length)
        if status in _BODILESS:
            self._left = 0
        if status == 204:
            # RFC 9110 forbids it there; 304 may state the length that the body of a 200 would have.
            headers = [header for header in headers if header[0] != b"content-length"]
        lines = [STATUS_LINES[status], self.connection.board.common_headers, header_lines(headers)]
        if self._left is None and self.method != "HEAD" and self._chunks:
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n" if self.keep_alive else _CLOSE + b"\r\n")
        self.connection.transport.write(b"".join(lines))

    def _continue(self, piece: bytes, *, last: bool) -> None:
        write = self.connection.transport.write
        if self.method == "HEAD":
            self._left = 0
        elif self._left is None and not self._chunks:
            # HTTP/1.0: the end of the connection marks the end of the answer.
            write(piece)
        elif self._left is None:
            end = b"0\r\n\r\n" if last else b""
            write(b"%x\r\n%b\r\n%b" % (len(piece), piece, end) if piece else end)
        else:
            self._left -= len(piece)
            write(piece)
        if last:
            self.complete = True
            # If the stated length was wrong, the client would misread the next answer: close the connection.
            self.keep_alive = self.keep_alive and not self._left
            self.wake()
            self.connection.answered(self)


def header_lines(headers: Headers) -> bytes:
    """Encode headers; raise ValueError for a value with a line end, which would start another header."""
    lines = []
    for name, value in headers:
        if b"\r" in value or b"\n" in value:
            raise ValueError(f"the value of the header {name!r} contains a line end")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)
