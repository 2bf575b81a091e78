"""A database as a place for a store: what is done with one before, beside and after opening it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

from redkey.errors import BackupRefused
from redkey.services.backup import Manifest
from redkey.stores.disk import disk_failures
from redkey.stores.keys import Secret
from redkey.stores.ledger_copying import copy_ledger
from redkey.stores.postgres.connections import Connections
from redkey.stores.postgres.inspection import Inspection
from redkey.stores.postgres.secrets import DatabaseSecrets
from redkey.stores.postgres.store import PostgresStore
from redkey.stores.sqlite.place import SqlitePlace


class PostgresPlace:
    """A ledger in a PostgreSQL database."""

    def __init__(self, url: str, key_file: Path | None = None) -> None:
        """`key_file` holds the key of the log's secrets, if the environment does not."""
        self._url, self._key_file = url, key_file

    def open(self, *, create: bool) -> PostgresStore:
        return PostgresStore(self._url, create=create, key_file=self._key_file)

    def inspect(self) -> Inspection:
        return Inspection(self._url)

    def inspect_closed(self) -> Inspection:
        return Inspection(self._url)

    def export_secrets(self) -> list[Secret]:
        connections = Connections(self._url)
        try:
            return DatabaseSecrets(connections.fetch, self._key_file).export()
        finally:
            connections.close()

    def take_backup(
        self, target: Path, taken_at: str, *, with_keys: bool, check: Callable[[Path], None] | None = None
    ) -> Manifest:
        """Copy the ledger to a data directory aside, and back that up: a backup needs no PostgreSQL to be read."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with disk_failures(), TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as aside:
            data = Path(aside) / "data"
            place = SqlitePlace(data)
            copy_ledger(self, place, keys=with_keys)
            return place.take_backup(target, taken_at, with_keys=with_keys, check=check)

    def read_backup(self) -> Manifest:
        raise _no_backup()

    def unpack_backup(self, manifest: Manifest, target: Path) -> AbstractContextManager[Path]:
        raise _no_backup()


def _no_backup() -> BackupRefused:
    return BackupRefused("a backup is a directory, not a database; name the directory", code="no_backup")
