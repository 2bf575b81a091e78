"""Server-sent events: how events are encoded, and the loops that send them.

The id of an event is its position, so a client that reconnects with Last-Event-ID gets each event exactly once.
The connection of a client that does not read is closed; the client resumes from its last id. Nothing else in RedKey
writes such a stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from redkey.http.exchange import Exchange
from redkey.http.security import SECURITY

MEDIA_TYPE = "text/event-stream"
# The send buffer for each follower. The system's default would take too much memory for ten thousand followers.
_OUTPUT_BYTES = 64 * 1024
_HEADERS = [(b"content-type", MEDIA_TYPE.encode()), (b"x-accel-buffering", b"no"), *SECURITY]
_END = {"type": "http.response.body", "body": b""}
# How long a client waits before it reconnects.
_RETRY = b"retry: 1000\n"
# A comment, which clients ignore, keeps proxies from closing a quiet stream.
_QUIET = b":\n\n"


def event_frame(position: int | str, data: bytes, event: str = "") -> bytes:
    """Encode one event; `data` is JSON on one line. Without a position (`""`) the client keeps the one it has."""
    frame = b"data: %b\n\n" % data
    if event:
        frame = b"event: %b\n%b" % (event.encode(), frame)
    return frame if position == "" else b"id: %b\n%b" % (str(position).encode(), frame)


def cursor_frame(position: int | str) -> bytes:
    """Encode a position without an event, so that a filtered stream resumes after the events that it skipped."""
    return b"id: %b\n\n" % str(position).encode()


class Source(Protocol):
    """The events of one stream."""

    @property
    def ended(self) -> bool:
        """True when no more events will come: the server stops, or the followed entity has ended."""
        ...

    @property
    def behind(self) -> bool:
        """True when more events can be read at once."""
        ...

    def take(self) -> bytes:
        """Return the frames that are ready now; empty if there are none."""
        ...

    def cursor(self) -> bytes:
        """Return a frame with the current position."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait until there may be more events, or the time has passed."""
        ...

    def leave(self) -> None:
        """Stop following: the stream has ended."""
        ...


async def run_event_stream(exchange: Exchange, source: Source, *, cursor_seconds: float) -> int:
    """Send events until the source ends or the client disconnects; return the HTTP status.

    If no event was sent for `cursor_seconds`, the current position is sent.
    """
    try:
        exchange.connection.bound_output(_OUTPUT_BYTES)
        await exchange.while_connected(_pump(exchange, source, cursor_seconds))
    except ConnectionResetError:
        # The client disconnected, which is the usual end.
        pass
    finally:
        source.leave()
    return 200


async def send_frames(
    exchange: Exchange, frames: AsyncIterator[bytes], *, headers: Sequence[tuple[bytes, bytes]], quiet_seconds: float
) -> None:
    """Send frames as they come until there are no more; ConnectionResetError if the client disconnects.

    No positions are sent between the events: A2A clients read every event as an object. If there was no event for
    `quiet_seconds`, a comment is sent.
    """
    await exchange.while_connected(_send_frames(exchange, frames, headers, quiet_seconds))


async def _send_frames(
    exchange: Exchange, frames: AsyncIterator[bytes], headers: Sequence[tuple[bytes, bytes]], quiet_seconds: float
) -> None:
    await exchange.send(_begin(headers))
    following = asyncio.ensure_future(anext(frames, None))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=quiet_seconds)
            frame = following.result() if done else _QUIET
            if frame is None:
                break
            await exchange.send({"type": "http.response.body", "body": frame, "more_body": True})
            if done:
                following = asyncio.ensure_future(anext(frames, None))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await exchange.send(_END)


def _begin(headers: Sequence[tuple[bytes, bytes]] = ()) -> dict[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *headers]}


async def _pump(exchange: Exchange, source: Source, cursor_seconds: float) -> None:
    send, loop = exchange.send, asyncio.get_running_loop()
    await send(_begin())
    if exchange.method == "HEAD":
        await send(_END)
        return
    # Send the position at once, so that the client knows it and proxies forward the headers.
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
            # The filter dropped this whole page: let other tasks run before the next one.
            await asyncio.sleep(0)
        else:
            await source.wait(left)
    await send({"type": "http.response.body", "body": source.cursor(), "more_body": True})
    await send(_END)
