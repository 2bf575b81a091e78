"""Mount an ASGI application behind RedKey's own connections, with its lifespan.

The connection limits the sizes, times and order of its requests as it does for RedKey's own API. The application must
authenticate its callers itself. Its responses pass through unchanged, except for headers that belong to the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import structlog

from redkey.errors import RedKeyError
from redkey.http import problems
from redkey.http.exchange import Exchange, header_lines
from redkey.http.security import SECURITY

Message = MutableMapping[str, Any]
Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]

_VERSIONS = {"version": "3.0", "spec_version": "2.4"}
# The connection sets these headers itself, so the application's values are dropped.
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"date", b"server"})
_PROBLEM = header_lines([(b"content-type", problems.MEDIA_TYPE.encode()), *SECURITY])

_log = structlog.get_logger("redkey.http")


class MountFailed(RedKeyError):
    """A mounted application could not start."""

    code = "mount_failed"


class Mount:
    """One application below a path."""

    def __init__(self, application: Application, prefix: str = "") -> None:
        self._application, self.prefix = application, prefix
        self._lifespan: asyncio.Task[None] | None = None
        self._to_application: asyncio.Queue[Message] = asyncio.Queue()
        self._from_application: asyncio.Queue[Message | None] = asyncio.Queue()
        self._state: dict[str, Any] = {}

    async def start(self) -> None:
        """Run the application's ASGI startup, if it has one; raise MountFailed if the application reports a failure."""
        self._lifespan = asyncio.get_running_loop().create_task(self._live())
        self._to_application.put_nowait({"type": "lifespan.startup"})
        answer = await self._from_application.get()
        if answer is not None and answer["type"] == "lifespan.startup.failed":
            raise MountFailed(f"the application at {self.prefix or '/'} did not start: {answer.get('message', '')}")

    async def stop(self) -> None:
        """Run the application's ASGI shutdown, and wait for its end."""
        if self._lifespan is None:
            return
        if not self._lifespan.done():
            self._to_application.put_nowait({"type": "lifespan.shutdown"})
            await self._from_application.get()
        await self._lifespan

    async def _live(self) -> None:
        scope = {"type": "lifespan", "asgi": _VERSIONS, "state": self._state}
        try:
            await self._application(scope, self._to_application.get, self._from_application.put)
        except Exception as error:
            # Applications without a lifespan raise when they see its scope.
            _log.debug("a mounted application has no lifespan", prefix=self.prefix, reason=str(error))
        finally:
            self._from_application.put_nowait(None)

    async def __call__(self, exchange: Exchange, state: Mapping[str, Any] | None = None) -> None:
        """Pass a request to the application; `state` is added to the state of the request."""
        await self._answer(exchange, self._scope(exchange, state or {}), exchange.receive)

    async def answer(self, exchange: Exchange, *, path: str, body: bytes, state: Mapping[str, Any]) -> None:
        """Pass a request to the application whose body has been read already, as if it had been sent to `path`."""
        scope = self._scope(exchange, state) | {"path": path}
        pieces = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Mapping[str, Any]:
            return pieces.pop() if pieces else await exchange.receive()

        await self._answer(exchange, scope, receive)

    async def _answer(self, exchange: Exchange, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> None:
        async def send(message: Mapping[str, Any]) -> None:
            if exchange.gone:
                # ASGI 2.4 reports a disconnect to the application in this way.
                raise ConnectionResetError
            if message["type"] == "http.response.start":
                headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
                kept = [header for header in headers if header[0] not in _OF_THE_CONNECTION]
                message = {**message, "headers": kept}
            await exchange.send(message)

        try:
            await self._application(scope, receive, send)
        except Exception as error:
            if exchange.gone:
                return
            answer = problems.answer(error)
            if answer.status >= 500:
                _log.error("a mounted application failed", path=exchange.path, exc_info=error)
            exchange.reply(answer.status, _PROBLEM + header_lines(answer.headers), answer.body)

    def _scope(self, exchange: Exchange, state: Mapping[str, Any]) -> dict[str, Any]:
        address = exchange.connection.address
        return {
            "type": "http",
            "asgi": _VERSIONS,
            "http_version": "1.1",
            "method": exchange.method,
            "scheme": "http",
            "path": exchange.path,
            "root_path": self.prefix,
            "query_string": exchange.query,
            "headers": list(exchange.headers.items()),
            "client": (address, 0) if address else None,
            "server": None,
            "state": {**self._state, **state},
        }
