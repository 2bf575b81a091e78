"""Time limits of a connection: for a request to arrive, for answers to be read, and for idle and closing connections.

A timer runs only while the server waits for the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from redkey.config import Limits
from redkey.http.exchange import Exchange
from redkey.http.problems import Declined

# A body may take longer if it arrives at this rate or faster, in bytes per second.
PACE_BYTES = 16 * 1024
# A client must read at least this many bytes of a buffered answer in each `stalled_seconds`.
_READ_BYTES = 16 * 1024
_KEEP_ALIVE_SECONDS = 75


class Bounded(Protocol):
    """What `Deadlines` uses of its connection."""

    transport: asyncio.Transport
    # The request whose body is being received, and how many of its bytes have arrived.
    coming: Exchange | None
    size: int
    is_reading: bool

    @property
    def line(self) -> Sequence[Exchange]:
        """The requests that wait for their answers, in order."""
        ...

    def refuse(self, declined: Declined) -> None:
        """Answer the incomplete request with a problem, and read nothing further."""
        ...

    def end(self) -> None:
        """Close the connection after everything has been sent."""
        ...

    def abort(self) -> None:
        """Close at once and discard buffered output."""
        ...


class Deadlines:
    """The timers of one connection."""

    def __init__(self, connection: Bounded, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self._connection, self._loop, self._limits = connection, loop, limits
        # When the server began to wait for the current request, and the timer of its limit; None if it waits for
        # nothing.
        self.arriving_since = 0.0
        self.arrival: asyncio.TimerHandle | None = None
        # When the last answer was sent.
        self.idle_since = loop.time()
        self._idle = loop.call_later(_KEEP_ALIVE_SECONDS, self._check_idle)
        # The output that was buffered at the last check of a slow reader, and the timer of the next check.
        self._buffered = 0
        self._writing: asyncio.TimerHandle | None = None
        self.closing: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """Cancel all timers: the connection has ended."""
        for timer in (self.arrival, self._idle, self._writing, self.closing):
            if timer is not None:
                timer.cancel()

    # Arrival of requests.

    def await_arrival(self) -> None:
        """Start the limit for the arrival of a request, unless it runs already."""
        if self.arrival is None:
            self.arriving_since = self._loop.time()
            self.arrival = self._loop.call_later(self._allowed(), self._check_arrival)

    def arrived(self) -> None:
        """End the limit: the request has arrived whole."""
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
            # Time counts only after the requests before it have been answered.
            self.arriving_since = now
        left = self.arriving_since + self._allowed() - now
        if not connection.is_reading:
            left = max(left, self._limits.body_seconds)
        if left > 0:
            self.arrival = self._loop.call_later(left, self._check_arrival)
            return
        self.arrival = None
        if coming is None:
            detail = f"No complete request arrived within {self._limits.header_seconds:g} seconds."
            connection.refuse(Declined(408, "headers_too_slow", detail))
            return
        seconds = now - self.arriving_since
        detail = f"The body arrived too slowly: {connection.size:,} bytes in {seconds:.0f} seconds."
        connection.refuse(Declined(408, "body_too_slow", detail))

    # Slow readers.

    def await_reading(self) -> None:
        """Start the limit for a client that does not read its answers."""
        self._buffered = self._connection.transport.get_write_buffer_size()
        self._writing = self._loop.call_later(self._limits.stalled_seconds, self._check_writing)

    def read(self) -> None:
        """End the limit: the client has read enough."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _check_writing(self) -> None:
        before = self._buffered
        self.await_reading()
        if self._buffered > before - _READ_BYTES:
            self.read()
            self._connection.abort()

    # Idle and closing connections.

    def end_after(self, seconds: float) -> None:
        """Close the connection after this time."""
        self.closing = self._loop.call_later(seconds, self._connection.end)

    def await_closing(self) -> None:
        """Abort the connection if the client does not read the last answers."""
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
