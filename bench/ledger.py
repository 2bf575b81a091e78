"""Durable append: the share is of plain SQLite inserts of the same records, in the same run, on the same disk."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import row
from bench.task_lives import task_lives
from redkey.ledger.ports import Entry
from redkey.stores.sqlite import SqliteStore
from redkey.wire.canonical import canonical

HAMMER = Path(__file__).parents[1] / "tests" / "stores" / "sqlite" / "hammer.py"
BATCH = 64
# It has its own rounds, in which all candidates take turns.
ROUNDS = 1
# A round is short and the rounds of all candidates alternate, so that a slow moment of the disk affects them all.
Round = Callable[[Path, Sequence[Entry], int], float]


def main(quick: bool) -> None:
    """Measure and print everything; `quick` runs a shorter measurement."""
    rounds = 3 if quick else 15
    entries = [_entry(wire) for wire in task_lives(200 if quick else 800)]
    size = sum(len(entry.wire) for entry in entries) / len(entries)
    print(f"  {len(entries)} wires of {size:.0f} bytes with a wire id and two subjects; {rounds} rounds")
    alone, together = entries[: len(entries) // 8], entries
    print("  one record a commit")
    _compare(rounds, alone, 1, aim=0.7, wanted=None)
    print(f"  {BATCH} records a commit")
    _compare(rounds, together, BATCH, aim=0.4, wanted=50_000)
    _processes(quick)
    _memory([1_000, 20_000] if quick else [1_000, 100_000, 1_000_000])


def _entry(wire: dict[str, Any]) -> Entry:
    subjects = (wire["stream"]["stream_id"], wire["payload"].get("agent_id", "agt_bench"))
    return Entry(canonical(wire), wire["wire_id"], subjects)


def _compare(rounds: int, entries: Sequence[Entry], batch: int, *, aim: float, wanted: float | None) -> None:
    rivals: dict[str, Round] = {
        "bare write and fdatasync": _bare_file,
        "bare SQLite, the record's row alone": _bare_record,
        "bare SQLite, its row and index entries": _bare_rows,
        "the store": _store,
    }
    *bare, ours = rivals
    yardstick = bare[1]
    found: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, run in rivals.items():
            with tempfile.TemporaryDirectory(dir=_disk()) as folder:
                found[name].append(run(Path(folder), entries, batch))
        for name in bare:
            row(f"{name}, {batch} a commit", found[name][-1], shown=False)
        theirs = found[yardstick][-1]
        row(f"the store, {batch} a commit", found[ours][-1], beside=theirs, aim=wanted, share_aim=aim, shown=False)
    for name, values in found.items():
        print(f"    {name:<44}{statistics.median(values):>14,.0f}/s, at best {max(values):,.0f}/s")
    to_record, to_rows = (
        statistics.median([mine / theirs for mine, theirs in zip(found[ours], found[name], strict=True)])
        for name in bare[1:]
    )
    print(f"    its share in the middle round, aim {aim}: {to_record:.2f} of {yardstick}, {to_rows:.2f} of {bare[2]}")


def _timed(entries: Sequence[Entry], batch: int, commit: Callable[[int, Sequence[Entry]], None]) -> float:
    """Records per second of wall time."""
    began = time.perf_counter()
    for first in range(0, len(entries), batch):
        commit(first, entries[first : first + batch])
    return len(entries) / (time.perf_counter() - began)


def _bare_file(folder: Path, entries: Sequence[Entry], batch: int) -> float:
    descriptor = os.open(folder / "file", os.O_CREAT | os.O_WRONLY)

    def commit(first: int, some: Sequence[Entry]) -> None:
        os.write(descriptor, b"".join([entry.wire for entry in some]))
        os.fdatasync(descriptor)

    try:
        return _timed(entries, batch, commit)
    finally:
        os.close(descriptor)


def _plain(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    for setting in ("journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 4000", "cache_size = -16384"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    columns = "position INTEGER PRIMARY KEY, timestamp INTEGER, payer TEXT, running_hash BLOB, wire BLOB"
    connection.execute(f"CREATE TABLE record ({columns})")
    connection.execute(
        "CREATE TABLE event (subject TEXT, position INTEGER, PRIMARY KEY (subject, position)) WITHOUT ROWID"
    )
    return connection


def _bare_record(folder: Path, entries: Sequence[Entry], batch: int) -> float:
    return _bare_sqlite(folder, entries, batch, with_index=False)


def _bare_rows(folder: Path, entries: Sequence[Entry], batch: int) -> float:
    return _bare_sqlite(folder, entries, batch, with_index=True)


def _bare_sqlite(folder: Path, entries: Sequence[Entry], batch: int, *, with_index: bool) -> float:
    connection, running_hash = _plain(folder), bytes(48)

    def commit(first: int, some: Sequence[Entry]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO record VALUES (?, ?, ?, ?, ?)",
            [(number, number, "1.0.2", running_hash, entry.wire) for number, entry in enumerate(some, first)],
        )
        if with_index:
            connection.executemany(
                "INSERT INTO event VALUES (?, ?)",
                [(name, n) for n, entry in enumerate(some, first) for name in (entry.wire_id, *entry.subjects)],
            )
        connection.execute("COMMIT")

    try:
        return _timed(entries, batch, commit)
    finally:
        connection.close()


def _store(folder: Path, entries: Sequence[Entry], batch: int) -> float:
    with SqliteStore(folder / "data") as store:
        topic = store.create_topic()

        def commit(first: int, some: Sequence[Entry]) -> None:
            with store.write(topic) as unit:
                unit.append(topic, some, first)

        return _timed(entries, batch, commit)


def _processes(quick: bool) -> None:
    print("  processes on one file, taking turns")
    units = 50 if quick else 400
    alone = 0.0
    for count, batch in ((1, 1), (2, 1), (1, BATCH), (2, BATCH)):
        with tempfile.TemporaryDirectory(dir=_disk()) as folder:
            with SqliteStore(Path(folder) / "data") as store:
                topic = store.create_topic()
            rate = _hammer(Path(folder) / "data", topic, count, units, batch)
        alone = rate if count == 1 else alone
        row(f"    {count} process{'es' if count > 1 else ''}, {batch} a commit", rate, beside=alone)


def _hammer(directory: Path, topic: str, count: int, units: int, batch: int) -> float:
    """Records per second while all processes were running."""
    command = [sys.executable, str(HAMMER), str(directory), topic, str(units), str(batch)]
    processes = [
        subprocess.Popen([*command, f"p{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(count)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [json.loads(process.communicate()[0])["done"] for process in processes]
    began, ended = max(times[0] for times in done), min(times[-1] for times in done)
    units_done = sum(began < moment <= ended for times in done for moment in times)
    return units_done * batch / (ended - began)


# A program that appends up to each size in turn and prints its resident memory in KiB at each.
_GROWING = """
import sys
from bench.ledger import grow
grow(sys.argv[1], [int(size) for size in sys.argv[2:]])
"""


def _memory(sizes: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory(dir=_disk()) as folder:
        command = [sys.executable, "-c", _GROWING, str(Path(folder) / "data"), *map(str, sizes)]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HAMMER.parents[3]).stdout
    for size, kibibytes in zip(sizes, output.split(), strict=True):
        row(f"memory at {size:,} records", int(kibibytes) / 1024, unit="MiB", least=True)


def grow(directory: str, sizes: Sequence[int]) -> None:
    """Append until each of the sizes is reached, and print the memory in use at that point."""
    entries = [_entry(wire) for wire in task_lives(128)]
    with SqliteStore(directory) as store:
        topic = store.create_topic()
        at = 0
        for size in sizes:
            while at < size:
                some = entries[: min(len(entries), size - at)]
                with store.write(topic) as unit:
                    unit.append(topic, some, at)
                at += len(some)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            print(pages * os.sysconf("SC_PAGE_SIZE") // 1024, flush=True)


def _disk() -> str | None:
    """The folder of the disk under test: REDKEY_BENCH_DIR, or the temporary directory."""
    return os.environ.get("REDKEY_BENCH_DIR")
