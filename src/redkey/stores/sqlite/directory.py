"""The data directory: created as private, and refused if other users could change its contents.

DIR/redkey.db, -wal, -shm    ledger, rows, small content
DIR/redkey.lock, .turn       the writer lock and its turnstile
DIR/content/TOPIC/SHA256     bodies over 16 KiB; content/pending/ marks those that change
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
    """Create the data directory if it is missing and may be created; refuse an unsafe one."""
    if not directory.exists():
        if not create:
            raise StoreRefused(f"there is no data directory {directory}", code="no_store")
        _make(directory)
    status = directory.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise StoreRefused(f"{directory} is not a directory", code="no_store")
    if status.st_uid != os.geteuid():
        raise StoreRefused(
            f"{directory} belongs to user {status.st_uid}, this process runs as {os.geteuid()}", code="unsafe_directory"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreRefused(f"others may write to {directory}; run chmod go-w on it", code="unsafe_directory")
    if not create and not (directory / DATABASE_NAME).exists():
        raise StoreRefused(f"there is no redkey.db in {directory}", code="no_store")


def create_database(directory: Path) -> None:
    """Create redkey.db as an empty private file; SQLite gives its -wal and -shm the same mode."""
    try:
        # Only if it does not exist: opening and closing a database that SQLite has open here drops SQLite's locks.
        os.close(os.open(directory / DATABASE_NAME, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return


def sync_names(directory: Path) -> None:
    """Make all names in the directory durable; a process that created some may have died before it synced them."""
    for folder in (directory / "content", directory / "checkpoints", directory):
        sync_directory(folder)
    _sync_above(directory)


def _make(directory: Path) -> None:
    if not directory.parent.exists():
        _make(directory.parent)
        # The parents are durable before this directory exists, so a process that finds it need not sync them.
    _sync_above(directory.parent)
    directory.mkdir(mode=PRIVATE, exist_ok=True)


def _sync_above(directory: Path) -> None:
    """Sync the name of a directory. If this user may not read the parent, this user did not create it either."""
    try:
        sync_directory(directory.parent)
    except PermissionError:
        return
