"""Hosting: uvicorn with uvloop and httptools around the API, hardened and stopped the way RedKey needs it.

Beside what uvicorn does: requests are bounded in time and their headers in size, what is not HTTP gets a problem
like everything else, a stop first answers those who wait, and its end is an exit code and not a signal.
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
from redkey.config import Config, Limits
from redkey.errors import CannotListen

_HEADER_BYTES = 32 * 1024
_HEADERS = 64
# A body that comes at this pace at least is given the time that it needs.
PACE_BYTES = 16 * 1024
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 4096


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
    return type("Connection", (_Connection,), {"limits": config.limits})


class _Connection(HttpToolsProtocol):
    """A connection on which a request must come to its end: bounded in time, its headers in size.

    Almost every request comes whole in one piece and pays nothing for this; only one that does not is watched.
    """

    limits: ClassVar[Limits]
    # What has come of the request that is not whole yet, since when, and whether its headers are.
    _whole = False
    _in_body = False
    _size = 0
    _since = 0.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(Declined(503, "too_many_connections", "The server has as many connections as it takes."))
        else:
            self._watch(0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._whole and not self.transport.is_closing():
            self._watch(len(data))

    def on_message_begin(self) -> None:
        self._whole = self._in_body = False
        super().on_message_begin()
        self.scope["state"]["connection"] = self

    def on_headers_complete(self) -> None:
        if len(self.headers) > _HEADERS:
            self._refuse(Declined(431, "headers_too_large", f"The request has more than {_HEADERS} headers."))
            return
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._whole = True
        if self._patience is not None:
            self._stop_watching()
        if self._in_body:
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        if self._in_body:
            super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        self._refuse(Declined(400, "http_malformed", "The request is not HTTP/1.1."))

    # What handlers may do.

    def abort(self) -> None:
        self.transport.abort()

    def bound_output(self, size: int) -> None:
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    @property
    def is_stalled(self) -> bool:
        return self.flow.write_paused

    # Watching a request that is not whole.

    def _watch(self, size: int) -> None:
        self._size += size
        if not self._in_body and self._size > _HEADER_BYTES:
            self._refuse(Declined(431, "headers_too_large", f"The headers are larger than {_HEADER_BYTES:,} bytes."))
        elif self._patience is None:
            self._since = self.loop.time()
            self._patience = self.loop.call_later(self._allowed(), self._look)

    def _stop_watching(self) -> None:
        self._size = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _allowed(self) -> float:
        if not self._in_body:
            return self.limits.header_seconds
        return self.limits.body_seconds + self._size / PACE_BYTES

    def _look(self) -> None:
        """Time is over, unless more has come meanwhile, or it is us who do not take what comes."""
        left = self._since + self._allowed() - self.loop.time()
        if self.flow.read_paused:
            left = max(left, self.limits.body_seconds)
        if left > 0:
            self._patience = self.loop.call_later(left, self._look)
            return
        self._patience = None
        if not self._in_body:
            detail = f"No request came within {self.limits.header_seconds:g} seconds."
            self._refuse(Declined(408, "headers_too_slow", detail))
            return
        detail = f"The body came too slowly: {self._size:,} bytes in {self.loop.time() - self._since:.0f} seconds."
        if self.cycle.response_started:
            self.transport.abort()
        else:
            # The handler learns that its caller is gone; the caller learns why.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._refuse(Declined(408, "body_too_slow", detail))

    def _refuse(self, declined: Declined) -> None:
        """Answer without a handler, and close."""
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
