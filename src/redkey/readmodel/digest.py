"""A digest of the rows of a topic, to compare the stored rows with those of a replay.

Rows are dumped as lines sorted by kind and key, byte for byte, and hashed. The digest of a replay needs nothing but
the ledger and its pinned structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from redkey.ledger.ports import Reader, Row
from redkey.readmodel.ingest import fold_record
from redkey.readmodel.rows import KINDS, take_rows, void_row
from redkey.reducers.changes import Changes
from redkey.reducers.world import World

_PAGE = 1000


def rows_digest(reader: Reader, topic: str) -> str:
    """Return the digest of the stored rows."""
    return digest(stored_rows(reader, topic))


def replay_digest(reader: Reader, topic: str) -> str:
    """Return the digest of the rows that a replay of the whole ledger gives."""
    return digest(replay_rows(reader, topic).values())


def digest(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of one line per row, sorted by kind and key; the body is JSON without line ends."""
    found = sha256()
    for row in sorted(rows, key=lambda row: (row.kind, row.key)):
        found.update(f"{row.kind} {row.key} {row.listed} {row.position} ".encode() + row.body + b"\n")
    return found.hexdigest()


def stored_rows(reader: Reader, topic: str) -> Iterator[Row]:
    """Yield every row of a topic."""
    # The key of the workspace row is empty, and lists begin after the empty key.
    workspace = reader.row(topic, "workspace", "")
    if workspace is not None:
        yield workspace
    for kind in KINDS:
        after = ""
        while rows := reader.rows(topic, kind, None, (0, after), _PAGE):
            yield from rows
            after = rows[-1].key


def replay_rows(reader: Reader, topic: str) -> dict[tuple[str, str], Row]:
    """Yield the rows that a replay of the records of a topic gives."""
    world, changes = World(), Changes()
    rows: dict[tuple[str, str], Row] = {}

    def put(found: Iterable[Row]) -> None:
        rows.update(((row.kind, row.key), row) for row in found)

    while records := reader.read(topic, world.sequence, _PAGE):
        for record in records:
            _, void = fold_record(world, changes, record, reader)
            if void is not None:
                put([void_row(record.sequence, void)])
        put(take_rows(world, changes))
    return rows
