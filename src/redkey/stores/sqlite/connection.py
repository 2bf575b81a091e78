"""Connections to redkey.db. The settings that durability depends on are set and then verified.

WAL with `synchronous=FULL` syncs the log at every commit. The store runs WAL checkpoints itself. SQLite's own hook is
off, because it does not report a failed fsync. The store runs them only under the writer lock, because SQLite before
3.51.3 may damage a file that is checkpointed while another connection writes. Never open redkey.db in this process in
any other way: closing that file would drop SQLite's locks.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from redkey.errors import StoreRefused
from redkey.stores.sqlite import schema
from redkey.stores.sqlite.failures import translated

DATABASE_NAME = "redkey.db"
# How long to wait for a program that locks the file without our writer lock, such as a SQLite shell.
_BUSY_SECONDS = 5.0

SETTINGS: dict[str, str | int] = {
    "journal_mode": "wal",
    "synchronous": 2,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
    "secure_delete": 1,
    "temp_store": 2,
    "wal_autocheckpoint": 0,
    # Size of the page cache of a connection, in KiB (negative by SQLite's convention).
    "cache_size": -16384,
}
# A reading connection drops its cached pages at every commit of another connection, so it needs few.
READING_CACHE = -2048
# The settings that durability and erasure depend on. They are verified on every connection: a file system without
# shared memory keeps another journal mode, and only reading the setting back shows that.
_SAFE: dict[str, str | int] = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "wal_autocheckpoint": 0}


def connect(directory: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection that may be used from any thread, one at a time, and starts no transaction on its own."""
    with translated():
        connection = sqlite3.connect(
            directory / DATABASE_NAME, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    try:
        with translated():
            # Check first: a database of another program must not be changed.
            schema.version(connection)
            _set(connection)
            if read_only:
                connection.execute("PRAGMA query_only = 1")
                connection.execute(f"PRAGMA cache_size = {READING_CACHE}")
        check_settings(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def check_settings(connection: sqlite3.Connection) -> None:
    """Refuse settings under which an acknowledged record could be lost, or an erased one remain."""
    for name, wanted in _SAFE.items():
        (found,) = connection.execute(f"PRAGMA {name}").fetchone()
        if found != wanted:
            raise StoreRefused(
                f"redkey.db has {name}={found} and must have {wanted}; is it on a local file system?",
                code="unsafe_settings",
            )


def _set(connection: sqlite3.Connection) -> None:
    for name, value in SETTINGS.items():
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
