"""Events by HTTP: records as older clients know them, as a list and as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from redkey.bus.bus import Bus
from redkey.bus.feed import Feed
from redkey.bus.http.call import Answer, Call, Exchange
from redkey.bus.state import Record
from redkey.errors import BusRefused

_LIMIT = 500
_PAGE = 100
_CURSOR_SECONDS = 15.0
_STALLED_SECONDS = 30.0
_PREFIX = "record-"


def event_of(session_id: str, record: Record) -> dict[str, Any]:
    """A record as an event: `type` as the seed says, `event_type` as older clients ask for it."""
    envelope = orjson.loads(record.envelope)
    return {
        "id": f"{_PREFIX}{record.seq}",
        "session_id": session_id,
        "agent_id": envelope.get("dst") or envelope["src"],
        "type": record.type,
        "event_type": record.type,
        "created_at": record.ts,
        "payload": {"seq": record.seq, "ts": record.ts, "envelope": envelope},
    }


async def list_events(call: Call) -> Answer:
    """The last events of a session in order; with `after`, the next ones after that."""
    session, limits = call.session, call.bus.limits
    limit = call.number("limit", _LIMIT, limits.history) or _LIMIT
    feed = call.bus.feed(session)
    if "after" in call.query:
        records = feed.after(call.number("after", 0, 1 << 39), limit)
    else:
        records = feed.before(1 << 39, limit, limits.history_bytes)
    return Answer(200, [event_of(session.id, record) for record in records])


def cursor_of(call: Call) -> int:
    """Where a follower goes on: Last-Event-ID, else `after`, else the beginning."""
    text = call.headers.get(b"last-event-id", b"").decode("latin-1").strip() or call.query.get("after", "0")
    text = text.removeprefix(_PREFIX)
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise BusRefused("Last-Event-ID is the id of an event of this stream", code="cursor_invalid")
    return int(text)


class EventStream:
    """A session's events to one follower, at its pace."""

    def __init__(self, call: Call) -> None:
        self._session, self._place = call.session, cursor_of(call)
        self._feed: Feed = call.bus.feed(self._session)
        self._more = asyncio.Event()

    def wake(self) -> None:
        self._more.set()

    async def run(self, exchange: Exchange) -> None:
        self._feed.followers.add(self)
        try:
            await _stream(self._take, self._more, exchange)
        finally:
            self._feed.followers.discard(self)

    def _take(self) -> bytes | None:
        records = self._feed.after(self._place, _PAGE)
        if not records:
            return None if self._feed.closed else b""
        self._place = records[-1].seq
        return b"".join(_frame(f"{_PREFIX}{one.seq}", event_of(self._session.id, one)) for one in records)


class SessionStream:
    """Sessions of a workspace that come and go."""

    def __init__(self, call: Call) -> None:
        self._bus: Bus = call.bus
        self._workspace, self._place = call.caller.workspace, cursor_of(call)
        self._more = asyncio.Event()

    def wake(self) -> None:
        self._more.set()

    async def run(self, exchange: Exchange) -> None:
        self._bus.watchers.add(self)
        try:
            await _stream(self._take, self._more, exchange)
        finally:
            self._bus.watchers.discard(self)

    def _take(self) -> bytes | None:
        found = self._bus.log.session_records(self._workspace, self._place, _PAGE)
        if not found:
            return b""
        self._place = found[-1][0]
        frames = []
        for number, record in found:
            session_id = orjson.loads(record.envelope)["session"]
            event = {**event_of(session_id, record), "session": self._bus.session(session_id).as_json()}
            frames.append(_frame(str(number), event))
        return b"".join(frames)


def _frame(key: str, event: dict[str, Any]) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (key.encode(), orjson.dumps(event))


async def _stream(take: Callable[[], bytes | None], more: asyncio.Event, exchange: Exchange) -> None:
    """Send what there is, then wait for more; a comment now and then tells that both ends are alive."""
    gone, send = asyncio.ensure_future(_gone(exchange)), exchange.send
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        chunk: bytes | None = b"retry: 1000\n\n"
        while chunk is not None and not gone.done():
            if chunk:
                # One that takes nothing for so long is taken for dead; its last id is its cursor.
                async with asyncio.timeout(_STALLED_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            more.clear()
            chunk = take()
            if chunk == b"":
                waiting = asyncio.ensure_future(more.wait())
                done, _ = await asyncio.wait((waiting, gone), timeout=_CURSOR_SECONDS, return_when="FIRST_COMPLETED")
                waiting.cancel()
                chunk = b"" if done else b": alive\n\n"
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        return
    finally:
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone


async def _gone(exchange: Exchange) -> None:
    while (await exchange.receive())["type"] != "http.disconnect":
        pass
