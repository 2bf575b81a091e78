"""`events.stream`: a session's records sent to one connection, from any place on, at the pace of its reader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from redkey.bus.envelope import BUS, VERSION, Envelope
from redkey.bus.feed import Feed

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
            self._connection.say("events.end", payload={"seq": self._place}, corr=self._asked.id)

    def _again(self) -> None:
        self._scheduled = False
        self.wake()
