"""Server-sent events: how they are written, and how a stream of them is kept going.

An id is a position, so a follower that reconnects with Last-Event-ID misses nothing and gets nothing twice. A
follower that does not read is cut by its connection; its last id is where it resumes.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from redkey.http.exchange import Exchange
from redkey.http.security import SECURITY

MEDIA_TYPE = "text/event-stream"
# What the system buffers for one follower: ten thousand of them must not cost what it would give each by itself.
_OUTPUT_BYTES = 64 * 1024
_BEGIN = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", MEDIA_TYPE.encode()), (b"x-accel-buffering", b"no"), *SECURITY],
}
_END = {"type": "http.response.body", "body": b""}
# How long a client waits before it reconnects.
_RETRY = b"retry: 1000\n"


def event_frame(position: int | str, data: bytes, event: str = "") -> bytes:
    """Write one event; `data` is JSON on one line."""
    if event:
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (str(position).encode(), event.encode(), data)
    return b"id: %b\ndata: %b\n\n" % (str(position).encode(), data)


def cursor_frame(position: int | str) -> bytes:
    """Write a bare position: everything up to it has been looked at, so a filtered stream resumes near the head."""
    return b"id: %b\n\n" % str(position).encode()


class Source(Protocol):
    """What a stream sends."""

    @property
    def ended(self) -> bool:
        """True when nothing will follow: the server stops, or what is followed has ended."""
        ...

    @property
    def behind(self) -> bool:
        """True when there is more to look at now."""
        ...

    def take(self) -> bytes:
        """The frames that are there now; empty when there are none."""
        ...

    def cursor(self) -> bytes:
        """A frame with the present position."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait until there may be more, at most so long."""
        ...

    def leave(self) -> None:
        """The stream is over."""
        ...


async def run_event_stream(exchange: Exchange, source: Source, *, cursor_seconds: float) -> int:
    """Send events until the source ends or the follower leaves; the status that was sent.

    A follower gets a cursor when nothing else was sent for `cursor_seconds`.
    """
    try:
        exchange.connection.bound_output(_OUTPUT_BYTES)
        await exchange.while_connected(_pump(exchange, source, cursor_seconds))
    except ConnectionResetError:
        # It left, as followers do.
        pass
    finally:
        source.leave()
    return 200


async def _pump(exchange: Exchange, source: Source, cursor_seconds: float) -> None:
    send, loop = exchange.send, asyncio.get_running_loop()
    await send(_BEGIN)
    if exchange.method == "HEAD":
        await send(_END)
        return
    # At once, so that the follower knows its position and proxies pass the headers on.
    chunk = _RETRY + source.cursor()
    while True:
        if chunk:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            sent_at = loop.time()
        if source.ended:
            break
        chunk = source.take()
        if chunk:
            continue
        left = sent_at + cursor_seconds - loop.time()
        if left <= 0:
            chunk = source.cursor()
        elif source.behind:
            # Nothing of this page was wanted: let others run before the next.
            await asyncio.sleep(0)
        else:
            await source.wait(left)
    await send({"type": "http.response.body", "body": source.cursor(), "more_body": True})
    await send(_END)
