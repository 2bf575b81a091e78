"""One request and its answer: what came, how the rest of it is received, and how the answer is sent.

Most answers are whole and leave in one write (`reply`); those that write themselves piece by piece (`send`) are
chunked unless they say how long they are. When an exchange may begin and what follows it is its connection's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Headers = Iterable[tuple[bytes, bytes]]

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_DISCONNECT = {"type": "http.disconnect"}
_CLOSE = b"connection: close\r\n"


class Line(Protocol):
    """What an exchange needs of its connection."""

    transport: asyncio.Transport
    # Where the caller is; empty on a Unix socket.
    address: str

    @property
    def common_headers(self) -> bytes:
        """The headers of every answer of the server."""
        ...

    @property
    def is_stalled(self) -> bool:
        """True when sending has to wait for the caller."""
        ...

    async def drain(self) -> None:
        """Wait until the caller takes what was sent."""
        ...

    def take_more(self) -> None:
        """Read on: what came before was taken."""
        ...

    def answered(self, exchange: Exchange) -> None:
        """The answer has been sent."""
        ...

    def abort(self) -> None:
        """Cut it without waiting for what a stalled reader has not taken."""
        ...

    def bound_output(self, size: int) -> None:
        """Let the system hold about this many bytes for the reader, and no more."""
        ...


class Exchange:
    """One request on a connection."""

    __slots__ = (
        "_end_told",
        "_event",
        "_gives_up",
        "_left",
        "_pending",
        "complete",
        "connection",
        "continues",
        "gone",
        "headers",
        "keep_alive",
        "method",
        "more",
        "path",
        "query",
        "started",
        "task",
    )

    def __init__(
        self,
        connection: Line,
        method: str,
        path: str,
        query: bytes,
        headers: Mapping[bytes, bytes],
        *,
        keep_alive: bool,
    ) -> None:
        self.connection, self.method, self.path, self.query = connection, method, path, query
        self.headers, self.keep_alive = headers, keep_alive
        # What has come of the body and was not taken, whether more will, and whether its end was told.
        self._pending, self.more, self._end_told = b"", True, False
        # The caller waits for a word before it sends the body.
        self.continues = False
        self.gone = self.started = self.complete = False
        self.task: asyncio.Task[None] | None = None
        self._event: asyncio.Event | None = None
        # Whether the handler ends when the caller is gone.
        self._gives_up = False
        # The bytes that a started answer has still to send; None when it is chunked.
        self._left: int | None = None

    # The request.

    @property
    def untaken(self) -> int:
        """How many bytes of the body wait to be taken."""
        return len(self._pending)

    def feed(self, data: bytes, *, more: bool) -> None:
        """More of the body has come, or its end."""
        self._pending = self._pending + data if self._pending else data
        self.more = more
        self.wake()

    def lose(self) -> None:
        """The caller is gone."""
        self.gone = True
        if self._gives_up and self.task is not None:
            self.task.cancel()
        self.wake()

    async def while_connected(self, work: Awaitable[T]) -> T:
        """Give the work up when the caller is gone: nobody would learn of what it won. The body must have been read."""
        self._refuse_gone()
        self._gives_up = True
        # Who sends no more is still to be seen leaving.
        self.connection.take_more()
        try:
            return await work
        except asyncio.CancelledError:
            if self.task is not None and self.gone:
                self.task.uncancel()
            self._refuse_gone()
            raise
        finally:
            self._gives_up = False

    def _refuse_gone(self) -> None:
        if self.gone:
            raise ConnectionResetError

    def wake(self) -> None:
        """Let whoever receives look again."""
        if self._event is not None:
            self._event.set()

    def take_whole(self, limit: int) -> bytes | None:
        """The body when it has come whole and nobody took a part of it; None when it must be received."""
        if self.more or self._end_told or len(self._pending) > limit:
            return None
        self._end_told = True
        whole, self._pending = self._pending, b""
        return whole

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body; after the last, the news that the caller is gone or has its answer."""
        if self.continues:
            self.continues = False
            self.connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._pending or self.gone or self.complete or self.more == self._end_told):
            self._event = self._event or asyncio.Event()
            self.connection.take_more()
            await self._event.wait()
            self._event.clear()
        if self.gone or self.complete:
            return _DISCONNECT
        body, self._pending = self._pending, b""
        self._end_told = not self.more
        return {"type": "http.request", "body": body, "more_body": self.more}

    # The answer.

    async def reply(self, status: int, head: bytes, body: bytes) -> None:
        """Send a whole answer; `head` is its header lines but for the length of the body."""
        if self.connection.is_stalled:
            await self.connection.drain()
        if self.gone:
            return
        self.started = self.complete = True
        lines = b"%b%b%bcontent-length: %d\r\n%b\r\n" % (
            STATUS_LINES[status],
            self.connection.common_headers,
            head,
            len(body),
            b"" if self.keep_alive else _CLOSE,
        )
        self.connection.transport.write(lines if self.method == "HEAD" else lines + body)
        self.wake()
        self.connection.answered(self)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send the next part of an answer: first its status and headers, then pieces of its body."""
        if self.connection.is_stalled:
            await self.connection.drain()
        if self.gone:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message["headers"])
        else:
            self._continue(message["body"], last=not message.get("more_body", False))

    def _begin(self, status: int, headers: Headers) -> None:
        self.started = True
        length = next((value for name, value in headers if name == b"content-length"), None)
        self._left = None if length is None else int(length)
        lines = [STATUS_LINES[status], self.connection.common_headers, header_lines(headers)]
        if length is None and self.method != "HEAD":
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n" if self.keep_alive else _CLOSE + b"\r\n")
        self.connection.transport.write(b"".join(lines))

    def _continue(self, piece: bytes, *, last: bool) -> None:
        write = self.connection.transport.write
        if self.method == "HEAD":
            self._left = 0
        elif self._left is None:
            end = b"0\r\n\r\n" if last else b""
            write(b"%x\r\n%b\r\n%b" % (len(piece), piece, end) if piece else end)
        else:
            self._left -= len(piece)
            write(piece)
        if last:
            self.complete = True
            # An answer of another length than it said would be read together with the next.
            self.keep_alive = self.keep_alive and not self._left
            self.wake()
            self.connection.answered(self)


def header_lines(headers: Headers) -> bytes:
    """Headers as they are sent; nothing that a value holds can begin another line."""
    lines = []
    for name, value in headers:
        if b"\r" in value or b"\n" in value:
            raise ValueError(f"the header {name!r} holds the end of a line")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)
