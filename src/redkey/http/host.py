"""Hosting: uvicorn's server around the API's own connections, stopped the way RedKey needs it.

Uvicorn listens, waits for signals and lets connections end; what is said on them is `connection`'s. Beside what
uvicorn does, a stop first answers those who wait, and its end is an exit code and not a signal.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import uvicorn

from redkey.config import Config
from redkey.errors import CannotListen
from redkey.http.connection import Connection
from redkey.http.exchange import Exchange, header_lines

_BACKLOG = 4096


class Hosted(Protocol):
    """What is hosted."""

    def __call__(self, exchange: Exchange) -> Awaitable[None]:
        """Answer a request."""
        ...

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
    """One server process, and what its connections share."""

    def __init__(self, hosted: Hosted, config: Config, on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                self._unused,
                http=self._connect,  # type: ignore[arg-type]
                loop="uvloop",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=max(1, round(config.limits.stop_seconds)),
            )
        )
        self._hosted, self._on_ready = hosted, on_ready
        self.limits, self.tasks, self.common_headers = config.limits, self.server_state.tasks, b""
        # Uvicorn asks each of these to end when it stops.
        self.connections: set[Any] = self.server_state.connections

    @property
    def answer(self) -> Hosted:
        return self._hosted

    def _connect(self, **_: Any) -> Connection:
        return Connection(self, asyncio.get_running_loop())

    @staticmethod
    async def _unused(scope: Any, receive: Any, send: Any) -> None:
        """Uvicorn wants an application to hand to its own connections; it makes none."""

    async def on_tick(self, counter: int) -> bool:
        ended = await super().on_tick(counter)
        # The date, once a second.
        self.common_headers = header_lines(self.server_state.default_headers)
        return ended

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
