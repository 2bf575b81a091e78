"""A memory store whose units can be made to fail: at their start, at their commit, or after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import HandClock


class FlakyStore(MemoryStore):
    """Fails as set up, once for each failure it was given; counts what it commits."""

    def __init__(self, clock: HandClock | None = None, disk: MemoryDisk | None = None) -> None:
        self.clock = clock or HandClock()
        super().__init__(self.clock, disk)
        self.fail_next: list[BaseException] = []
        self.units: list[int] = []

    @contextmanager
    def _transaction(self, wait: bool) -> Iterator[Any]:
        if self.unit is not None:
            # One of several units of a transaction.
            with super()._transaction(wait) as unit:
                yield unit
            return
        with super()._transaction(wait) as unit:
            before = {topic: unit.head(topic).sequence for topic in unit.topics()}
            yield unit
            if self.fail_next:
                raise self.fail_next.pop(0)
            self.units.append(sum(unit.head(topic).sequence - before.get(topic, 0) for topic in unit.topics()))
