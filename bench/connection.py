"""One HTTP/1.1 connection that stays open. The client is minimal, because it shares the machine with the server.

Requests may be sent before earlier ones are answered (pipelining); answers come in the order of the requests.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """An answer, unparsed."""

    status: int
    head: bytes
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(method: str, path: str, key: str, body: Any = None, *, idempotency_key: str = "") -> bytes:
    """The bytes of a request. `body` is JSON, or the bytes of it."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: redkey", f"authorization: Bearer {key}"]
    if idempotency_key:
        lines.append(f"idempotency-key: {idempotency_key}")
    if data or method != "GET":
        lines += ["content-type: application/json", f"content-length: {len(data)}"]
    return "\r\n".join((*lines, "", "")).encode() + data


class Connection(asyncio.Protocol):
    """A connection to a server, by TCP or by a Unix socket."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._transport: asyncio.Transport | None = None
        self._lost: Exception | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, place: str) -> Connection:
        """Connect to `http://HOST:PORT`, or to the path of a Unix socket."""
        loop = asyncio.get_running_loop()
        if place.startswith("http://"):
            host, _, port = place.removeprefix("http://").rpartition(":")
            return (await loop.create_connection(cls, host, int(port)))[1]
        return (await loop.create_unix_connection(cls, place))[1]

    def send(self, data: bytes) -> asyncio.Future[Reply]:
        """Send one request; return a future for its answer. ConnectionResetError if the connection ends before that."""
        answer: asyncio.Future[Reply] = self._loop.create_future()
        if self._lost is not None or self._transport is None:
            answer.set_exception(ConnectionResetError("the connection has ended"))
        else:
            self._waiting.append(answer)
            self._transport.write(data)
        return answer

    async def call(self, method: str, path: str, key: str, body: Any = None) -> Any:
        """Return the JSON answer of a request; RuntimeError if it was refused."""
        reply = await self.send(request(method, path, key, body))
        if not 200 <= reply.status < 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {reply.body.decode()}")
        return reply.json

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                break
            at = buffer.find(b"content-length: ", 0, end)
            size = int(buffer[at + 16 : buffer.index(b"\r\n", at)])
            if len(buffer) < end + 4 + size:
                break
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_result(Reply(int(buffer[9:12]), buffer[:end], buffer[end + 4 : end + 4 + size]))
            buffer = buffer[end + 4 + size :]
        self._buffer = buffer

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc or ConnectionResetError("the connection has ended")
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(ConnectionResetError("the connection ended before the answer"))
        self._waiting.clear()
