"""Hosting: uvicorn with uvloop and httptools around the API, hardened and stopped the way RedKey needs it.

Beside what uvicorn does: headers are bounded in time and size, what is not HTTP gets a problem like everything
else, a stop first answers those who wait, and the end of a stop is an exit code and not a signal.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from redkey.api import problem
from redkey.api.problem import Declined
from redkey.config import Config
from redkey.errors import RedKeyError

_HEADER_BYTES = 32 * 1024
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 4096


class CannotListen(RedKeyError):
    """The address cannot be listened on."""

    code = "cannot_listen"


class Hosted(Protocol):
    """What is hosted."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    async def start(self) -> None:
        """The loop runs; nothing is served yet."""
        ...

    def begin_stop(self) -> None:
        """A stop was asked for: answer those who wait, end streams."""
        ...

    async def finish_stop(self) -> None:
        """No request is left."""
        ...


class Host(uvicorn.Server):
    """One server process."""

    def __init__(self, hosted: Hosted, config: Config, on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                hosted,
                http=_protocol(config),
                loop="uvloop",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=max(1, round(config.limits.stop_seconds)),
            )
        )
        self._hosted, self._on_ready = hosted, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._hosted.start()
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hosted.begin_stop()
        await super().shutdown(sockets)
        await self._hosted.finish_stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but a stop that was asked for by a signal is an ordinary end."""
        try:
            before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:
            # Signals belong to the main thread; another thread that hosts a server stops it by `should_exit`.
            yield
            return
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _protocol(config: Config) -> type[HttpToolsProtocol]:
    limits = {"connections_limit": config.limits.connections, "header_seconds": config.limits.header_seconds}
    return type("Connection", (_Connection,), limits)


class _Connection(HttpToolsProtocol):
    """A connection whose headers are bounded in time and size."""

    connections_limit: ClassVar[int]
    header_seconds: ClassVar[float]
    _patience: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_headers()
        if len(self.connections) > self.connections_limit:
            self._refuse(Declined(503, "too_many_connections", "The server has as many connections as it takes."))

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        if self._patience is None:
            self._wait_for_headers()
        super().on_message_begin()
        self.scope["state"]["connection"] = self

    def abort(self) -> None:
        self.transport.abort()

    def bound_output(self, size: int) -> None:
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Declined(400, "http_malformed", "The request is not HTTP/1.1."))

    def _grow(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _HEADER_BYTES:
            raise ValueError("headers too large")

    def _wait_for_headers(self) -> None:
        self._patience = self.loop.call_later(self.header_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        self._patience = None
        detail = f"No request came within {self.header_seconds:g} seconds."
        self._refuse(Declined(408, "headers_too_slow", detail))

    def _refuse(self, declined: Declined) -> None:
        """Answer without a request, and close."""
        answer = problem.answer(declined)
        headers = [
            (b"content-type", problem.MEDIA_TYPE.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            (b"connection", b"close"),
            *answer.headers,
        ]
        lines = [STATUS_LINE[answer.status], *(name + b": " + value + b"\r\n" for name, value in headers), b"\r\n"]
        self.transport.write(b"".join([*lines, answer.body]))
        self.transport.close()


def listen(config: Config) -> list[socket.socket]:
    """The sockets of a server: TCP, and a Unix socket when one is asked for."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        sockets = [socket.create_server((config.host, config.port), family=family, backlog=_BACKLOG)]
    except OSError as cause:
        raise CannotListen(f"cannot listen on {config.host} port {config.port}: {cause.strerror or cause}") from cause
    if config.uds is not None:
        try:
            sockets.append(_listen_unix(config.uds))
        except BaseException:
            close(sockets)
            raise
    return sockets


def close(sockets: Sequence[socket.socket]) -> None:
    for one in sockets:
        one.close()


def url_of(sock: socket.socket) -> str:
    """The address of a TCP socket, as a URL."""
    host, port = sock.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listen_unix(path: Path) -> socket.socket:
    """A Unix socket that its owner alone may use, in place of one that nobody listens on any more."""
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
        # Before listening: until now nobody could connect.
        path.chmod(0o600)
        sock.listen(_BACKLOG)
    except OSError as cause:
        sock.close()
        raise CannotListen(f"cannot listen on {path}: {cause.strerror or cause}") from cause
    return sock


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise CannotListen(f"{path} is there and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(ConnectionRefusedError):
        probe.connect(str(path))
        raise CannotListen(f"a server listens on {path} already")
    path.unlink(missing_ok=True)
