"""The data directory: made private, and refused where others could change what is in it.

DIR/redkey.db, -wal, -shm    ledger, rows, small content
DIR/redkey.lock, .turn       the writer lock and its turnstile
DIR/content/TOPIC/SHA256     bodies over 16 KiB; content/pending/ marks those in flight
DIR/checkpoints/TOPIC        the last signed checkpoint, outside the database
DIR/keys                     the secrets of the log
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from redkey.errors import StoreRefused
from redkey.stores.sqlite.connection import DATABASE_NAME
from redkey.stores.sqlite.failures import sync_directory

PRIVATE = 0o700
KEYS = "keys"


def prepare_directory(directory: Path, *, create: bool) -> None:
    """Make the data directory where it is missing and may be made; refuse an unsafe one."""
    if not directory.exists():
        if not create:
            raise StoreRefused(f"there is no data directory {directory}", code="no_store")
        _make(directory)
    found = directory.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise StoreRefused(f"{directory} is not a directory", code="no_store")
    if found.st_uid != os.geteuid():
        raise StoreRefused(
            f"{directory} belongs to user {found.st_uid}, this process runs as {os.geteuid()}", code="unsafe_directory"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreRefused(f"others may write to {directory}; run chmod go-w on it", code="unsafe_directory")
    if not create and not (directory / DATABASE_NAME).exists():
        raise StoreRefused(f"there is no redkey.db in {directory}", code="no_store")


def create_database(directory: Path) -> None:
    """Make redkey.db as an empty private file; SQLite gives its -wal and -shm the same mode."""
    try:
        # Exclusively: to open and close a database that SQLite has open here would drop SQLite's locks.
        os.close(os.open(directory / DATABASE_NAME, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return


def sync_names(directory: Path) -> None:
    """Make every name that opening has made or found durable: who made it may have died before it was."""
    for folder in (directory / "content", directory / "checkpoints", directory):
        sync_directory(folder)
    _sync_above(directory)


def _make(directory: Path) -> None:
    if not directory.parent.exists():
        _make(directory.parent)
    # The names above are durable before this one is there: whoever finds it need not ask further up.
    _sync_above(directory.parent)
    directory.mkdir(mode=PRIVATE, exist_ok=True)


def _sync_above(directory: Path) -> None:
    """Sync the name of a directory. One above it that this user may not read was not made by this user either."""
    try:
        sync_directory(directory.parent)
    except PermissionError:
        return
