"""Replay: records folded from the first one on, outside of any store, with the rows and counts they give.

The world is let go of what only decisions look at, so that memory follows the live work and not the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from redkey.errors import LedgerError
from redkey.ledger.ports import Row
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.tail import head_of
from redkey.readmodel.meter import Meter
from redkey.readmodel.rows import take_rows, void_row
from redkey.readmodel.structure import structure_ref
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.parties import is_log
from redkey.reducers.world import World
from redkey.wire.envelope import AnyWire

# The structure with this hash, when anybody has it.
Structures = Callable[[str], dict[str, Any] | None]


class Replay:
    """The fold of one topic so far."""

    def __init__(self, structures: Structures, counted_at: int | None = None) -> None:
        """Records after `counted_at` are not counted, where it is given."""
        self._structures, self._counted_at = structures, counted_at
        self._world, self._changes = World(), Changes()
        self._voids: list[Row] = []
        self._meter = Meter()
        self.head: Head = EMPTY_HEAD
        self.void = 0

    @property
    def workspace_id(self) -> str:
        return self._world.workspace.workspace_id

    def fold(self, record: Record, wire: AnyWire) -> str | None:
        """Fold the next record, and say why when it is void; structure that it names must be known by now."""
        # Nobody but the log is asked for structure: what others name may be nowhere.
        named = structure_ref(wire.payload) if is_log(self._world, record.payer) else None
        structure = self._structures(named) if named is not None else None
        if named is not None and structure is None:
            raise LedgerError(f"the structure {named} is missing", code="structure_missing")
        void = fold(self._world, self._changes, wire, record.sequence, record.timestamp, record.payer, structure)
        if self._counted_at is None or record.sequence <= self._counted_at:
            self._meter.note(self._world.workspace.prices, wire, len(record.wire), record.timestamp, void)
        if void is not None:
            self.void += 1
            self._voids.append(void_row(record.sequence, void))
        self.head = head_of(record)
        return void

    def take_rows(self) -> list[Row]:
        """The rows of all that was touched since they were last taken."""
        rows = [*take_rows(self._world, self._changes), *self._voids]
        self._voids.clear()
        self._world.timers.clear()
        self._world.heaps.clear()
        self._changes.offers.clear()
        return rows

    def take_counts(self) -> Counter[str]:
        """What was counted since the counts were last taken."""
        return self._meter.take()
