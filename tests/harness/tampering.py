"""Attacks on the files of a closed data directory, as someone with access to them could do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redkey.ledger.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import chained
from redkey.ledger.signer import Signer
from redkey.ledger.tail import head_of, leaf_hashes
from redkey.ledger.tiles import TileTree
from redkey.wire.decode import decode

BASE = 1 << 40


def sql(directory: Path, statement: str, *parameters: Any) -> list[Any]:
    """Run one statement directly on the database."""
    connection = sqlite3.connect(directory / "redkey.db", isolation_level=None)
    try:
        return connection.execute(statement, parameters).fetchall()
    finally:
        connection.close()


def records(directory: Path) -> list[Record]:
    """All records of the first topic."""
    (topic,) = sql(directory, "SELECT id FROM topic WHERE number = 1")[0]
    found = sql(directory, "SELECT position, timestamp, payer, running_hash, wire FROM record ORDER BY position")
    return [Record(topic, position - BASE, *rest) for position, *rest in found]


def swap(directory: Path, first: int, second: int) -> None:
    """Exchange two records with all their columns except their positions."""
    for one, other in ((first, -1), (second, first), (-1, second)):
        sql(directory, "UPDATE record SET position = ? WHERE position = ?", BASE + other, BASE + one)


def rewrite(
    directory: Path, sequence: int, change: Callable[[bytes], bytes], *, drop: bool = False, add: bool = False
) -> None:
    """Change (or remove) one record, or `add` the changed one after it, and recompute everything that is not signed:
    hashes and tiles, and the times of later records."""
    before = records(directory)
    subjects = dict(sql(directory, "SELECT position, subjects FROM record"))
    kept = [
        (record, subjects[BASE + record.sequence]) for record in before if not (drop and record.sequence == sequence)
    ]
    head: Head | Record = EMPTY_HEAD
    made: list[tuple[Record, str]] = []
    for record, about in kept:
        struck, later = record.sequence == sequence, int(add and record.sequence > sequence)
        wire = change(record.wire) if struck and not add else record.wire
        head, _ = chained(head, record.topic, record.payer, record.timestamp + later, wire)
        made.append((head, about))
        if struck and add:
            head, _ = chained(head, record.topic, record.payer, record.timestamp + 1, change(record.wire))
            made.append((head, about.replace(_wire_id(record.wire), _wire_id(head.wire))))
    sql(directory, "DELETE FROM record")
    sql(directory, "DELETE FROM tile")
    connection = sqlite3.connect(directory / "redkey.db")
    for record, about in made:
        row = (BASE + record.sequence, record.timestamp, record.payer, record.running_hash, about, record.wire)
        connection.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", row)
    for level, index, data in TileTree(lambda level, index: None).append(_leaves([one for one, _ in made])):
        connection.execute("INSERT INTO tile VALUES (1, ?, ?, ?)", (level, index, data))
    connection.commit()
    connection.close()


def _wire_id(wire: bytes) -> str:
    wire_id: str = decode(wire)["wire_id"]
    return wire_id


def sign_again(directory: Path, signer: Signer, *, size: int | None = None) -> None:
    """Replace the newest checkpoint with one of the current records, signed by another key."""
    here = records(directory)
    size = len(here) if size is None else size
    ((old, note),) = sql(directory, "SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1")
    tree = TileTree(lambda level, index: None)
    tree.append(_leaves(here[:size]))
    checkpoint = Checkpoint(open_checkpoint(note)[0].origin, size, tree.root())
    sql(directory, "DELETE FROM checkpoint WHERE size = ?", old)
    data = sign_checkpoint(checkpoint, [signer]).encode()
    sql(directory, "INSERT INTO checkpoint VALUES (1, ?, ?)", size, data)
    for path in (directory / "checkpoints").iterdir():
        path.write_bytes(data)


def _leaves(found: list[Record]) -> list[bytes]:
    return list(leaf_hashes(EMPTY_HEAD.running_hash, found))


def head(directory: Path) -> Head:
    return head_of(records(directory)[-1])
