"""Uploads of bodies: small ones in memory, large ones in `content/incoming/` until a unit takes them.

The process that writes such a file holds a lock on it, which the kernel frees when the process dies. So a store that
opens can tell abandoned files from files that another process is still writing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from redkey.errors import StoreMisused, StorePoisoned
from redkey.stores.sqlite.content_files import INLINE_LIMIT, write_all
from redkey.stores.sqlite.failures import sync_directory, sync_file, translated

INCOMING = "incoming"


class Incoming:
    """One body that is being uploaded; use it from one thread at a time."""

    def __init__(self, folder: Path, on_poison: Callable[[StorePoisoned], None]) -> None:
        self._folder, self._on_poison = folder, on_poison
        self._hash = sha256()
        self._small = bytearray()
        self._descriptor: int | None = None
        self.finished = False
        self.path: Path | None = None
        self.size = 0

    def write(self, chunk: bytes) -> None:
        """Add the next bytes."""
        if self.finished:
            raise StoreMisused("the body is complete", code="upload_ended")
        self._hash.update(chunk)
        self.size += len(chunk)
        if self._descriptor is None and self.size <= INLINE_LIMIT:
            self._small += chunk
            return
        with translated():
            if self._descriptor is None:
                self._descriptor = self._open()
                write_all(self._descriptor, bytes(self._small))
                self._small.clear()
            write_all(self._descriptor, chunk)

    def finish(self) -> str:
        """End the upload: make its file durable, if there is one, and return the hash of the body."""
        self.finished = True
        if self._descriptor is not None:
            try:
                sync_file(self._descriptor)
            except StorePoisoned as poison:
                self._on_poison(poison)
                raise
        return self._hash.hexdigest()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def data(self) -> bytes:
        """The body, if it is small enough to be in memory."""
        return bytes(self._small)

    def take(self, place: Path) -> None:
        """Move the file into its place; it no longer belongs to this upload."""
        if self.path is None:
            raise StoreMisused("the body is not a file", code="upload_ended")
        self.path.replace(place)
        self.path = None

    def discard(self) -> None:
        """Drop the body, unless a unit has taken it. Calling it again is harmless."""
        self.finished = True
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._small.clear()

    def _open(self) -> int:
        self.path = self._folder / secrets.token_hex(16)
        descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor


def incoming_folder(directory: Path) -> Path:
    """The folder for large uploads, created if it does not exist."""
    folder = directory / "content" / INCOMING
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def remove_abandoned(folder: Path) -> None:
    """Delete the uploads of processes that died."""
    removed = False
    for path in list(folder.iterdir()):
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                removed = True
            except BlockingIOError:
                pass  # Another process is writing it.
            finally:
                os.close(descriptor)
    if removed:
        sync_directory(folder)
