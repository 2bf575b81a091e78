"""The last signed checkpoint of each topic, kept outside the database: `checkpoints/<topic>`.

A database that was replaced by an older copy still has an intact hash chain; only a file outside it can reveal that.
The file is written and synced before the commit and renamed into place after it. So it never names a tree that the
database does not have, and a full disk is noticed while the unit can still be rolled back.
"""

from __future__ import annotations

import os
from pathlib import Path

from redkey.errors import StoreRefused
from redkey.ledger.tail import checkpoint_size
from redkey.stores.sqlite.failures import sync_directory, sync_file

_NEW = ".new"


class CheckpointFiles:
    """The checkpoints directory of one store."""

    def __init__(self, directory: Path, *, create: bool = True) -> None:
        self._root = directory / "checkpoints"
        if create:
            self._root.mkdir(mode=0o700, exist_ok=True)

    def prepare(self, topic: str, note: bytes) -> None:
        """Write a new checkpoint beside the published one."""
        descriptor = os.open(self._path(topic, _NEW), os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(note)
            file.flush()
            sync_file(descriptor)

    def publish(self, topics: set[str]) -> None:
        """Publish prepared checkpoints, durably."""
        for topic in topics:
            self._path(topic, _NEW).replace(self._path(topic))
        if topics:
            sync_directory(self._root)

    def last(self, topic: str) -> bytes | None:
        """The published signed note of a topic."""
        try:
            return self._path(topic).read_bytes()
        except FileNotFoundError:
            return None

    def topics(self) -> list[str]:
        """The topics that have a published checkpoint."""
        return sorted(file.name for file in self._root.iterdir() if not file.name.endswith(_NEW))

    def prepared(self) -> set[str]:
        """The topics with a checkpoint that was prepared but not published yet."""
        return {file.name.removesuffix(_NEW) for file in self._root.iterdir() if file.name.endswith(_NEW)}

    def size(self, topic: str) -> int:
        """The tree size of a topic's published checkpoint; 0 if there is none."""
        note = self.last(topic)
        size = 0 if note is None else checkpoint_size(note)
        if size is None:
            raise StoreRefused(f"checkpoints/{topic} is not a checkpoint", code="checkpoint_unreadable")
        return size

    def _path(self, topic: str, suffix: str = "") -> Path:
        return self._root / (topic + suffix)
