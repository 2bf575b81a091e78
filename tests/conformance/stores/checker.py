"""Checks a topic of any store against Hedera's rules, with code that shares nothing with the code it checks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256, sha384

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record


def preimage(previous: bytes, record: Record) -> bytes:
    """The 211 bytes of running hash version 3, spelled out field by field from the public description."""
    payer = [int(part) for part in record.payer.split(".")]
    topic = [int(part) for part in record.topic.split(".")]
    fields = struct.pack(
        ">qqqqqqqqiq",
        3,
        *payer,
        *topic,
        record.timestamp // 1_000_000_000,
        record.timestamp % 1_000_000_000,
        record.sequence,
    )
    array = bytes.fromhex("75720002 5b42 acf317f8060854e0 020000 7870")
    again = bytes.fromhex("7571 007e0000")
    length = (48).to_bytes(4, "big")
    return b"".join(
        [
            bytes.fromhex("aced0005"),
            array + length + previous,
            b"\x77" + bytes([len(fields)]) + fields,
            again + length + sha384(record.wire).digest(),
        ]
    )


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962's definition, by recursion."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def read_all(reader: Reader, topic: str) -> list[Record]:
    records: list[Record] = []
    while batch := reader.read(topic, len(records), 333):
        records += batch
    return records


def check_topic(reader: Reader, topic: str) -> list[Record]:
    """All records of a topic, after each rule was found to hold."""
    records = read_all(reader, topic)
    previous, leaves = bytes(48), []
    for place, record in enumerate(records, start=1):
        assert record.topic == topic
        assert record.sequence == place, f"record {place} has sequence {record.sequence}"
        assert 1 <= len(record.wire) <= 1024
        if place > 1:
            assert record.timestamp > records[place - 2].timestamp, f"record {place} is not later than its predecessor"
        leaf = preimage(previous, record)
        assert len(leaf) == 211
        assert record.running_hash == sha384(leaf).digest(), f"record {place} does not continue the running hash"
        previous = record.running_hash
        leaves.append(leaf)
    head = reader.head(topic)
    assert (head.sequence, head.running_hash) == (len(records), previous)
    check_tree(reader, topic, leaves)
    return records


def check_tree(reader: Reader, topic: str, leaves: Sequence[bytes]) -> None:
    """The tree is the one over these leaves, and exactly its complete tiles are stored."""
    tree = reader.tree(topic)
    assert tree.size == len(leaves)
    assert tree.root() == merkle_root(leaves)
    hashes = [sha256(b"\x00" + leaf).digest() for leaf in leaves]
    for index in range(len(leaves) // 256):
        assert reader.tile(topic, 0, index) == b"".join(hashes[index * 256 : index * 256 + 256])
    assert reader.tile(topic, 0, len(leaves) // 256) is None
