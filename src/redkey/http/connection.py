"""A connection: HTTP/1.1 as httptools parses it, one exchange at a time, bounded in time and size.

A request whose body is small begins when it has come whole, so that it costs one task and one write; a larger one
begins with its headers and is handed over piece by piece, no faster than it is taken. Requests that come before
the answer to the one before them wait in line. What is not HTTP gets a problem like everything else.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import unquote

import httptools
import structlog

from redkey.config import Limits
from redkey.http import problems
from redkey.http.exchange import STATUS_LINES, Exchange, header_lines
from redkey.http.problems import Declined

_HEADER_BYTES = 32 * 1024
_HEADERS = 64
# A body that comes at this pace at least is given the time that it needs.
PACE_BYTES = 16 * 1024
# A body up to this size is waited for; of a larger one no more than this is held before it is taken.
_SMALL_BODY = 64 * 1024
_KEEP_ALIVE_SECONDS = 75

_log = structlog.get_logger("redkey.api")


class Switchboard(Protocol):
    """What the connections of a server share."""

    limits: Limits
    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    common_headers: bytes

    @property
    def answer(self) -> Callable[[Exchange], Awaitable[None]]: ...


class Connection(asyncio.Protocol):
    """One caller's connection."""

    transport: asyncio.Transport
    address = ""

    def __init__(self, board: Switchboard, loop: asyncio.AbstractEventLoop) -> None:
        self._board, self._loop = board, loop
        self._parser = httptools.HttpRequestParser(self)
        # A request that asks for the end of the connection may have others behind it, which are not answered.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        # What has come of the request that is being read.
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_count = 0
        # Its body, when that is waited for.
        self._body: list[bytes] | None = []
        self._coming: Exchange | None = None
        # Requests that were read: the first is being answered.
        self._line: deque[Exchange] = deque()
        self._reading, self._writable = True, asyncio.Event()
        self._writable.set()
        # Of the request that is not whole yet: its size, since when it comes, whether its headers have come.
        self._whole = self._in_body = False
        self._size = 0
        self._since = 0.0
        self._patience: asyncio.TimerHandle | None = None
        # Since when nothing was asked, and when somebody looks at that.
        self._idle_since = loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._board.connections.add(self)
        if len(self._board.connections) > self._board.limits.connections:
            self._refuse(Declined(503, "too_many_connections", "The server has as many connections as it takes."))
            return
        self._watch(0)
        self._idle_timer = self._loop.call_later(_KEEP_ALIVE_SECONDS, self._look_whether_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._board.connections.discard(self)
        self._stop_watching()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._coming is not None:
            self._coming.lose()
        for exchange in self._line:
            exchange.lose()
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing here speaks another protocol: the request is answered as it is, and nothing follows it.
            self._line[-1].keep_alive = False
        except httptools.HttpParserError:
            self._refuse(Declined(400, "http_malformed", "The request is not HTTP/1.1."))
            return
        if not self._whole and not self.transport.is_closing():
            self._watch(len(data))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # What the parser tells.

    def on_message_begin(self) -> None:
        self._whole = self._in_body = False
        self._url, self._headers, self._header_count, self._body = b"", {}, 0, []
        self._coming = None

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value
        self._header_count += 1

    def on_headers_complete(self) -> None:
        if self._header_count > _HEADERS:
            self._refuse(Declined(431, "headers_too_large", f"The request has more than {_HEADERS} headers."))
            return
        self._in_body = True
        path, query = _target(self._url)
        parser, headers = self._parser, self._headers
        keep_alive = parser.should_keep_alive() and parser.get_http_version() == "1.1"
        exchange = Exchange(self, parser.get_method().decode(), path, query, headers, keep_alive=keep_alive)
        self._coming = exchange
        if headers.get(b"expect", b"").lower() == b"100-continue":
            exchange.continues = True
        elif b"transfer-encoding" not in headers and int(headers.get(b"content-length", b"0")) <= _SMALL_BODY:
            return
        self._body = None
        self._enter(exchange)

    def on_body(self, body: bytes) -> None:
        exchange = self._coming
        if exchange is None or exchange.complete:
            return
        if self._body is not None:
            self._body.append(body)
            return
        exchange.feed(body, more=True)
        if exchange.untaken > _SMALL_BODY:
            self._pause()

    def on_message_complete(self) -> None:
        self._whole = True
        if self._patience is not None:
            self._stop_watching()
        exchange, self._coming = self._coming, None
        if exchange is None:
            return
        if self._body is None:
            exchange.feed(b"", more=False)
            return
        exchange.feed(b"".join(self._body), more=False)
        self._enter(exchange)

    # From one exchange to the next.

    def _enter(self, exchange: Exchange) -> None:
        self._line.append(exchange)
        if len(self._line) == 1:
            self._start(exchange)
        else:
            self._pause()

    def _start(self, exchange: Exchange) -> None:
        task = exchange.task = self._loop.create_task(self._run(exchange))
        # The loop alone would not keep it from being collected.
        self._board.tasks.add(task)

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._board.answer(exchange)
        except Exception as error:
            _log.error("an answer failed", path=exchange.path, exc_info=error)
        finally:
            if exchange.task is not None:
                self._board.tasks.discard(exchange.task)
            if not exchange.complete:
                # Half of an answer must not look like all of it.
                self.transport.close()

    def answered(self, exchange: Exchange) -> None:
        self._line.popleft()
        self._idle_since = self._loop.time()
        if not exchange.keep_alive:
            self.transport.close()
            return
        if self._line:
            self._start(self._line[0])
        elif not self._reading:
            self.take_more()

    def shutdown(self) -> None:
        """End when what is being answered has been."""
        if not self._line:
            self.transport.close()
        for exchange in self._line:
            exchange.keep_alive = False

    def _look_whether_idle(self) -> None:
        busy = self._line or self._patience is not None
        left = _KEEP_ALIVE_SECONDS if busy else self._idle_since + _KEEP_ALIVE_SECONDS - self._loop.time()
        if left <= 0:
            self.transport.close()
        else:
            self._idle_timer = self._loop.call_later(left, self._look_whether_idle)

    # What exchanges and handlers ask for.

    @property
    def common_headers(self) -> bytes:
        return self._board.common_headers

    @property
    def is_stalled(self) -> bool:
        return not self._writable.is_set()

    async def drain(self) -> None:
        await self._writable.wait()

    def take_more(self) -> None:
        if not self._reading and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    def _pause(self) -> None:
        if self._reading and not self.transport.is_closing():
            self._reading = False
            self.transport.pause_reading()

    def abort(self) -> None:
        self.transport.abort()

    def bound_output(self, size: int) -> None:
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    # Watching a request that is not whole.

    def _watch(self, size: int) -> None:
        self._size += size
        if not self._in_body and self._size > _HEADER_BYTES:
            self._refuse(Declined(431, "headers_too_large", f"The headers are larger than {_HEADER_BYTES:,} bytes."))
        elif self._patience is None:
            self._since = self._loop.time()
            self._patience = self._loop.call_later(self._allowed(), self._look)

    def _stop_watching(self) -> None:
        self._size = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _allowed(self) -> float:
        limits = self._board.limits
        return limits.body_seconds + self._size / PACE_BYTES if self._in_body else limits.header_seconds

    def _look(self) -> None:
        """Time is over, unless more has come meanwhile, or it is us who do not take what comes."""
        left = self._since + self._allowed() - self._loop.time()
        if not self._reading:
            left = max(left, self._board.limits.body_seconds)
        if left > 0:
            self._patience = self._loop.call_later(left, self._look)
            return
        self._patience = None
        if not self._in_body:
            detail = f"No request came within {self._board.limits.header_seconds:g} seconds."
            self._refuse(Declined(408, "headers_too_slow", detail))
            return
        detail = f"The body came too slowly: {self._size:,} bytes in {self._loop.time() - self._since:.0f} seconds."
        if self._coming is not None and self._coming.started:
            self.transport.abort()
            return
        if self._coming is not None:
            # The handler learns that its caller is gone; the caller learns why.
            self._coming.lose()
        self._refuse(Declined(408, "body_too_slow", detail))

    def _refuse(self, declined: Declined) -> None:
        """Answer without a handler, and close."""
        answer = problems.answer(declined)
        headers = [
            (b"content-type", problems.MEDIA_TYPE.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            (b"connection", b"close"),
            *answer.headers,
        ]
        self.transport.write(b"".join([STATUS_LINES[answer.status], header_lines(headers), b"\r\n", answer.body]))
        self.transport.close()


def _target(url: bytes) -> tuple[str, bytes]:
    """The path and the query that a request asks for."""
    if url.startswith(b"/") and b"#" not in url:
        raw, _, query = url.partition(b"?")
    else:
        parsed = httptools.parse_url(url)
        raw, query = parsed.path or b"", parsed.query or b""
    path = raw.decode("ascii")
    return unquote(path) if "%" in path else path, query
