"""Write enough to one of RedKey's SQLite files that its write-ahead log is copied into it at least once.

`python -m tests.crash.checkpoint_run store|bus|memory|plain DIRECTORY`; `plain` is SQLite as it comes, without a lock.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from redkey.bus.home import HomeLock, prepare_home
from redkey.bus.log import BusLog
from redkey.runner.memory.port import Owner
from redkey.runner.memory.sqlite import SqliteMemories
from redkey.stores.sqlite import SqliteStore
from tests.conformance.stores.harness import append, new_topic

# More than the units, commits or pages (1,000) after which each of them copies its log.
UNITS = 330
TEXT = " ".join(f"word{number}" for number in range(900))


def store(directory: Path) -> None:
    with SqliteStore(directory) as first, SqliteStore(directory) as second:
        topic = new_topic(first)
        for number in range(UNITS):
            append(second if number % 5 else first, topic, 1)
            # A reader is in the way now and then.
            second.head(topic)


def bus(directory: Path) -> None:
    prepare_home(directory)
    lock = HomeLock(directory)
    log = BusLog(directory)
    for number in range(UNITS):
        log.commit([("put_answer", ("scope", f"key {number}", b"request", 200, b"{}", "2026-01-01T00:00:00Z"))])
    log.close()
    lock.release()


def memory(directory: Path) -> None:
    directory.mkdir()
    memories = SqliteMemories(directory / "memory.sqlite")
    for number in range(UNITS):
        memories.remember(Owner("w", "a"), f"{number} {TEXT}")
    memories.close()


def plain(directory: Path) -> None:
    directory.mkdir()
    connection = sqlite3.connect(directory / "plain.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    for _ in range(UNITS):
        connection.execute("INSERT INTO t VALUES (randomblob(20000))")
    connection.close()


if __name__ == "__main__":
    {"store": store, "bus": bus, "memory": memory, "plain": plain}[sys.argv[1]](Path(sys.argv[2]))
