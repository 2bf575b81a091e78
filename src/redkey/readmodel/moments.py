"""Find records by time: the sequence at a time, and the records since one."""

from __future__ import annotations

from collections.abc import Iterator

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record

_PAGE = 1000


def sequence_at(reader: Reader, topic: str, timestamp: int, head: int) -> int:
    """Return the first sequence at or after a time; head + 1 if there is none. Times increase with the sequence."""
    low, high = 1, head + 1
    while low < high:
        middle = (low + high) // 2
        record = reader.read(topic, middle - 1, 1)[0]
        if record.timestamp < timestamp:
            low = middle + 1
        else:
            high = middle
    return low


def since(reader: Reader, topic: str, timestamp: int, containing: bytes) -> Iterator[Record]:
    """Yield the records after a time whose wires contain some bytes, newest first.

    The store filters them, so a million records that do not match cost no more than reading them.
    """
    head = reader.head(topic).sequence
    after = sequence_at(reader, topic, timestamp + 1, head) - 1
    before = head + 1
    while records := reader.read_back(topic, before, _PAGE, after=after, containing=containing):
        yield from records
        before = records[-1].sequence
