"""Streams to one connection, from any place on, at the pace of its reader: `events.stream` and `sessions.stream`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson

from redkey.bus.envelope import BUS, VERSION, Envelope
from redkey.bus.feed import Feed
from redkey.bus.shown import show_session

if TYPE_CHECKING:
    from redkey.bus.connection import Connection

_PAGE = 64


class RecordStream:
    """One `events.stream` request that is being answered."""

    def __init__(self, connection: Connection, feed: Feed, asked: Envelope, after: int, *, follow: bool) -> None:
        self._connection, self._feed, self._place, self._follow = connection, feed, after, follow
        self._asked = asked
        # The records in between differ, all else of the envelopes is the same.
        envelope = Envelope(
            v=VERSION,
            type="events.record",
            id=asked.id,
            ts=connection.bus.now(),
            src=BUS,
            session=asked.session or connection.bound_session,
            corr=asked.id,
        )
        self._head = envelope.encode()[:-1] + b',"payload":'
        self._until = feed.last
        self._scheduled = False

    def begin(self) -> None:
        self._connection.streams[self._asked.id] = self
        self._feed.followers.add(self)
        self.wake()

    def end(self) -> None:
        self._connection.streams.pop(self._asked.id, None)
        self._feed.followers.discard(self)

    def wake(self) -> None:
        """Send a page, if the reader takes it; then let others have their turn before the next."""
        if self._scheduled or self._connection.paused or self._asked.id not in self._connection.streams:
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
            self._connection.end_stream(self._asked.id, self._place, follow=self._follow)

    def _again(self) -> None:
        self._scheduled = False
        self.wake()


class SessionStream:
    """One `sessions.stream` request that is being answered: sessions of a workspace that come and go."""

    def __init__(self, connection: Connection, asked: Envelope, after: int, *, follow: bool) -> None:
        self._connection, self._asked, self._place, self._follow = connection, asked, after, follow

    def begin(self) -> None:
        self._connection.streams[self._asked.id] = self
        self._connection.bus.watchers.add(self)
        self.wake()

    def end(self) -> None:
        self._connection.streams.pop(self._asked.id, None)
        self._connection.bus.watchers.discard(self)

    def wake(self) -> None:
        """Send what there is, as long as the reader takes it."""
        connection, bus = self._connection, self._connection.bus
        while not connection.paused and self._asked.id in connection.streams:
            found = bus.log.session_records(connection.workspace, self._place, _PAGE)
            for number, record in found:
                self._place = number
                session = bus.session(orjson.loads(record.envelope)["session"])
                payload = {"number": number, "session": show_session(session), "record": orjson.loads(record.line)}
                connection.say("sessions.record", payload=payload, corr=self._asked.id)
            if len(found) < _PAGE:
                if not self._follow:
                    self.end()
                    connection.end_stream(self._asked.id, self._place, follow=False)
                return
