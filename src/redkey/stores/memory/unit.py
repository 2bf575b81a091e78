"""One unit of work in memory: layers above the committed ones, which absorb them when the unit commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redkey.errors import AppendRefused, ContentRefused, StoreMisused
from redkey.ledger import content as contents
from redkey.ledger.ports import Content, Entry, Erasure, Row, Upload
from redkey.ledger.prefetch import Prefetch
from redkey.ledger.record import FIRST_LOCAL_TOPIC, LOCAL_PAYER, Record, entity, local_topic
from redkey.ledger.tail import Tails, check_entity
from redkey.ledger.tiles import TileTree
from redkey.stores.memory.disk import MemoryDisk
from redkey.stores.memory.layer import Layer
from redkey.stores.memory.reader import MemoryReader
from redkey.stores.memory.upload import MemoryUpload
from redkey.stores.transactions import finished_upload


class MemoryUnit(MemoryReader):
    """Adds to the store; reads committed data and its own additions."""

    def __init__(self, disk: MemoryDisk, tails: Tails, others: int) -> None:
        # The topic that may be written now; None between the units of a group, and in a unit on the whole store.
        self.topic: str | None = None
        self.is_store = False
        self.others = others
        self._disk = disk
        self._guard = disk.guard
        self._tails = tails
        self._layers: dict[str, Layer] = {}
        self._settings: dict[str, str] = {}
        self._ended = False

    def end(self) -> None:
        """End the unit: from now on every call is refused."""
        self._ended = True

    def commit(self) -> None:
        """Merge the additions into the committed state."""
        with self._guard:
            self._disk.keep_for_snapshots(self._layers, settings=bool(self._settings))
            for topic, layer in self._layers.items():
                self._disk.topics.setdefault(topic, Layer()).absorb(layer)
            self._disk.settings.update(self._settings)
            self._disk.commits += 1
        self.end()

    # Reading.

    def topics(self) -> Sequence[str]:
        return list({**self._disk.topics, **self._layers})

    def setting(self, name: str) -> str | None:
        return self._settings.get(name, self._disk.settings.get(name))

    def tree(self, topic: str) -> TileTree:
        self._check_open()
        return self._tails.of(topic).tree.copy()

    def _layer(self, topic: str) -> Layer:
        self._check_open()
        return self._layers.get(topic) or self._disk.topics.get(topic) or Layer()

    # The ledger.

    def prefetch(self, topic: str, wanted: Prefetch) -> None:
        """Nothing to do: a read costs no round trip."""

    def next_timestamp(self, topic: str) -> int:
        self._known(topic)
        return self._tails.of(topic).next_timestamp()

    def create_topic(self, topic: str | None, fact: str) -> str:
        """Create a topic with its fact, or return the topic that already has this fact."""
        self._check_open()
        existing = self.setting(fact) if fact else None
        if existing is not None:
            return existing
        if topic is None:
            local = [num for shard, realm, num in map(entity, self.topics()) if (shard, realm) == (1, 0)]
            topic = local_topic(max([num + 1 - FIRST_LOCAL_TOPIC for num in local], default=0))
        else:
            check_entity(topic, "topic")
            if topic in self.topics():
                raise AppendRefused(f"topic {topic} already exists", code="topic_exists")
        self._layers[topic] = Layer()
        if fact:
            self._settings[fact] = topic
        return topic

    def append(
        self,
        topic: str,
        entries: Sequence[Entry],
        expected: int,
        payer: str = LOCAL_PAYER,
        timestamps: Sequence[int] | None = None,
    ) -> Sequence[Record]:
        layer = self._own(topic)
        records, tiles = self._tails.of(topic).append(entries, expected, payer, timestamps)
        for record, entry in zip(records, entries, strict=True):
            layer.add(record, entry)
        layer.tiles.update({(level, index): data for level, index, data in tiles})
        return records

    def put_checkpoint(self, topic: str, size: int, note: bytes) -> None:
        layer = self._own(topic)
        self._tails.of(topic).check_checkpoint(size, note)
        layer.checkpoints[size] = note

    # Rows, content, counters, settings.

    def put_rows(self, topic: str, rows: Iterable[Row]) -> None:
        layer = self._own(topic)
        for row in rows:
            layer.put_row(row.kind, row.key, row)

    def delete_rows(self, topic: str, kind: str, keys: Iterable[str]) -> None:
        layer = self._own(topic)
        for key in keys:
            layer.put_row(kind, key, None)

    def put_content(self, topic: str, items: Iterable[Content]) -> None:
        layer = self._own(topic)
        for item in items:
            contents.check(item)
            before = layer.content(item.sha256)
            if before is None or item.pinned:
                layer.contents[item.sha256] = item

    def adopt(self, topic: str, upload: Upload) -> None:
        staged = finished_upload(upload, MemoryUpload)
        self.put_content(topic, [Content(staged.sha256, staged.data)])

    def erase_content(self, topic: str, sha256: str) -> Erasure:
        self._known(topic)
        content = self._layer(topic).content(sha256)
        if content is None:
            return ""
        if content.pinned:
            raise ContentRefused(f"content {sha256} is pinned: replay needs it", code="content_pinned")
        self._own(topic).contents[sha256] = None
        return "now"

    def count(self, topic: str, amounts: Iterable[tuple[str, int]]) -> None:
        layer = self._own(topic)
        for name, amount in amounts:
            layer.counters[name] = layer.counters.get(name, 0) + amount

    def put_fact(self, topic: str, name: str, value: str) -> None:
        self._known(topic)
        self._settings[name] = value

    def put_due(self, topic: str, at: int) -> None:
        layer = self._own(topic)
        stored = layer.due_at()
        if at != stored and not (stored > self._tails.of(topic).next_timestamp() and (not at or at > stored)):
            layer.due = at

    def put_setting(self, name: str, value: str) -> None:
        self._check_open()
        if not self.is_store:
            raise StoreMisused("settings belong to the whole store; use write_store", code="unit_of_a_topic")
        self._settings[name] = value

    def _own(self, topic: str) -> Layer:
        """The unit's layer of a topic."""
        self._known(topic)
        layer = self._layers.get(topic)
        if layer is None:
            layer = self._layers[topic] = Layer(self._disk.topics[topic])
        return layer

    def _known(self, topic: str) -> None:
        """Refuse every topic except the unit's own."""
        self._check_open()
        if topic != self.topic:
            raise StoreMisused(f"the unit belongs to topic {self.topic}, not {topic}", code="unit_of_another_topic")
        if topic not in self._layers and topic not in self._disk.topics:
            raise AppendRefused(f"there is no topic {topic}", code="topic_unknown")

    def _check_open(self) -> None:
        if self._ended:
            raise StoreMisused("the unit has ended; open another", code="unit_ended")
