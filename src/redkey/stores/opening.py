"""Opening a store: the one place that chooses an adapter.

A store has an address: a URL, whose scheme names the adapter, or the path of a data directory, which is SQLite's.
Commands and the server know the ports alone. A further adapter brings a `Place` and a line in `_ADAPTERS`; each is
imported only when an address asks for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, Self

from redkey.errors import StoreRefused
from redkey.ledger.checkpoint import log_name
from redkey.ledger.ports import Clock, SequencedStore
from redkey.services.backup import Manifest
from redkey.services.fsck.evidence import Evidence
from redkey.services.log_facts import open_log
from redkey.services.outbox import Alone
from redkey.services.signing import Signing, SigningKeys
from redkey.stores.keys import Secret

_SCHEME = re.compile(r"([a-z][a-z0-9+.]*):(?://)?(.*)", re.DOTALL)


class Secrets(Protocol):
    """Where the secrets of a log are kept: in files of this machine, or in the database that servers share."""

    def signers(self, name: str, folder: str = "signer") -> SigningKeys:
        """The signing keys of a log by its name; keys for another purpose have a folder of their own."""
        ...

    def issuing_secret(self) -> bytes:
        """The secret that API keys are derived from, created at first use."""
        ...

    def export(self) -> list[Secret]:
        """All secrets, to be stored elsewhere."""
        ...

    def restore(self, found: Iterable[Secret]) -> None:
        """Store the secrets of another store; KeyRefused if there are others of the same names."""
        ...


class OpenStore(SequencedStore, Protocol):
    """A store that was opened, with what its servers share beside the ledger. Closed when its block ends."""

    @property
    def clock(self) -> Clock:
        """The clock of the store, which the ledger's time follows."""
        ...

    @property
    def secrets(self) -> Secrets: ...

    @property
    def servers(self) -> int:
        """How many servers share the limits of callers."""
        ...

    def join(self, url: str, version: str, home: Path) -> None:
        """Register this process as a server of the store, until it closes; `home` is its data directory."""

    def accept_timeline(self) -> None:
        """Open a database for writing after a failover, whatever is missing; a data directory has no failover."""

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Keep the other servers out of a block."""
        ...

    def holder(self, name: str) -> Alone:
        """A lock that one server has at a time."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Inspected(Evidence, Protocol):
    """One moment of a store, for reading only. Closed when its block ends."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Place(Protocol):
    """Where a store is, or can be created."""

    def open(self, *, create: bool) -> OpenStore: ...

    def inspect(self) -> Inspected:
        """Read the store as it is now, damaged or not; other processes may go on writing to it."""
        ...

    def inspect_closed(self) -> Inspected:
        """The same for a store that no process has open; leaves nothing in it."""
        ...

    def export_secrets(self) -> list[Secret]:
        """The secrets of the log, read without opening the store."""
        ...

    def take_backup(
        self, target: Path, taken_at: str, *, with_keys: bool, check: Callable[[Path], None] | None = None
    ) -> Manifest:
        """Copy the store, in use or not, to a new folder. `check` raises when the copy is not sound."""
        ...

    def read_backup(self) -> Manifest:
        """The manifest of the backup at this place, its files read and compared; or BackupRefused."""
        ...

    def unpack_backup(self, manifest: Manifest, target: Path) -> AbstractContextManager[Path]:
        """Copy the backup at this place aside for the block to work on; it becomes `target` when that ends well."""
        ...


def store_at(address: str | Path, *, key_file: Path | None = None) -> Place:
    """The place that an address names, with nothing opened yet. `key_file` has the key of a database's secrets."""
    scheme, rest = "sqlite", str(address)
    if isinstance(address, str) and (found := _SCHEME.fullmatch(address)):
        scheme, rest = found.groups()
    adapter = _ADAPTERS.get(scheme)
    if adapter is None:
        known = ", ".join(sorted(_ADAPTERS))
        raise StoreRefused(f"there is no store for {scheme} addresses; these are known: {known}", code="store_unknown")
    return adapter(rest, key_file)


def open_store(address: str | Path, *, create: bool = True, key_file: Path | None = None) -> OpenStore:
    """Open the store at an address; with `create` a missing one is created."""
    return store_at(address, key_file=key_file).open(create=create)


def open_memory(clock: Clock) -> SequencedStore:
    """A store that ends with the process, as simulations need it."""
    from redkey.stores.memory import MemoryStore

    return MemoryStore(clock)


def open_signing(store: OpenStore) -> Signing:
    """The signing service of a store; the log gets its id and its first key when it has none."""
    log = open_log(store, os.urandom(32))
    return Signing(store, store.secrets.signers(log_name(log.log_id)))


def _sqlite(directory: str, _: Path | None) -> Place:
    from redkey.stores.sqlite.place import SqlitePlace

    return SqlitePlace(Path(directory))


def _postgres(rest: str, key_file: Path | None) -> Place:
    try:
        from redkey.stores.postgres.place import PostgresPlace
    except ImportError as missing:
        text = f"the driver of PostgreSQL is not installed ({missing}); run pip install 'redkey[postgres]'"
        raise StoreRefused(text, code="driver_missing") from missing
    return PostgresPlace(f"postgresql://{rest}", key_file)


_ADAPTERS: dict[str, Callable[[str, Path | None], Place]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}
