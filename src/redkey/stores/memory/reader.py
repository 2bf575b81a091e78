"""All reads of the memory store, for the store and for units; they differ only in their layers."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from redkey.ledger.ports import Content, ContentFacts, Row
from redkey.ledger.record import Head, Record
from redkey.ledger.tail import open_tree
from redkey.ledger.tiles import TileTree
from redkey.stores.memory.layer import Layer


class MemoryReader(ABC):
    """Reads layers: the store reads committed ones, a unit its own."""

    _guard: threading.RLock

    @abstractmethod
    def _layer(self, topic: str) -> Layer:
        """The layer of a topic; an empty one if the topic does not exist."""

    @abstractmethod
    def topics(self) -> Sequence[str]: ...

    def head(self, topic: str) -> Head:
        with self._guard:
            return self._layer(topic).head()

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        with self._guard:
            layer, after = self._layer(topic), max(after, 0)
            last = min(layer.head().sequence, after + max(limit, 0))
            return [layer.record(sequence) for sequence in range(after + 1, last + 1)]

    def read_back(
        self, topic: str, before: int, limit: int = 1000, *, after: int = 0, containing: bytes = b""
    ) -> Sequence[Record]:
        with self._guard:
            layer = self._layer(topic)
            sequences = range(min(before - 1, layer.head().sequence), max(after, 0), -1)
            records = (record for record in map(layer.record, sequences) if containing in record.wire)
            return list(islice(records, max(limit, 0)))

    def find(self, topic: str, wire_id: str) -> Record | None:
        with self._guard:
            layer = self._layer(topic)
            sequence = layer.find(wire_id)
            return None if sequence is None else layer.record(sequence)

    def wire_ids(self, topic: str, prefix: str, limit: int = 10) -> Sequence[str]:
        with self._guard:
            return sorted(self._layer(topic).wire_ids(prefix))[: max(limit, 0)]

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]:
        with self._guard:
            layer, after, limit = self._layer(topic), max(after, 0), max(limit, 0)
            sequences = layer.sequences(subject)
            if newest_first:
                end = bisect_left(sequences, after) if after else len(sequences)
                chosen = sequences[max(0, end - limit) : end][::-1]
            else:
                begin = bisect_right(sequences, after)
                chosen = sequences[begin : begin + limit]
            return [layer.record(sequence) for sequence in chosen]

    def row(self, topic: str, kind: str, key: str) -> Row | None:
        with self._guard:
            return self._layer(topic).row(kind, key)

    def rows(
        self, topic: str, kind: str, listed: str | None = None, after: tuple[int, str] = (0, ""), limit: int = 500
    ) -> Sequence[Row]:
        with self._guard:
            return self._layer(topic).list_rows(kind, listed, (0, after[1]) if listed is None else after, limit)

    def count_rows(self, topic: str, kind: str, listed: str) -> int:
        with self._guard:
            return self._layer(topic).count_rows(kind, listed)

    def content(self, topic: str, sha256: str) -> Content | None:
        with self._guard:
            return self._layer(topic).content(sha256)

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None:
        content = self.content(topic, sha256)
        return None if content is None else ContentFacts(len(content.data), content.pinned)

    def content_chunks(self, topic: str, sha256: str) -> Iterator[bytes]:
        content = self.content(topic, sha256)
        return iter(()) if content is None else iter((content.data,))

    def counters(self, topic: str, prefix: str = "") -> Sequence[tuple[str, int]]:
        with self._guard:
            return sorted(item for item in self._layer(topic).all_counters().items() if item[0].startswith(prefix))

    def tile(self, topic: str, level: int, index: int) -> bytes | None:
        with self._guard:
            return self._layer(topic).tile(level, index)

    def tree(self, topic: str) -> TileTree:
        return open_tree(self, topic)[0]

    def checkpoints(self, topic: str, limit: int = 1) -> Sequence[tuple[int, bytes]]:
        with self._guard:
            return sorted(self._layer(topic).all_checkpoints().items(), reverse=True)[: max(limit, 0)]

    @abstractmethod
    def setting(self, name: str) -> str | None: ...
