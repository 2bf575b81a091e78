"""Small files that are whole or not there, and stay after a power cut: written aside, synced, then put in place."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` in place of whatever `path` holds; readers see all of the old or all of the new."""
    with _written_aside(path, data, mode) as aside:
        aside.replace(path)
    sync_directory(path.parent)


def create_file(path: Path, data: bytes, mode: int = 0o600) -> bool:
    """Put `data` at `path` unless something is there; false when something was, which then stays."""
    with _written_aside(path, data, mode) as aside:
        try:
            # A link, unlike a rename, never replaces: of several who create, one wins and the others see its file.
            path.hardlink_to(aside)
        except FileExistsError:
            return False
    sync_directory(path.parent)
    return True


def remove_file(path: Path) -> None:
    """Take the file away, if it is there, and make that last."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock by this file, among threads and processes alike; the kernel frees it on death."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class OneHolder:
    """A lock by a file that one process at a time has; the kernel frees it on death."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Take the lock unless another process has it; True when this one does."""
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
        """Let another process take it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def _written_aside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The umask may take bits away; a key file needs exactly these.
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield aside
    finally:
        with contextlib.suppress(FileNotFoundError):
            aside.unlink()
