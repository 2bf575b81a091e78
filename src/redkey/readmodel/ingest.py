"""Fold records of a store or a shared topic into a world; records of other payers are validated first."""

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

# Why a record is void whose type belongs to newer rules than the workspace has.
UNKNOWN_TYPE = "unknown_type"


def fold_record(
    world: World, changes: Changes, record: Record, reader: Reader, *, copied: Callable[[AnyWire], bool] | None = None
) -> tuple[AnyWire | None, str | None]:
    """Fold one record: return its wire, if it is one, and why it is void, if it is.

    Records of a local ledger were validated before they were written: if one cannot be read, the store is damaged. A
    shared topic may hold anything, so its records are validated here, and an invalid one is void. Structure is read
    only for wires of the log: others may name structure that does not exist. `copied` is for shared topics.
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
    """Read the wire of a local record; JsonRefused or WireRefused mean that the store is damaged."""
    try:
        return wire_of(record.wire)
    except msgspec.DecodeError:
        return read_wire(record.wire)
