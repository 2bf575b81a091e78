"""Load a dump into an empty store: records at their places and times, the rows they give, structure, content.

The store becomes a log of its own, with a new id: two stores must never sign under one name. The caller must not let
others use the store before all of it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from redkey.errors import DumpRefused, LedgerError, RedKeyError
from redkey.ledger.ports import Content, Entry, SequencedStore, Unit, Upload
from redkey.ledger.tail import records_after
from redkey.readmodel.counted import COUNTED_AT
from redkey.readmodel.structure import read as read_structure
from redkey.services.dump import Item, Piece, Recorded, Structure, read_dump
from redkey.services.log_facts import LOADED
from redkey.services.replay import Replay
from redkey.services.workspaces import setting_of
from redkey.wire.envelope import wire_of
from redkey.wire.events import ContentErased
from redkey.wire.payload import content_refs
from redkey.wire.subjects import subjects

# The limits of one unit: records, and bytes of small bodies.
_BATCH = 1024
_BODIES_BYTES = 4 * 1024 * 1024


class Loaded(msgspec.Struct):
    """What was loaded."""

    topics: int = 0
    records: int = 0
    void: int = 0
    structures: int = 0
    contents: int = 0


class _Topic:
    """One topic while it is loaded."""

    def __init__(self, name: str, store: SequencedStore) -> None:
        self.name, self._store = name, store
        self.structures: dict[str, Content] = {}
        self.replay = Replay(self._structure)
        self.pending: list[Recorded] = []
        # Small bodies that are complete, and all bodies that came so far.
        self.bodies: list[Content] = []
        self.bytes = self.contents = 0

    def _structure(self, sha256: str) -> dict[str, Any] | None:
        found = self.structures.get(sha256) or self._store.content(self.name, sha256)
        return read_structure(found) if found is not None else None


class Loader:
    """Takes the items of a dump in order."""

    def __init__(self, store: SequencedStore) -> None:
        if store.topics():
            raise DumpRefused("the store holds something already; load into an empty one", code="store_not_empty")
        self._store = store
        self._topics: dict[str, _Topic] = {}
        self._upload: tuple[Upload, Piece] | None = None
        self.loaded = Loaded()

    def load(self, lines: Iterable[bytes]) -> Loaded:
        """Load all lines; DumpRefused names the first wrong one."""
        try:
            for item in read_dump(lines):
                self._take(item)
            self._end_upload()
            for topic in self._topics.values():
                self._flush(topic)
                self._tell_absent(topic)
        finally:
            if self._upload is not None:
                self._upload[0].discard()
        return self.loaded

    def _take(self, item: Item) -> None:
        if isinstance(item, Piece):
            self._take_piece(item)
            return
        self._end_upload()
        if isinstance(item, Structure):
            topic = self._topic(item.topic)
            topic.structures[item.content.sha256] = item.content
            self.loaded.structures += 1
            return
        topic = self._topic(item.record.topic)
        if topic.pending and (len(topic.pending) >= _BATCH or topic.pending[-1].record.payer != item.record.payer):
            self._flush(topic)
        try:
            topic.replay.fold(item.record, item.wire)
        except RedKeyError as refused:
            raise DumpRefused(f"line {item.line}: {refused.message}", code=refused.code) from refused
        topic.pending.append(item)

    def _topic(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            for other in self._topics.values():
                self._flush(other)
            topic = self._topics[name] = _Topic(name, self._store)
            self._store.create_topic(name)
            self.loaded.topics += 1
        return topic

    def _flush(self, topic: _Topic) -> None:
        pending, topic.pending = topic.pending, []
        structures, topic.structures = topic.structures, {}
        bodies, topic.bodies, topic.bytes = topic.bodies, [], 0
        if not pending and not structures and not bodies:
            return
        with self._store.write(topic.name) as unit:
            unit.put_content(topic.name, structures.values())
            if pending:
                self._append(unit, topic, pending)
            unit.put_content(topic.name, bodies)
        self.loaded.records += len(pending)
        self.loaded.void = sum(one.replay.void for one in self._topics.values())

    def _append(self, unit: Unit, topic: _Topic, pending: list[Recorded]) -> None:
        entries = [Entry(one.record.wire, one.wire.wire_id, subjects(one.wire)) for one in pending]
        first, times = pending[0].record, [one.record.timestamp for one in pending]
        records = unit.append(topic.name, entries, first.sequence - 1, first.payer, times)
        if records[-1].running_hash != pending[-1].record.running_hash:
            raise LedgerError("the store gave the records another running hash", code="running_hash_wrong")
        unit.put_rows(topic.name, topic.replay.take_rows())
        unit.count(topic.name, [*topic.replay.take_counts().items(), (COUNTED_AT, len(pending))])
        if topic.replay.workspace_id:
            unit.put_fact(topic.name, setting_of(topic.replay.workspace_id), topic.name)
        # When something is due is not known here: the first server on the store checks at once.
        unit.put_due(topic.name, 1)

    # Content.

    def _take_piece(self, piece: Piece) -> None:
        topic = self._topics.get(piece.topic)
        if topic is None:
            text = f"line {piece.line}: content of topic {piece.topic}, which has no records"
            raise DumpRefused(text, code="topic_unknown")
        if piece.offset == 0:
            self._end_upload()
            if len(piece.data) == piece.total:
                self._take_whole(topic, piece)
                return
            self._upload = (self._store.upload(), piece)
        if self._upload is None or self._upload[1].sha256 != piece.sha256 or self._upload[0].size != piece.offset:
            text = f"line {piece.line}: the piece of content does not follow the one before"
            raise DumpRefused(text, code="content_gap")
        self._upload[0].write(piece.data)

    def _take_whole(self, topic: _Topic, piece: Piece) -> None:
        topic.bodies.append(Content(piece.sha256, piece.data))
        topic.bytes += len(piece.data)
        topic.contents += 1
        self.loaded.contents += 1
        if topic.bytes >= _BODIES_BYTES:
            self._flush(topic)

    def _end_upload(self) -> None:
        """Store a complete body: something else follows it."""
        if self._upload is None:
            return
        upload, first = self._upload
        if upload.size != first.total or upload.finish() != first.sha256:
            raise DumpRefused(f"line {first.line}: the content is incomplete, or has another hash", code="content_hash")
        topic = self._topics[first.topic]
        self._flush(topic)
        with self._store.write(first.topic) as unit:
            unit.adopt(first.topic, upload)
        upload.discard()
        self._upload = None
        topic.contents += 1
        self.loaded.contents += 1

    def _tell_absent(self, topic: _Topic) -> None:
        """Record in the store up to which record content may be missing because the dump had none."""
        last = topic.replay.head.sequence if not topic.contents else self._last_absent(topic.name)
        if last:
            with self._store.write(topic.name) as unit:
                unit.put_fact(topic.name, LOADED + topic.name, str(last))

    def _last_absent(self, topic: str) -> int:
        """Return the last record that names content which is missing and was not erased."""
        absent: dict[str, int] = {}
        erased: set[str] = set()
        for batch in records_after(self._store, topic, 0):
            for record in batch:
                payload = wire_of(record.wire).payload
                if isinstance(payload, ContentErased):
                    erased.add(payload.sha256)
                for _, ref in content_refs(payload):
                    if self._store.content_facts(topic, ref.sha256) is None:
                        absent[ref.sha256] = record.sequence
        return max((sequence for sha256, sequence in absent.items() if sha256 not in erased), default=0)
