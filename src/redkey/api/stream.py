"""Live events over HTTP, as server-sent events.

The id of an event is its sequence in the workspace, so a follower that reconnects with Last-Event-ID gets every event
exactly once.
"""

from __future__ import annotations

import msgspec

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.api.endpoint import Receive, Send, Stream
from redkey.http.event_stream import cursor_frame, event_frame, run_event_stream
from redkey.services.following import Following
from redkey.services.use_cases import events as use_cases
from redkey.shapes.events import Event, StreamQuery

_encode = msgspec.json.Encoder().encode


class EventStream(Stream):
    """The stream of one follower."""

    def __init__(self, call: Call, following: Following) -> None:
        self._call, self._following = call, following
        self.take, self.wait, self.leave = following.take, following.wait, following.leave

    async def run(self, receive: Receive, send: Send) -> int:
        seconds = self._call.services.config.limits.cursor_seconds
        return await run_event_stream(self._call.exchange, self, cursor_seconds=seconds)

    @property
    def ended(self) -> bool:
        return self._following.ended

    @property
    def behind(self) -> bool:
        return self._following.behind

    def cursor(self) -> bytes:
        return cursor_frame(self._following.position)


async def stream(call: Call) -> EventStream:
    """The events of the workspace, live."""
    query: StreamQuery = call.query
    after = last_event_id(call)
    if after is not None:
        query = msgspec.structs.replace(query, after=after)
    return EventStream(call, use_cases.stream(call, query))


def last_event_id(call: Call) -> int | None:
    """Where a follower that reconnects wants to resume; -1, which is no valid place, if the header is not a number."""
    text = call.exchange.headers.get(b"last-event-id", b"").strip()
    if not text:
        return None
    return int(text) if text.isdigit() and len(text) <= 15 else -1


def frame(event: Event) -> bytes:
    """Format an event of the ledger as a server-sent event."""
    return event_frame(event.sequence, _encode(event), event.type)


ROUTES = [bound(use_cases.stream, stream)]
