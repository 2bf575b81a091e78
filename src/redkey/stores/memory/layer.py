"""The memory store's data of one topic, in layers: a unit's additions above the committed state.

A layer without a layer below it is committed state. A unit reads through its own layer; to commit, the layer below
absorbs it; to roll back, it is dropped.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Iterator
from itertools import islice

from redkey.ledger.ports import Content, Entry, Row
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.tail import head_of

# The name of the list that contains all rows of a kind, by key.
_ALL = None
Place = tuple[int, str]


class Layer:
    """All data of one topic."""

    def __init__(self, below: Layer | None = None) -> None:
        self.below = below
        self.first = below.head().sequence if below else 0
        self.records: list[Record] = []
        self.wires: dict[str, int] = {}
        self.subjects: dict[str, list[int]] = {}
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.checkpoints: dict[int, bytes] = {}
        self.counters: dict[str, int] = {}
        # When something is due next; 0 for never, None if this layer does not set it.
        self.due: int | None = None
        # None means that the entry below is deleted here.
        self.contents: dict[str, Content | None] = {}
        self.rows: dict[tuple[str, str], Row | None] = {}
        self._lists: dict[tuple[str, str | None], list[Place]] = {}

    # Records.

    def head(self) -> Head:
        if self.records:
            return head_of(self.records[-1])
        return self.below.head() if self.below else EMPTY_HEAD

    def add(self, record: Record, entry: Entry) -> None:
        self.records.append(record)
        self.wires.setdefault(entry.wire_id, record.sequence)
        for subject in dict.fromkeys(entry.subjects):
            self.subjects.setdefault(subject, []).append(record.sequence)

    def record(self, sequence: int) -> Record:
        if sequence > self.first or self.below is None:
            return self.records[sequence - self.first - 1]
        return self.below.record(sequence)

    def find(self, wire_id: str) -> int | None:
        below = self.below.find(wire_id) if self.below else None
        return self.wires.get(wire_id) if below is None else below

    def wire_ids(self, prefix: str) -> set[str]:
        below = self.below.wire_ids(prefix) if self.below else set()
        return below | {wire_id for wire_id in self.wires if wire_id.startswith(prefix)}

    def sequences(self, subject: str) -> list[int]:
        below = self.below.sequences(subject) if self.below else []
        return below + self.subjects[subject] if subject in self.subjects else below

    # Rows.

    def put_row(self, kind: str, key: str, row: Row | None) -> None:
        before = self.rows.get((kind, key))
        if before is not None:
            for name, place in _places(before):
                self._lists[kind, name].remove(place)
        if row is None and self.below is None:
            self.rows.pop((kind, key), None)
            return
        self.rows[kind, key] = row
        if row is not None:
            for name, place in _places(row):
                insort(self._lists.setdefault((kind, name), []), place)

    def row(self, kind: str, key: str) -> Row | None:
        if (kind, key) in self.rows or self.below is None:
            return self.rows.get((kind, key))
        return self.below.row(kind, key)

    def list_rows(self, kind: str, listed: str | None, after: Place, limit: int) -> list[Row]:
        places = islice(self._walk(kind, listed, after), max(0, limit))
        return [row for _, key in places if (row := self.row(kind, key)) is not None]

    def count_rows(self, kind: str, listed: str) -> int:
        return sum(1 for _ in self._walk(kind, listed, (0, "")))

    def _walk(self, kind: str, listed: str | None, after: Place) -> Iterator[Place]:
        own = self._lists.get((kind, listed), [])
        own_places = islice(own, bisect_right(own, after), None)
        if self.below is None:
            return own_places
        below = (place for place in self.below._walk(kind, listed, after) if (kind, place[1]) not in self.rows)
        return heapq.merge(below, own_places)

    # The rest.

    def tile(self, level: int, index: int) -> bytes | None:
        return self.tiles.get((level, index)) or (self.below.tile(level, index) if self.below else None)

    def all_checkpoints(self) -> dict[int, bytes]:
        return {**self.below.all_checkpoints(), **self.checkpoints} if self.below else self.checkpoints

    def all_counters(self) -> dict[str, int]:
        counters = dict(self.below.all_counters()) if self.below else {}
        for name, amount in self.counters.items():
            counters[name] = counters.get(name, 0) + amount
        return counters

    def content(self, sha256: str) -> Content | None:
        if sha256 in self.contents or self.below is None:
            return self.contents.get(sha256)
        return self.below.content(sha256)

    def due_at(self) -> int:
        if self.due is not None:
            return self.due
        return self.below.due_at() if self.below else 0

    def copy(self) -> Layer:
        """A copy of the committed state, for a snapshot."""
        copied = Layer()
        copied.absorb(self)
        return copied

    def absorb(self, above: Layer) -> None:
        """Merge the additions of a unit."""
        self.records += above.records
        for wire_id, sequence in above.wires.items():
            self.wires.setdefault(wire_id, sequence)
        for subject, sequences in above.subjects.items():
            self.subjects.setdefault(subject, []).extend(sequences)
        for (kind, key), row in above.rows.items():
            self.put_row(kind, key, row)
        for sha256, content in above.contents.items():
            if content is None:
                self.contents.pop(sha256, None)
            else:
                self.contents[sha256] = content
        for name, amount in above.counters.items():
            self.counters[name] = self.counters.get(name, 0) + amount
        self.due = above.due if above.due is not None else self.due
        self.tiles.update(above.tiles)
        self.checkpoints.update(above.checkpoints)


def _places(row: Row) -> Iterator[tuple[str | None, Place]]:
    """The lists that contain a row, and its place in each."""
    yield _ALL, (0, row.key)
    if row.listed:
        yield row.listed, (row.position, row.key)
