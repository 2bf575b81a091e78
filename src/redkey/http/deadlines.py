"""Deadlines of a connection: how long a request may take to arrive, answers may lie unread, an idle or a closing
connection is kept. Time counts only while it is the caller who keeps us waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from redkey.config import Limits
from redkey.http.exchange import Exchange
from redkey.http.problems import Declined

# A body that arrives at this pace, in bytes a second, is given the time it needs.
PACE_BYTES = 16 * 1024
# A caller has to read at least this many bytes of a buffered answer while `stalled_seconds` pass.
_READ_BYTES = 16 * 1024
_KEEP_ALIVE_SECONDS = 75


class Bounded(Protocol):
    """What deadlines need of their connection."""

    transport: asyncio.Transport
    # The request whose body is being received, and how many bytes of it have come.
    coming: Exchange | None
    size: int
    is_reading: bool

    @property
    def line(self) -> Sequence[Exchange]:
        """The requests that wait for their answers, in order."""
        ...

    def refuse(self, declined: Declined) -> None:
        """Answer what has not been read whole with a problem, and read no further."""
        ...

    def end(self) -> None:
        """End the connection once the caller has what was sent."""
        ...

    def abort(self) -> None:
        """Close at once, without sending what is still buffered."""
        ...


class Deadlines:
    """The timers of one connection."""

    def __init__(self, connection: Bounded, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self._connection, self._loop, self._limits = connection, loop, limits
        # Since when the request that is being received is waited for, and when that is looked at again; None when
        # nothing is waited for.
        self.arriving_since = 0.0
        self.arrival: asyncio.TimerHandle | None = None
        # When the last answer was sent.
        self.idle_since = loop.time()
        self._idle = loop.call_later(_KEEP_ALIVE_SECONDS, self._check_idle)
        # While the caller has to read: how much is buffered, and when that is looked at again.
        self._buffered = 0
        self._writing: asyncio.TimerHandle | None = None
        self.closing: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """The connection has ended."""
        for timer in (self.arrival, self._idle, self._writing, self.closing):
            if timer is not None:
                timer.cancel()

    # Arriving.

    def await_arrival(self) -> None:
        """Bound the time in which a request that is not whole yet must arrive."""
        if self.arrival is None:
            self.arriving_since = self._loop.time()
            self.arrival = self._loop.call_later(self._allowed(), self._check_arrival)

    def arrived(self) -> None:
        """Nothing is waited for any more."""
        if self.arrival is not None:
            self.arrival.cancel()
            self.arrival = None

    def _allowed(self) -> float:
        connection, limits = self._connection, self._limits
        if connection.coming is None:
            return limits.header_seconds
        return limits.body_seconds + connection.size / PACE_BYTES

    def _check_arrival(self) -> None:
        """Refuse a request that arrives too slowly."""
        connection, now = self._connection, self._loop.time()
        coming, line = connection.coming, connection.line
        if line and line[0] is not coming:
            # It is its turn only when the requests before it are answered.
            self.arriving_since = now
        left = self.arriving_since + self._allowed() - now
        if not connection.is_reading:
            left = max(left, self._limits.body_seconds)
        if left > 0:
            self.arrival = self._loop.call_later(left, self._check_arrival)
            return
        self.arrival = None
        if coming is None:
            detail = f"No request came within {self._limits.header_seconds:g} seconds."
            connection.refuse(Declined(408, "headers_too_slow", detail))
            return
        seconds = now - self.arriving_since
        detail = f"The body came too slowly: {connection.size:,} bytes in {seconds:.0f} seconds."
        connection.refuse(Declined(408, "body_too_slow", detail))

    # Reading answers.

    def await_reading(self) -> None:
        """Cut the caller if it does not read its answers."""
        self._buffered = self._connection.transport.get_write_buffer_size()
        self._writing = self._loop.call_later(self._limits.stalled_seconds, self._check_writing)

    def read(self) -> None:
        """The caller has read what was sent."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _check_writing(self) -> None:
        before = self._buffered
        self.await_reading()
        if self._buffered > before - _READ_BYTES:
            self.read()
            self._connection.abort()

    # The end.

    def end_after(self, seconds: float) -> None:
        """End the connection after so long."""
        self.closing = self._loop.call_later(seconds, self._connection.end)

    def await_closing(self) -> None:
        """Cut a caller that does not read the last answers, which would keep the connection open."""
        if self.closing is not None:
            self.closing.cancel()
        before = self._connection.transport.get_write_buffer_size()
        self.closing = self._loop.call_later(self._limits.stalled_seconds, self._check_closing, before)

    def _check_closing(self, before: int) -> None:
        if self._connection.transport.get_write_buffer_size() > before - _READ_BYTES:
            self._connection.abort()
        else:
            self.await_closing()

    def _check_idle(self) -> None:
        busy = self._connection.line or self.arrival is not None
        left = _KEEP_ALIVE_SECONDS if busy else self.idle_since + _KEEP_ALIVE_SECONDS - self._loop.time()
        if left <= 0:
            self._connection.end()
        else:
            self._idle = self._loop.call_later(left, self._check_idle)
