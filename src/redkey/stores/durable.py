"""Write small files atomically and durably: to a temporary file, synced, then renamed. Also locks by files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace the contents of `path`; readers see the old or the new contents, never a mixture."""
    with _written_aside(path, data, mode) as aside:
        aside.replace(path)
    sync_directory(path.parent)


def create_file(path: Path, data: bytes, mode: int = 0o600) -> bool:
    """Create `path` with `data`; return False, and change nothing, if it exists."""
    with _written_aside(path, data, mode) as aside:
        try:
            # A link, unlike a rename, never replaces a file: if several processes create it, one wins.
            path.hardlink_to(aside)
        except FileExistsError:
            return False
    sync_directory(path.parent)
    return True


def remove_file(path: Path) -> None:
    """Delete the file, if it exists, and sync the directory."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Sync a directory, so that created, renamed and deleted files survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on this file, among threads and processes; the kernel releases it if the process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class OneHolder:
    """A file lock that one process at a time can hold; the kernel releases it if the process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Try to take the lock; return whether this process holds it."""
        if self._descriptor < 0:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lock, if this process holds it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def _written_aside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The umask may have removed bits; a key file needs exactly this mode.
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield aside
    finally:
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()
