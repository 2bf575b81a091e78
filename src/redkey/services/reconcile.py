"""Reconciliation: counts the ledger again from its first record, and compares the result with the meter's counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from redkey.ledger.ports import Reader, SequencedStore
from redkey.readmodel.counted import counters_now
from redkey.readmodel.ingest import fold_record
from redkey.readmodel.meter import Meter
from redkey.readmodel.rows import entity
from redkey.reducers.changes import Changes
from redkey.reducers.world import World

_PAGE = 1000


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """A counter for which the meter and the ledger differ."""

    name: str
    meter: int
    ledger: int


class Reconciled(msgspec.Struct, frozen=True, rename="camel"):
    """The result for one workspace."""

    workspace_id: str
    records: int
    credits: int
    differences: list[Difference]


def reconcile(store: SequencedStore) -> Iterator[Reconciled]:
    """Count every workspace again. Most of a ledger is read while others write, its end while they are blocked."""
    for topic in store.topics():
        row = store.row(topic, "workspace", "")
        if row is None:
            continue
        count = _Count(topic)
        count.read(store)
        with store.write(topic) as unit:
            count.read(unit)
            yield Reconciled(
                workspace_id=entity(row).workspace_id,
                records=count.world.sequence,
                credits=count.world.workspace.credits_used,
                differences=list(count.differences(unit)),
            )


class _Count:
    """The counters of one topic, as far as it was read."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.world = World()
        self._meter = Meter()
        self._counts: Counter[str] = Counter()

    def read(self, reader: Reader) -> None:
        """Count up to the head."""
        world = self.world
        while records := reader.read(self._topic, world.sequence, _PAGE):
            for record in records:
                wire, void = fold_record(world, Changes(), record, reader)
                if wire is not None:
                    self._meter.note(world.workspace.prices, wire, len(record.wire), record.timestamp, void)
            self._counts += self._meter.take()
            # Nothing is decided here: data that only decisions need would grow with the history.
            world.heaps.clear()
            world.timers.clear()

    def differences(self, reader: Reader) -> Iterator[Difference]:
        kept = counters_now(reader, self._topic)
        for name in sorted(kept.keys() | self._counts.keys()):
            if kept[name] != self._counts[name]:
                yield Difference(name, kept[name], self._counts[name])
        row = reader.row(self._topic, "workspace", "")
        used = entity(row).credits_used if row is not None else 0
        if used != self.world.workspace.credits_used:
            yield Difference("credits_used", used, self.world.workspace.credits_used)
