"""Feeds: the durable records of a session, and their followers.

A follower has no queue, only a position: it reads the last records from memory if they reach back far enough, else from
the log. So a slow follower uses no memory and delays no other one.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from redkey.bus.log import BusLog
from redkey.bus.model import SessionRecord

_RING = 1024
_RING_BYTES = 4 * 1024 * 1024


class Follower(Protocol):
    """A reader that is woken for new records and for the end of the session."""

    def wake(self) -> None: ...


class SessionFeed:
    """The durable records of one session."""

    def __init__(self, log: BusLog, number: int, last: int, *, closed: bool = False) -> None:
        self._log, self._number = log, number
        self.last, self.closed = last, closed
        self._ring: deque[SessionRecord] = deque()
        self._bytes = 0
        self.followers: set[Follower] = set()

    def publish(self, record: SessionRecord) -> None:
        """Add a record that is durable."""
        self._ring.append(record)
        self._bytes += len(record.envelope)
        while len(self._ring) > _RING or self._bytes > _RING_BYTES:
            self._bytes -= len(self._ring.popleft().envelope)
        self.last = record.seq

    def wake(self) -> None:
        """Wake all followers."""
        for follower in tuple(self.followers):
            follower.wake()

    def after(self, place: int, limit: int) -> list[SessionRecord]:
        """The next records after a position."""
        if place >= self.last:
            return []
        first = self._ring[0].seq if self._ring else self.last + 1
        if place + 1 < first:
            return [record for record in self._log.records(self._number, place, limit) if record.seq <= self.last]
        start = place + 1 - first
        return [self._ring[index] for index in range(start, min(start + limit, len(self._ring)))]

    def before(self, place: int, limit: int, size: int) -> list[SessionRecord]:
        """The last records before a position, oldest first, within the limits of count and bytes."""
        records: list[SessionRecord] = []
        for record in self._log.last_records(self._number, min(place, self.last + 1), limit):
            size -= len(record.envelope)
            if size < 0 and records:
                break
            records.append(record)
        records.reverse()
        return records

    def between(self, after: int | None, before: int, limit: int, size: int) -> list[SessionRecord]:
        """Records between two positions: the first after `after` if it is given, else the last before `before`."""
        if after is None:
            return self.before(before, limit, size)
        records: list[SessionRecord] = []
        for record in self.after(after, limit):
            size -= len(record.envelope)
            if record.seq >= before or (size < 0 and records):
                break
            records.append(record)
        return records

    def record(self, seq: int) -> SessionRecord | None:
        """The record at a position, from memory or the log."""
        first = self._ring[0].seq if self._ring else self.last + 1
        if seq >= first:
            return self._ring[seq - first] if seq <= self.last else None
        return self._log.record(self._number, seq)
