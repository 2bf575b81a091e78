"""Streams to one connection, from any position on, at the reader's pace: `events.stream` and `sessions.stream`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson

from redkey.bus.envelope import BUS, VERSION, Envelope
from redkey.bus.feed import SessionFeed
from redkey.bus.views import show_session

if TYPE_CHECKING:
    from redkey.bus.connection import BusConnection

_PAGE = 64


class RecordStream:
    """The stream of one `events.stream` request."""

    def __init__(
        self, connection: BusConnection, feed: SessionFeed, request: Envelope, after: int, *, follow: bool
    ) -> None:
        self._connection, self._feed, self._place, self._follow = connection, feed, after, follow
        self._request = request
        # Only the record differs between the envelopes of a stream.
        envelope = Envelope(
            v=VERSION,
            type="events.record",
            id=request.id,
            ts=connection.bus.now(),
            src=BUS,
            session=request.session or connection.bound_session,
            corr=request.id,
        )
        self._head = envelope.encode()[:-1] + b',"payload":'
        self._until = feed.last
        self._scheduled = False

    def begin(self) -> None:
        """Start sending."""
        self._connection.streams[self._request.id] = self
        self._feed.followers.add(self)
        self.wake()

    def end(self) -> None:
        """Stop sending."""
        self._connection.streams.pop(self._request.id, None)
        self._feed.followers.discard(self)

    def wake(self) -> None:
        """Send a page if the reader takes it; other work gets a turn before the next page."""
        if self._scheduled or self._connection.paused or self._request.id not in self._connection.streams:
            return
        records = self._feed.after(self._place, _PAGE)
        if not self._follow:
            records = [record for record in records if record.seq <= self._until]
        if records:
            head = self._head
            self._connection.write(b"".join([b"%s%s}\n" % (head, record.line) for record in records]))
            self._place = records[-1].seq
        if len(records) == _PAGE:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._again)
        elif not self._follow or (self._feed.closed and self._place >= self._feed.last):
            self.end()
            self._connection.end_stream(self._request.id, self._place, follow=self._follow)

    def _again(self) -> None:
        self._scheduled = False
        self.wake()


class SessionStream:
    """The stream of one `sessions.stream` request: sessions of a workspace that are created and closed."""

    def __init__(self, connection: BusConnection, request: Envelope, after: int, *, follow: bool) -> None:
        self._connection, self._request, self._place, self._follow = connection, request, after, follow

    def begin(self) -> None:
        """Start sending."""
        self._connection.streams[self._request.id] = self
        self._connection.bus.watchers.add(self)
        self.wake()

    def end(self) -> None:
        """Stop sending."""
        self._connection.streams.pop(self._request.id, None)
        self._connection.bus.watchers.discard(self)

    def wake(self) -> None:
        """Send what there is, while the reader takes it."""
        connection, bus = self._connection, self._connection.bus
        while not connection.paused and self._request.id in connection.streams:
            page = bus.log.session_records(connection.workspace, self._place, _PAGE)
            for number, record in page:
                self._place = number
                session = bus.session(orjson.loads(record.envelope)["session"])
                payload = {"number": number, "session": show_session(session), "record": orjson.loads(record.line)}
                connection.say("sessions.record", payload=payload, corr=self._request.id)
            if len(page) < _PAGE:
                if not self._follow:
                    self.end()
                    connection.end_stream(self._request.id, self._place, follow=False)
                return
