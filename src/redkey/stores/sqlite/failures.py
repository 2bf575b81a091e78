"""What SQLite and the operating system say when something fails, as errors of the store.

The line that matters: after a failed fsync the kernel may have dropped the pages it could not write and marked
them clean, so a second fsync that succeeds proves nothing. Such a store is poisoned. Everything else that fails
inside a unit is rolled back, and the store goes on.
"""

from __future__ import annotations

import os
import sqlite3
from types import TracebackType

from redkey.errors import StoreError, StoreFailed, StoreFull, StorePoisoned, WriterBusy
from redkey.stores.disk import disk_failure

_FSYNC_FAILED = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_OUR_MISTAKE = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE})
_PIECE_BYTES = 1024 * 1024


class _Translation:
    """Keeps nothing, so one serves every block: all reads pass here, and a generator for each is not cheap."""

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (sqlite3.Error, OSError)) and (failure := translate(error)) is not error:
            raise failure from error


_TRANSLATION = _Translation()


def translated() -> _Translation:
    """Raise what SQLite or a file operation raises inside as an error of the store."""
    return _TRANSLATION


def translate(error: BaseException) -> BaseException:
    """The store's error for one of SQLite's or the system's; anything else stays what it is."""
    if isinstance(error, OSError):
        return disk_failure(error)
    # Only errors that SQLite itself reports have a code; those of Python's module are mistakes of ours.
    if isinstance(error, sqlite3.Error) and hasattr(error, "sqlite_errorcode"):
        return _of_code(error.sqlite_errorcode, f"{error} ({error.sqlite_errorname})") or error
    return error


def _of_code(code: int, text: str) -> StoreError | None:
    if code in _FSYNC_FAILED:
        return StorePoisoned(f"an fsync failed, what is on disk is not known; stop this process: {text}")
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(f"no space is left: {text}")
    if primary in _BUSY:
        return WriterBusy(f"another program has redkey.db locked: {text}")
    if primary in _DAMAGED:
        return StoreFailed(f"redkey.db is damaged; run redkey fsck: {text}", code="store_damaged")
    if primary in _OUR_MISTAKE:
        return None
    return StoreFailed(f"redkey.db cannot be used: {text}")


def sync_file(descriptor: int) -> None:
    """fsync an open file or directory; a failure poisons."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StorePoisoned(f"an fsync failed, what is on disk is not known; stop this process: {error}") from error


def rewrite_file(path: str | os.PathLike[str]) -> None:
    """Write a file over with what it holds, so that an fsync has something to write; nothing when it is not there."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        offset = 0
        while piece := os.pread(descriptor, _PIECE_BYTES, offset):
            offset += os.pwrite(descriptor, piece, offset)
        if offset:
            sync_file(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make the names in a directory durable."""
    sync_path(path, os.O_DIRECTORY)


def sync_path(path: str | os.PathLike[str], flags: int = 0) -> None:
    """fsync what is at a path. Never the database itself: closing it again would drop SQLite's locks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
