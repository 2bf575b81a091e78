"""Feeds: the records of a session as they become durable, and those who follow them.

A follower has no queue, only a place: it takes from the last records in memory while they reach back to it, and from
the log where not. So a slow one costs what it takes and nothing more, and nobody waits for it.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from redkey.bus.log import Log
from redkey.bus.state import Record

_RING = 1024
_RING_BYTES = 4 * 1024 * 1024


class Follower(Protocol):
    """Somebody who wants to know that there is more, or that it is over."""

    def wake(self) -> None: ...


class Feed:
    """The durable records of one session."""

    def __init__(self, log: Log, number: int, last: int, *, closed: bool = False) -> None:
        self._log, self._number = log, number
        self.last, self.closed = last, closed
        self._ring: deque[Record] = deque()
        self._bytes = 0
        self.followers: set[Follower] = set()

    def publish(self, record: Record) -> None:
        """A record is durable."""
        self._ring.append(record)
        self._bytes += len(record.envelope)
        while len(self._ring) > _RING or self._bytes > _RING_BYTES:
            self._bytes -= len(self._ring.popleft().envelope)
        self.last = record.seq

    def wake(self) -> None:
        for follower in tuple(self.followers):
            follower.wake()

    def after(self, place: int, limit: int) -> list[Record]:
        """The next records after a place."""
        if place >= self.last:
            return []
        first = self._ring[0].seq if self._ring else self.last + 1
        if place + 1 < first:
            return [record for record in self._log.records(self._number, place, limit) if record.seq <= self.last]
        start = place + 1 - first
        return [self._ring[index] for index in range(start, min(start + limit, len(self._ring)))]

    def before(self, place: int, limit: int, size: int) -> list[Record]:
        """The last records before a place, oldest first, as many as are within the limits."""
        found: list[Record] = []
        for record in self._log.last_records(self._number, min(place, self.last + 1), limit):
            size -= len(record.envelope)
            if size < 0 and found:
                break
            found.append(record)
        found.reverse()
        return found

    def between(self, after: int | None, before: int, limit: int, size: int) -> list[Record]:
        """Records within two places: the first after `after` if it is given, else the last before `before`."""
        if after is None:
            return self.before(before, limit, size)
        found: list[Record] = []
        for record in self.after(after, limit):
            size -= len(record.envelope)
            if record.seq >= before or (size < 0 and found):
                break
            found.append(record)
        return found

    def record(self, seq: int) -> Record | None:
        first = self._ring[0].seq if self._ring else self.last + 1
        if seq >= first:
            return self._ring[seq - first] if seq <= self.last else None
        return self._log.record(self._number, seq)
