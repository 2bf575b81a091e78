"""A data directory as a place for a store: opening, inspecting, backing up and restoring it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from redkey.services.backup import MANIFEST, Manifest
from redkey.stores.keys import FileSecrets, Secret
from redkey.stores.sqlite.copying import read_backup, take_backup, unpacked
from redkey.stores.sqlite.directory import KEYS
from redkey.stores.sqlite.inspection import Inspection
from redkey.stores.sqlite.store import SqliteStore


class SqlitePlace:
    """SQLite in a data directory, or in a backup of one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, *, create: bool) -> SqliteStore:
        return SqliteStore(self._directory, create=create)

    def inspect(self) -> Inspection:
        # No process writes to a backup, and reading one must not leave files of SQLite in it.
        return Inspection(self._directory, still=(self._directory / MANIFEST).exists())

    def inspect_closed(self) -> Inspection:
        return Inspection(self._directory, still=True)

    def export_secrets(self) -> list[Secret]:
        return FileSecrets(self._directory / KEYS).export()

    def take_backup(
        self, target: Path, taken_at: str, *, with_keys: bool, check: Callable[[Path], None] | None = None
    ) -> Manifest:
        return take_backup(self._directory, target, taken_at, with_keys=with_keys, check=check)

    def read_backup(self) -> Manifest:
        return read_backup(self._directory)

    def unpack_backup(self, manifest: Manifest, target: Path) -> AbstractContextManager[Path]:
        return unpacked(self._directory, manifest, target)
