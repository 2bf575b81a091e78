"""Hedera's running hash, version 3: SHA-384 over 211 bytes that Java's ObjectOutputStream would write.

The 211 bytes bind the previous hash, payer, topic, timestamp, sequence and message; they are also the leaf
of the Merkle tree, so the chain and the tree bind the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256, sha384
from struct import Struct

from redkey.ledger.record import Head, Record, entity
from redkey.wire.times import NANOSECONDS

GENESIS = bytes(48)
VERSION = 3

# Stream magic, the class descriptor of byte[], and the length of the previous hash.
_OPENING = bytes.fromhex("aced0005 7572 0002 5b42 acf317f8060854e0 02 0000 78 70 00000030")
# Block data of 76 bytes: version and the two entities, then seconds, nanoseconds, sequence.
_ENTITIES = Struct(">BB 7q")
_MOMENT = Struct(">q i q")
# A second byte[] of 48 bytes, by reference to the first one's descriptor.
_CLOSING = bytes.fromhex("7571 007e0000 00000030")


@lru_cache(maxsize=4096)
def _entities(payer: str, topic: str) -> bytes:
    return _ENTITIES.pack(0x77, 76, VERSION, *entity(payer), *entity(topic))


def preimage(previous: bytes, payer: str, topic: str, timestamp: int, sequence: int, message: bytes) -> bytes:
    """Return the 211 bytes whose SHA-384 is the running hash of this message."""
    seconds, nanos = divmod(timestamp, NANOSECONDS)
    moment = _MOMENT.pack(seconds, nanos, sequence)
    return b"".join((_OPENING, previous, _entities(payer, topic), moment, _CLOSING, sha384(message).digest()))


def record_preimage(previous: bytes, record: Record) -> bytes:
    """Return the preimage of a record that follows one with the running hash `previous`."""
    return preimage(previous, record.payer, record.topic, record.timestamp, record.sequence, record.wire)


def chained(head: Head | Record, topic: str, payer: str, timestamp: int, wire: bytes) -> tuple[Record, bytes]:
    """Build the record that follows `head` (which may itself be a record), and its preimage."""
    sequence = head.sequence + 1
    leaf = preimage(head.running_hash, payer, topic, timestamp, sequence, wire)
    return Record(topic, sequence, timestamp, payer, sha384(leaf).digest(), wire), leaf


def chain(
    head: Head, topic: str, payer: str, times: Sequence[int], wires: Sequence[bytes]
) -> tuple[list[Record], list[bytes]]:
    """The records of one payer that follow `head`, and the leaf hashes of the tree over them: `chained` for many."""
    records: list[Record] = []
    leaves: list[bytes] = []
    sequence, running, entities = head.sequence, head.running_hash, _entities(payer, topic)
    for timestamp, wire in zip(times, wires, strict=True):
        sequence += 1
        seconds, nanos = divmod(timestamp, NANOSECONDS)
        moment = _MOMENT.pack(seconds, nanos, sequence)
        leaf = b"".join((_OPENING, running, entities, moment, _CLOSING, sha384(wire).digest()))
        running = sha384(leaf).digest()
        leaves.append(sha256(b"\x00" + leaf).digest())
        records.append(Record(topic, sequence, timestamp, payer, running, wire))
    return records, leaves
