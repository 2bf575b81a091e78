"""Records from a store or a shared topic into a world: read, checked as far as their payer asks for it, and folded."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from redkey.errors import JsonRefused, UpgradeNeeded, WireRefused
from redkey.ledger.ports import Reader
from redkey.ledger.record import LOCAL_PAYER, Record
from redkey.readmodel.structure import structure_of
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold, pass_over
from redkey.reducers.parties import WIRE_INVALID, is_log
from redkey.reducers.world import World
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.validate import read_wire

# Why a record is void whose type came with rules that are not in force here.
UNKNOWN_TYPE = "unknown_type"


def fold_record(
    world: World, changes: Changes, record: Record, reader: Reader, *, copied: Callable[[AnyWire], bool] | None = None
) -> tuple[AnyWire | None, str | None]:
    """Fold one record; its wire, when it is one, and why it is void, when it is.

    What a local ledger holds was checked before it was written: if it cannot be read, the store is damaged. On a shared
    topic anything may stand, so everything is checked here and what does not fit is void. Only the log is asked for the
    structure that its wires name: what others name may be nowhere. `copied` is for shared topics.
    """
    local = record.payer == LOCAL_PAYER
    try:
        wire = _wire_of(record) if local else read_wire(record.wire)
    except UpgradeNeeded:
        pass_over(world, changes, record.sequence, record.timestamp)
        return None, UNKNOWN_TYPE
    except (JsonRefused, WireRefused):
        if local:
            raise
        pass_over(world, changes, record.sequence, record.timestamp)
        return None, WIRE_INVALID
    structure = structure_of(reader, record.topic, wire.payload) if is_log(world, record.payer) else None
    void = fold(
        world,
        changes,
        wire,
        record.sequence,
        record.timestamp,
        record.payer,
        structure,
        copied=copied is not None and copied(wire),
    )
    return wire, void


def _wire_of(record: Record) -> AnyWire:
    """The wire of a local record; JsonRefused or WireRefused when the store is damaged."""
    try:
        return wire_of(record.wire)
    except msgspec.DecodeError:
        return read_wire(record.wire)
