"""Replay: folds records from the first one on, outside of any store, with their rows and counts.

The world drops what only decisions read, so that memory depends on the live work and not on the history.
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

# Returns the structure with this hash, if it is available.
Structures = Callable[[str], dict[str, Any] | None]


class Replay:
    """The fold of one topic so far."""

    def __init__(self, structures: Structures, counted_at: int | None = None) -> None:
        """Records after `counted_at` are not counted, if it is given."""
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
        """Fold the next record; return why it is void, if it is. Structure that it names must be available by now."""
        # Only wires of the log itself must have their structure: what others name may not exist.
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
        """Return the rows of everything that was touched since the last call."""
        rows = [*take_rows(self._world, self._changes), *self._voids]
        self._voids.clear()
        self._world.timers.clear()
        if not self._world.workspace.is_ordered:
            # Where a network gives the order, requests for the next task are decided by what is offered.
            self._world.heaps.clear()
        self._changes.offers.clear()
        return rows

    def take_counts(self) -> Counter[str]:
        """Return what was counted since the last call."""
        return self._meter.take()
