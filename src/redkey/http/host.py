"""Run an application on its sockets: accept connections, wait for a stop signal, shut down in order.

A stop answers the requests that have been received, ends streams, and then lets the application finish.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from email.utils import formatdate
from typing import Any, Protocol

import structlog

from redkey.config import Config
from redkey.errors import CannotListen
from redkey.http.connection import Connection
from redkey.http.exchange import Exchange
from redkey.http.limits import Strangers
from redkey.http.unix_sockets import BACKLOG, listen_unix

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = structlog.get_logger("redkey.http")


class Hosted(Protocol):
    """An application that answers requests."""

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Handle a request; return None if no coroutine is needed for the answer, or the coroutine to run."""
        ...

    async def start(self) -> None:
        """Start the application: the event loop runs, and no request is accepted yet."""
        ...

    def begin_stop(self) -> None:
        """Answer requests that wait, and end streams: a stop was requested."""
        ...

    async def finish_stop(self) -> None:
        """Finish after the last request."""
        ...


class Host:
    """One server process, and the state that its connections share."""

    def __init__(self, hosted: Hosted, config: Config, on_ready: Callable[[], None]) -> None:
        self._hosted, self._on_ready = hosted, on_ready
        self.answer = hosted.__call__
        self.limits, self.strangers, self.common_headers = config.limits, Strangers(), b""
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested, self._all_ended = asyncio.Event(), asyncio.Event()
        self._stops = 0

    def stop(self) -> None:
        """Request a stop, from any thread; a second call closes connections without waiting for their answers."""
        if self._loop is None:
            self._request_stop()
        else:
            self._loop.call_soon_threadsafe(self._request_stop)

    def _request_stop(self) -> None:
        self._stops += 1
        self._stop_requested.set()
        if self._stops > 1:
            self._all_ended.set()

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self.connections.discard(connection)
        if not self.connections and self._stops:
            self._all_ended.set()

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        """Serve until a stop is requested by a signal or by `stop`."""
        loop = self._loop = asyncio.get_running_loop()
        handled_signals = self._handle_signals(loop)
        clock = loop.create_task(self._keep_date())
        try:
            await self._hosted.start()
            servers = [await self._listen(loop, sock) for sock in sockets]
            self._on_ready()
            await self._stop_requested.wait()
            self._hosted.begin_stop()
            for server in servers:
                server.close()
            await self._end_connections()
            await self._hosted.finish_stop()
        finally:
            clock.cancel()
            self._loop = None
            for number in handled_signals:
                loop.remove_signal_handler(number)

    def _handle_signals(self, loop: asyncio.AbstractEventLoop) -> Sequence[signal.Signals]:
        try:
            for number in _SIGNALS:
                loop.add_signal_handler(number, self.stop)
        except (RuntimeError, ValueError):
            # Only the main thread can handle signals; a server in another thread is stopped by `stop`.
            return ()
        return _SIGNALS

    async def _listen(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> asyncio.Server:
        def connect() -> Connection:
            return Connection(self, loop)

        if sock.family == socket.AF_UNIX:
            return await loop.create_unix_server(connect, sock=sock, backlog=BACKLOG)
        return await loop.create_server(connect, sock=sock, backlog=BACKLOG)

    async def _keep_date(self) -> None:
        while True:
            self.common_headers = f"date: {formatdate(usegmt=True)}\r\n".encode()
            await asyncio.sleep(1)

    async def _end_connections(self) -> None:
        """Wait up to `stop_seconds` for running requests, then abort the remaining connections."""
        for connection in tuple(self.connections):
            connection.shutdown()
        if self.connections:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.stop_seconds):
                    await self._all_ended.wait()
        if self.connections:
            _log.warning("connections were aborted because they did not end in time", count=len(self.connections))
        for connection in tuple(self.connections):
            connection.abort()
        tasks = tuple(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def listen(config: Config) -> list[socket.socket]:
    """Open the sockets of a server: TCP, and a Unix socket if one is configured."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        sockets = [socket.create_server((config.host, config.port), family=family, backlog=BACKLOG)]
    except OSError as cause:
        message = f"cannot listen on {config.host} port {config.port}: {cause.strerror or cause}"
        if cause.errno == errno.EADDRINUSE:
            message = f"port {config.port} of {config.host} is in use; choose another with --port (0 takes a free one)"
        raise CannotListen(message) from cause
    if config.uds is not None:
        try:
            sockets.append(listen_unix(config.uds))
        except BaseException:
            close(sockets)
            raise
    return sockets


def close(sockets: Sequence[socket.socket]) -> None:
    """Close all sockets."""
    for sock in sockets:
        sock.close()


def url_of(sock: socket.socket) -> str:
    """Return the address of a TCP socket as a URL."""
    host, port = sock.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
