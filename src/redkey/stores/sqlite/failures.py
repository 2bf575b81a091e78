"""Errors of SQLite and the operating system, as errors of the store.

The important distinction: after a failed fsync the kernel may have dropped the pages that it could not write and marked
them clean, so a later fsync that succeeds proves nothing. Such a store is poisoned. Any other failure inside a unit is
rolled back, and the store continues.
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
_OUR_BUG = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE})
_PIECE_BYTES = 1024 * 1024


class _Translation:
    """Translates errors of a block. It has no state, so one instance serves all blocks, which is cheap for reads."""

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (sqlite3.Error, OSError)) and (failure := translate(error)) is not error:
            raise failure from error


_TRANSLATION = _Translation()


def translated() -> _Translation:
    """Raise errors of SQLite and file operations inside the block as errors of the store."""
    return _TRANSLATION


def translate(error: BaseException) -> BaseException:
    """The store's error for an error of SQLite or the system; any other error is returned unchanged."""
    if isinstance(error, OSError):
        return disk_failure(error)
    # Only errors that SQLite itself reports have a code; errors of Python's module are bugs of ours.
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
    if primary in _OUR_BUG:
        return None
    return StoreFailed(f"redkey.db cannot be used: {text}")


def sync_file(descriptor: int) -> None:
    """fsync an open file or directory; a failure poisons the store."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StorePoisoned(f"an fsync failed, what is on disk is not known; stop this process: {error}") from error


def rewrite_file(path: str | os.PathLike[str]) -> None:
    """Rewrite a file with its own contents, so that an fsync has pages to write; do nothing if it does not exist."""
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
    """fsync a path. Never use it on the database: closing that file drops SQLite's locks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
