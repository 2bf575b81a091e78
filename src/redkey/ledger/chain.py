"""Verify records one after another: sequence, time, running hash, and the tree over them.

The loop is tight because `fsck` runs it over every record: a correct record costs one pass of hashing, and only a
wrong one is examined again. After damage the check continues from what is stored, so one damaged record is reported
once and does not affect the records after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import sha256, sha384

import msgspec

from redkey.ledger.merkle import Edge
from redkey.ledger.record import MESSAGE_LIMIT, Head, Record
from redkey.ledger.running_hash import record_preimage


class Damage(msgspec.Struct, frozen=True):
    """One damaged record."""

    sequence: int
    code: str
    message: str


def verify_records(head: Head, edge: Edge, records: Iterable[Record]) -> tuple[Head, list[Damage]]:
    """Verify the records that follow `head`, in order, and add their leaves to `edge`.

    Return the head after the last record as it is stored (with the time of the last correct one), and the damage. The
    edge is that of the stored records: compare its root only if there is no damage.
    """
    if edge.size != head.sequence:
        raise ValueError(f"the edge is of {edge.size} records, the head of {head.sequence}")
    damages: list[Damage] = []
    sequence, timestamp, running = head.sequence, head.timestamp, head.running_hash
    nodes, size = edge.nodes, edge.size
    # After a wrong running hash: the correct one, which the next record may follow.
    expected: bytes | None = None
    for record in records:
        sequence += 1
        try:
            leaf = record_preimage(running, record)
            found = sha384(leaf).digest()
        except (ValueError, struct.error) as cause:
            damages.append(Damage(sequence, "record_unreadable", f"the record cannot be hashed: {cause}"))
            leaf, found = b"", record.running_hash
        if found != record.running_hash and expected is not None:
            leaf = record_preimage(expected, record)
            found = sha384(leaf).digest()
        if found != record.running_hash or record.sequence != sequence or record.timestamp <= timestamp:
            damages.extend(_wrong(record, sequence, timestamp, found))
        elif not 0 < len(record.wire) <= MESSAGE_LIMIT:
            damages.append(_wrong_length(record))
        sequence, running = record.sequence, record.running_hash
        if found == running:
            expected, timestamp = None, record.timestamp
        else:
            expected = found
        # The body of Edge.append, without a call per record.
        grown, bits = sha256(b"\x00" + leaf).digest(), size
        size += 1
        while bits & 1:
            grown = sha256(b"\x01" + nodes.pop() + grown).digest()
            bits >>= 1
        nodes.append(grown)
    edge.size = size
    return Head(sequence, timestamp, running), damages


def _wrong(record: Record, sequence: int, timestamp: int, found: bytes) -> Iterable[Damage]:
    if record.sequence != sequence:
        yield Damage(record.sequence, "sequence_gap", f"the sequence is {record.sequence}, expected {sequence}")
    if record.timestamp <= timestamp:
        yield Damage(record.sequence, "timestamp_order", f"its timestamp {record.timestamp} is not after {timestamp}")
    if found != record.running_hash:
        yield Damage(record.sequence, "running_hash_wrong", "its running hash is not the hash of what is stored")


def _wrong_length(record: Record) -> Damage:
    return Damage(record.sequence, "message_length", f"{len(record.wire)} bytes; a message is 1 to {MESSAGE_LIMIT}")
