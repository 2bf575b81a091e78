"""Large bodies as files: `content/<topic>/<sha256>`, durable before the unit that names them commits.

The database says which files count. A file is created or deleted only under a *mark*, an empty file in
`content/pending/`. A mark that remains after its process died names the file to check, so nothing ever has to be
searched for. After a successful unit and when a store opens, marks are settled: a file that the database names stays,
any other is deleted, and the mark is removed. Erasing a small body also leaves a mark, because its bytes are gone only
when the write-ahead log has been emptied.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redkey.stores.sqlite.failures import sync_directory, sync_file

# Bodies up to this size are stored in the database.
INLINE_LIMIT = 16 * 1024
PENDING = "pending"
PIECE_BYTES = 256 * 1024

# A mark names a topic and the SHA-256 of a body.
Mark = tuple[str, str]


class ContentFiles:
    """The content directory of one store."""

    def __init__(self, directory: Path, *, create: bool = True) -> None:
        self._root = directory / "content"
        self._pending = self._root / PENDING
        # Topics whose folders have durable names.
        self._durable: set[str] = set()
        if create:
            self._pending.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._root.chmod(0o700)

    def path(self, topic: str, sha256: str) -> Path:
        return self._root / topic / sha256

    def mark(self, marks: Iterable[Mark]) -> None:
        """Record durably which bodies the next commit adds or erases."""
        for topic, sha256 in marks:
            os.close(os.open(self._mark_path(topic, sha256), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        sync_directory(self._pending)

    def write(self, topic: str, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Write marked bodies and make the files and their names durable."""
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
        """Move marked bodies that are already durable files into place."""
        folder = self._folder(topic)
        for sha256, take in uploads:
            take(folder / sha256)
        sync_directory(folder)

    def pieces(self, topic: str, sha256: str) -> Iterator[bytes] | None:
        """Read a body in pieces; reading continues even if the body is erased in the meantime."""
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
        """The marks of units that did not end."""
        names = (entry.name.rpartition("-") for entry in os.scandir(self._pending))
        return [(topic, sha256) for topic, _, sha256 in names]

    def settle(self, marks: Iterable[Mark], named: Callable[[str, str], bool]) -> None:
        """Keep the marked files that the database names, delete the others, then remove the marks."""
        marks = list(marks)
        unnamed = [(topic, sha256) for topic, sha256 in marks if not named(topic, sha256)]
        for topic, sha256 in unnamed:
            self._delete(topic, sha256)
        # Sync even if there was nothing to delete: another process may have deleted it and died before the sync.
        for folder in {self._root / topic for topic, _ in unnamed}:
            if folder.is_dir():
                sync_directory(folder)
        for topic, sha256 in marks:
            self._mark_path(topic, sha256).unlink(missing_ok=True)

    def _folder(self, topic: str) -> Path:
        folder = self._root / topic
        if topic not in self._durable:
            folder.mkdir(mode=0o700, exist_ok=True)
            # Sync even if the folder exists: another process may have created it and died before the sync.
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
    """Write all bytes, in as many calls as needed."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
