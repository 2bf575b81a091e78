"""Large bodies as files: `content/<topic>/<sha256>`, durable before the unit that names them commits.

The database says which files count. A file is created or deleted only under a *mark*, an empty file in
`content/pending/`: a mark that outlives its unit (the process died in between) says exactly which file to look
at, so nothing is ever searched for. When a unit ended well and when a store opens, marks are settled: a file
that the database names stays, any other is deleted, then the mark goes. Erasure of small bodies leaves marks too,
because the write-ahead log must be emptied before their bytes are gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redkey.stores.sqlite.failures import sync_directory, sync_file

# Bodies up to here are kept in the database.
INLINE_LIMIT = 16 * 1024
PENDING = "pending"
PIECE_BYTES = 256 * 1024

# What is marked: a topic and the SHA-256 of a body.
Mark = tuple[str, str]


class ContentFiles:
    """The content directory of one store."""

    def __init__(self, directory: Path, *, create: bool = True) -> None:
        self._root = directory / "content"
        self._pending = self._root / PENDING
        # The topics whose folders are known to have durable names.
        self._durable: set[str] = set()
        if create:
            self._pending.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._root.chmod(0o700)

    def path(self, topic: str, sha256: str) -> Path:
        return self._root / topic / sha256

    def mark(self, marks: Iterable[Mark]) -> None:
        """Say durably which bodies the coming commit adds or erases."""
        for topic, sha256 in marks:
            os.close(os.open(self._mark_path(topic, sha256), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        sync_directory(self._pending)

    def write(self, topic: str, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Write marked bodies and make them durable, with their names."""
        folder = self._folder(topic)
        for sha256, data in bodies:
            descriptor = os.open(folder / sha256, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                write_all(descriptor, data)
                sync_file(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(folder)

    def adopt(self, topic: str, uploads: Iterable[tuple[str, Callable[[Path], None]]]) -> None:
        """Put marked bodies that are durable files already in their places."""
        folder = self._folder(topic)
        for sha256, take in uploads:
            take(folder / sha256)
        sync_directory(folder)

    def pieces(self, topic: str, sha256: str) -> Iterator[bytes] | None:
        """A body a piece at a time; once begun, it goes on even when it is erased meanwhile."""
        try:
            descriptor = os.open(self.path(topic, sha256), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        return _pieces(descriptor)

    def read(self, topic: str, sha256: str) -> bytes | None:
        try:
            return self.path(topic, sha256).read_bytes()
        except FileNotFoundError:
            return None

    def marks(self) -> list[Mark]:
        """What was marked by units that did not end."""
        found = (entry.name.rpartition("-") for entry in os.scandir(self._pending))
        return [(topic, sha256) for topic, _, sha256 in found]

    def settle(self, marks: Iterable[Mark], named: Callable[[str, str], bool]) -> None:
        """Keep the marked files that the database names, delete the others, then take the marks away."""
        marks = list(marks)
        unnamed = [(topic, sha256) for topic, sha256 in marks if not named(topic, sha256)]
        for topic, sha256 in unnamed:
            self._delete(topic, sha256)
        # Also where nothing was there to delete: who deleted it may have died before that was durable.
        for folder in {self._root / topic for topic, _ in unnamed}:
            if folder.is_dir():
                sync_directory(folder)
        for topic, sha256 in marks:
            self._mark_path(topic, sha256).unlink(missing_ok=True)

    def _folder(self, topic: str) -> Path:
        folder = self._root / topic
        if topic not in self._durable:
            folder.mkdir(mode=0o700, exist_ok=True)
            # Also when it was there: who made it may have died before its name was durable.
            sync_directory(self._root)
            self._durable.add(topic)
        return folder

    def _delete(self, topic: str, sha256: str) -> None:
        self.path(topic, sha256).unlink(missing_ok=True)

    def _mark_path(self, topic: str, sha256: str) -> Path:
        return self._pending / f"{topic}-{sha256}"


def _pieces(descriptor: int) -> Iterator[bytes]:
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however many calls that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
