"""Read a ledger from its SQLite file and prove it, with code that shares nothing with RedKey.

The SQL, the hashes and the tree are written here a second time, from the descriptions of the formats: Hedera's running
hash version 3, RFC 6962 trees, C2SP checkpoints. Nothing of `redkey` is imported, and a test keeps it so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Wire = dict[str, Any]
_POSITIONS = 1 << 40


@dataclass(frozen=True)
class Finding:
    """Something that must not be so."""

    code: str
    text: str


@dataclass
class Ledger:
    """The records of one topic by their sequence, and what is wrong with them."""

    topic: str
    wires: dict[int, Wire] = field(default_factory=dict)
    checkpoints: int = 0
    findings: list[Finding] = field(default_factory=list)

    def find(self, code: str, text: str) -> None:
        self.findings.append(Finding(code, text))


def read_ledger(database: Path) -> Ledger:
    """The one topic of a store that no process has open."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        (number, topic), *others = connection.execute("SELECT number, id FROM topic ORDER BY number").fetchall()
        low, high = number * _POSITIONS, (number + 1) * _POSITIONS
        rows = connection.execute(
            "SELECT position, timestamp, payer, running_hash, wire FROM record"
            " WHERE position > ? AND position < ? ORDER BY position",
            (low, high),
        ).fetchall()
        notes = connection.execute("SELECT size, note FROM checkpoint WHERE topic = ? ORDER BY size", (number,))
        signed = notes.fetchall()
    finally:
        connection.close()
    return judge_ledger(topic, others, [(position - low, *rest) for position, *rest in rows], signed)


def judge_ledger(topic: str, others: list[Any], rows: list[Any], signed: list[Any]) -> Ledger:
    """What the rows of a store say: records by sequence, and checkpoints by size."""
    ledger = Ledger(topic)
    if others:
        ledger.find("topics", f"there are {len(others)} topics beside {topic}, and nobody asked for one")
    leaves = _read_records(ledger, rows)
    _check_streams(ledger)
    for size, note in signed:
        ledger.checkpoints += 1
        _check_note(ledger, size, bytes(note), leaves)
    return ledger


def _read_records(ledger: Ledger, rows: list[Any]) -> list[bytes]:
    """Take the records in, each against the one before it; the leaves of their tree."""
    leaves: list[bytes] = []
    before, last_time, last_sequence = bytes(48), 0, 0
    for sequence, time, payer, running_hash, wire in rows:
        if sequence != last_sequence + 1:
            ledger.find("gap", f"record {sequence} comes after record {last_sequence}")
        if time <= last_time:
            ledger.find("time", f"record {sequence} is not later than the one before it")
        image = hash_input(before, payer, ledger.topic, time, sequence, bytes(wire))
        if hashlib.sha384(image).digest() != bytes(running_hash):
            ledger.find("hash", f"record {sequence} has another running hash than its bytes give")
        leaves.append(hashlib.sha256(b"\x00" + image).digest())
        ledger.wires[sequence] = json.loads(wire)
        before, last_time, last_sequence = bytes(running_hash), time, sequence
    return leaves


def hash_input(before: bytes, payer: str, topic: str, time: int, sequence: int, message: bytes) -> bytes:
    """What Java's ObjectOutputStream writes for: byte[] hash, long version and ids, long seconds, int nanos, long
    sequence, byte[] hash of the message."""
    array = bytes.fromhex("75720002 5b42 acf317f8060854e0 020000 7870") + struct.pack(">i", len(before)) + before
    ids = [3, *map(int, payer.split(".")), *map(int, topic.split("."))]
    block = struct.pack(">7q", *ids) + struct.pack(">qiq", time // 10**9, time % 10**9, sequence)
    digest = hashlib.sha384(message).digest()
    again = bytes.fromhex("7571 007e0000") + struct.pack(">i", len(digest)) + digest
    return bytes.fromhex("aced0005") + array + bytes([0x77, len(block)]) + block + again


def tree_root(leaves: list[bytes]) -> bytes:
    """The root of RFC 6962 over leaf hashes: full pairs level by level, an odd one goes up as it is."""
    level = leaves
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\x01" + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else hashlib.sha256(b"").digest()


def _check_note(ledger: Ledger, size: int, note: bytes, leaves: list[bytes]) -> None:
    _, said, root, *_ = note.decode().split("\n")
    if int(said) != size or size > len(leaves):
        ledger.find("checkpoint", f"a checkpoint is of {said} records, kept as of {size}; there are {len(leaves)}")
    elif base64.b64decode(root) != tree_root(leaves[:size]):
        ledger.find("checkpoint", f"the checkpoint of {size} records has another root than the records give")


def _check_streams(ledger: Ledger) -> None:
    numbers: dict[str, int] = {}
    for sequence, wire in ledger.wires.items():
        stream, number = wire["stream"]["stream_id"], wire["stream"]["stream_seq"]
        if number != numbers.get(stream, 0) + 1:
            ledger.find("gap", f"record {sequence} is number {number} of {stream}, after {numbers.get(stream, 0)}")
        numbers[stream] = number
