"""The chain of many records at once is the chain of each after the other."""

from __future__ import annotations

from hashlib import sha256

from redkey.ledger.record import Head, Record
from redkey.ledger.running_hash import chain, chained


def test_a_chain_of_many_is_the_chain_of_each() -> None:
    head: Head | Record = Head(41, 5, bytes(range(48)))
    times, wires = [1_700_000_000_999_999_999, 1_700_000_001_000_000_000, 2**62], [b"{}", b"one", b"x" * 1024]
    records, leaves = chain(Head(41, 5, bytes(range(48))), "0.0.7", "0.0.9", times, wires)
    for record, leaf, timestamp, wire in zip(records, leaves, times, wires, strict=True):
        head, preimage_bytes = chained(head, "0.0.7", "0.0.9", timestamp, wire)
        assert (record, leaf) == (head, sha256(b"\x00" + preimage_bytes).digest())
