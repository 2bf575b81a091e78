"""Events by HTTP: records in the form that existing clients expect, as a list and as server-sent events."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import orjson

from redkey.bus.http.call import BusReply, BusRequest
from redkey.bus.http.shapes import BusStreamQuery, EventsQuery
from redkey.bus.model import SessionRecord
from redkey.errors import BusRefused
from redkey.http.event_stream import cursor_frame, event_frame, run_event_stream

_LIMIT = 500
_PAGE = 100
_CURSOR_SECONDS = 15.0
_PREFIX = "record-"
_LAST = 1 << 39


def event_of(session_id: str, record: SessionRecord) -> dict[str, Any]:
    """Show a record as an event: `type` by seed 002, `event_type` for existing clients."""
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


async def bus_events(call: BusRequest) -> BusReply:
    """The last events of a session in order; with `after`, the next ones."""
    session, limits = call.session, call.bus.limits
    query: EventsQuery = call.query
    limit, before = min(query.limit or _LIMIT, limits.history), query.before if query.before is not None else _LAST
    feed = call.bus.feed(session)

    def look() -> list[SessionRecord]:
        return feed.between(query.after, before, limit, limits.history_bytes)

    records = await call.poll(session, look, query.wait)
    return BusReply(200, [event_of(session.id, record) for record in records if call.sees(record)])


def cursor_of(call: BusRequest) -> int:
    """The position where a stream begins: Last-Event-ID, else `after`, else the first event."""
    query: BusStreamQuery = call.query
    text = call.headers.get(b"last-event-id", b"").decode("latin-1").strip().removeprefix(_PREFIX)
    if not text:
        return query.after or 0
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise BusRefused("Last-Event-ID must be the id of an event of this stream", code="cursor_invalid")
    return int(text)


class StreamFollower:
    """What both streams share: a position, and a signal for new records."""

    def __init__(self, call: BusRequest) -> None:
        self._call, self._bus, self._place = call, call.bus, cursor_of(call)
        query: BusStreamQuery = call.query
        self._follow = query.follow
        self._more = asyncio.Event()
        self._stopping = self._is_complete = False

    def wake(self) -> None:
        self._more.set()

    def stop(self) -> None:
        """End the stream because the server stops; the client resumes with its last id."""
        self._stopping = True
        self._more.set()

    @property
    def behind(self) -> bool:
        return False

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._more.wait()
        self._more.clear()


class EventFollower(StreamFollower):
    """The events of a session for one client, at its pace."""

    def __init__(self, call: BusRequest) -> None:
        super().__init__(call)
        self._session = call.session
        self._feed = call.bus.feed(self._session)
        self._until = self._feed.last
        self._feed.followers.add(self)

    @property
    def ended(self) -> bool:
        over = self._feed.closed and self._place >= self._feed.last
        return self._stopping or over or (not self._follow and self._place >= self._until)

    def take(self) -> bytes:
        records = self._feed.after(self._place, _PAGE)
        if not self._follow:
            records = [record for record in records if record.seq <= self._until]
        if not records:
            return b""
        self._place = records[-1].seq
        seen = [record for record in records if self._call.sees(record)]
        frames = [self._frame(record) for record in seen]
        # Send the position after left-out records too, so that a resumed stream does not read them again.
        return b"".join(frames) if seen and seen[-1] is records[-1] else b"".join([*frames, self.cursor()])

    def _frame(self, record: SessionRecord) -> bytes:
        return event_frame(f"{_PREFIX}{record.seq}", orjson.dumps(event_of(self._session.id, record)))

    def cursor(self) -> bytes:
        return cursor_frame(f"{_PREFIX}{self._place}")

    def leave(self) -> None:
        self._feed.followers.discard(self)


class SessionFollower(StreamFollower):
    """The sessions of a workspace that are created and closed."""

    def __init__(self, call: BusRequest) -> None:
        super().__init__(call)
        self._bus.watchers.add(self)

    @property
    def ended(self) -> bool:
        return self._stopping or (not self._follow and self._is_complete)

    def take(self) -> bytes:
        page = self._bus.log.session_records(self._call.caller.workspace, self._place, _PAGE)
        self._is_complete = len(page) < _PAGE
        if not page:
            return b""
        self._place = page[-1][0]
        frames = []
        for number, record in page:
            session_id = orjson.loads(record.envelope)["session"]
            session = self._bus.session_of_id(session_id, self._call.caller.workspace)
            event = {**event_of(session_id, record), "session": session.as_json() if session is not None else None}
            frames.append(event_frame(number, orjson.dumps(event)))
        return b"".join(frames)

    def cursor(self) -> bytes:
        return cursor_frame(self._place)

    def leave(self) -> None:
        self._bus.watchers.discard(self)


async def bus_follow(call: BusRequest) -> None:
    """Follow the events of a session as server-sent events; Last-Event-ID resumes."""
    await _run(call, EventFollower(call))


async def bus_watch_sessions(call: BusRequest) -> None:
    """Follow the sessions that are created and closed, as server-sent events."""
    await _run(call, SessionFollower(call))


async def _run(call: BusRequest, stream: EventFollower | SessionFollower) -> None:
    call.streams.add(stream)
    # When the key ends, the stream ends as on a server stop; the client is refused when it reconnects.
    release = call.caller.hold(stream.stop) if call.caller.hold is not None else None
    try:
        await run_event_stream(call.exchange, stream, cursor_seconds=_CURSOR_SECONDS)
    finally:
        call.streams.discard(stream)
        if release is not None:
            release()
