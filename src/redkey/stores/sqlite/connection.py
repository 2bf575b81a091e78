"""Connections to redkey.db, with the settings that durability rests on set and read back.

WAL with `synchronous=FULL` syncs the log at every commit. Checkpoints are run by the store itself, not by SQLite's
hook, because the hook keeps silent about an fsync that failed; and under the writer lock only, because SQLite before
3.51.3 may damage a file that is checkpointed while another connection writes. Never open redkey.db in this process by
any other way: closing such a file would drop SQLite's locks.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from redkey.errors import StoreRefused
from redkey.stores.sqlite import schema
from redkey.stores.sqlite.failures import translated

DATABASE_NAME = "redkey.db"
# How long to wait for a program that has the file locked without having our writer lock, such as a SQLite shell.
_BUSY_SECONDS = 5.0

SETTINGS: dict[str, str | int] = {
    "journal_mode": "wal",
    "synchronous": 2,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
    "secure_delete": 1,
    "temp_store": 2,
    "wal_autocheckpoint": 0,
    # Kibibytes of pages a connection keeps.
    "cache_size": -16384,
}
# A connection that reads forgets its pages whenever somebody commits: it needs few.
READING_CACHE = -2048
# What durability and erasure rest on, read back from every connection: setting it is not enough, because a file
# system without shared memory keeps another journal mode and says so only here.
_SAFE: dict[str, str | int] = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "wal_autocheckpoint": 0}


def connect(directory: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection that may be used from any thread, one at a time, and begins no transaction by itself."""
    with translated():
        connection = sqlite3.connect(
            directory / DATABASE_NAME, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    try:
        with translated():
            # Before anything is set: another program's database is not ours to change.
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
    """Refuse to go on with settings under which an acknowledged record could be lost, or an erased one stay."""
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
