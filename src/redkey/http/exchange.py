"""One request and its answer: how the body is received, and how the answer is sent.

Most answers are whole and leave in one write (`reply`). An answer that is sent piece by piece (`send`) is chunked
unless it states its length. `receive` and `send` speak ASGI messages, so an ASGI application can be mounted. When an
exchange begins and what follows it is decided by its connection.
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
# Answers that never have a body, and so no length either.
_BODILESS = frozenset({204, 304})
# A body larger than this is written apart from its head: bodies that many callers get are then shared, not copied.
_SHARED_BYTES = 16 * 1024
_DISCONNECT = {"type": "http.disconnect"}
_CLOSE = b"connection: close\r\n"


class Board(Protocol):
    """What an exchange needs of its server."""

    # The header lines of every answer.
    common_headers: bytes


class Line(Protocol):
    """What an exchange needs of its connection."""

    transport: asyncio.Transport
    # Where the caller is; empty on a Unix socket.
    address: str
    # True while the caller has to read before more can be sent.
    is_stalled: bool

    # True until the caller has shown a valid key.
    is_stranger: bool

    @property
    def board(self) -> Board:
        """What the connections of a server share."""
        ...

    async def drain(self) -> None:
        """Wait until the caller has read what was sent."""
        ...

    def take_more(self) -> None:
        """Continue reading: the bytes read before have been used."""
        ...

    def skips(self, exchange: Exchange) -> bool:
        """True when the rest of the request's body is small enough to be read and dropped."""
        ...

    def authenticated(self) -> None:
        """The caller has shown a valid key: it no longer counts as a stranger."""
        ...

    def answered(self, exchange: Exchange) -> None:
        """The answer has been sent."""
        ...

    def abort(self) -> None:
        """Close at once, without sending what is still buffered."""
        ...

    def bound_output(self, size: int) -> None:
        """Let the system buffer about this many bytes for the reader, and no more."""
        ...


class Exchange:
    """One request on a connection."""

    # What is answered in place of a handler's answer: the request could not be read.
    refusal: Declined | None = None
    # Whether the end of the body was handed out, and why the rest of it cannot be received.
    _end_seen = False
    _failure: Declined | None = None
    # The caller waits for "100 Continue" before it sends the body.
    continues = False
    # begun: a handler works on it. started: the first bytes of the answer were sent. complete: the last ones.
    begun = gone = started = complete = False
    task: asyncio.Task[None] | None = None
    # Called once when the caller disconnects before it has its answer.
    on_lost: Callable[[], object] | None = None
    _event: asyncio.Event | None = None
    _listening = False
    # Bytes that an answer of stated length has still to send; None when its length was not stated.
    _left: int | None = None

    def __init__(
        self, connection: Line, head: Head, body: bytes | None = None, refusal: Declined | None = None
    ) -> None:
        """`body` is given when it has been received whole already."""
        self.connection = connection
        self.method, self.path, self.query, self.headers = head.method, head.path, head.query, head.headers
        self.keep_alive, self._chunks = head.keep_alive, head.chunks
        # Received bytes of the body that were not taken yet; whether more will come.
        self._pending, self.more = body or b"", body is None
        if refusal is not None:
            self.refusal = refusal

    # The request.

    @property
    def untaken(self) -> int:
        """How many received bytes of the body wait to be taken."""
        return len(self._pending)

    def feed(self, data: bytes, *, more: bool) -> None:
        """Add received bytes of the body; `more` is False with the last of them."""
        self._pending = self._pending + data if self._pending else data
        self.more = more
        self.wake()

    def fail(self, failure: Declined) -> None:
        """The rest of the body cannot be received: `receive` raises this, and the connection ends with the answer."""
        self._failure, self.keep_alive, self.more = failure, False, False
        self.wake()

    def lose(self) -> None:
        """The caller has disconnected."""
        self.gone = True
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()
        self.wake()

    @property
    def awaits_disconnect(self) -> bool:
        """True while the handler waits for something to happen, and wants to know when the caller leaves."""
        return self.on_lost is not None or (self._listening and self._end_seen)

    async def while_connected(self, work: Awaitable[T]) -> T:
        """Wait for `work`, and cancel it when the caller disconnects. The body must have been read."""
        if self._is_gone():
            raise ConnectionResetError
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("while_connected runs inside a task")
        self.on_lost = task.cancel
        # A disconnect is only noticed while the connection is read.
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
        """Let a waiting `receive` look again."""
        if self._event is not None:
            self._event.set()

    def take_whole(self, limit: int) -> bytes | None:
        """The body if it has been received whole and nothing of it was taken; None when it must be received."""
        if self.more or self._end_seen or self._failure is not None or len(self._pending) > limit:
            return None
        self._end_seen = True
        whole, self._pending = self._pending, b""
        return whole

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body; after the last one, wait until the caller is gone or has its answer."""
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
        """Send a whole answer; `head` is its header lines without the length of the body."""
        if self.gone:
            return
        if self.started:
            # Half of an answer must not look like all of it.
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
        """Send the next part of an answer: first its status and headers, then pieces of its body."""
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
            # The end of the connection is the end of the answer.
            write(piece)
        elif self._left is None:
            end = b"0\r\n\r\n" if last else b""
            write(b"%x\r\n%b\r\n%b" % (len(piece), piece, end) if piece else end)
        else:
            self._left -= len(piece)
            write(piece)
        if last:
            self.complete = True
            # An answer of another length than it stated would be read together with the next one.
            self.keep_alive = self.keep_alive and not self._left
            self.wake()
            self.connection.answered(self)


def header_lines(headers: Headers) -> bytes:
    """Headers as they are sent; a value with a line end in it is refused, because it would begin another header."""
    lines = []
    for name, value in headers:
        if b"\r" in value or b"\n" in value:
            raise ValueError(f"the header {name!r} holds the end of a line")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)
