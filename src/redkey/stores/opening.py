"""Opening a store: the one place that chooses an adapter.

A store has an address: a URL, whose scheme names the adapter, or the path of a data directory, which is SQLite's.
Commands and the server know the ports alone. A further adapter brings a `Place` and a line in `_ADAPTERS`; each is
imported only when an address asks for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, Self

from redkey.errors import StoreRefused
from redkey.ledger.checkpoint import log_name
from redkey.ledger.ports import Clock, SequencedStore
from redkey.services.backup import Manifest
from redkey.services.fsck.evidence import Evidence
from redkey.services.log_facts import open_log
from redkey.services.signing import Signing
from redkey.stores.keys import SignerKeys

_SCHEME = re.compile(r"([a-z][a-z0-9+.]*):(?://)?(.*)", re.DOTALL)


class OpenStore(SequencedStore, Protocol):
    """A store that was opened, with the folder of its log's secrets. Closed when its block ends."""

    @property
    def keys_directory(self) -> Path: ...

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


def store_at(address: str | Path) -> Place:
    """The place that an address names, with nothing opened yet."""
    scheme, rest = "sqlite", str(address)
    if isinstance(address, str) and (found := _SCHEME.fullmatch(address)):
        scheme, rest = found.groups()
    adapter = _ADAPTERS.get(scheme)
    if adapter is None:
        known = ", ".join(sorted(_ADAPTERS))
        raise StoreRefused(f"there is no store for {scheme} addresses; these are known: {known}", code="store_unknown")
    return adapter(rest)


def open_store(address: str | Path, *, create: bool = True) -> OpenStore:
    """Open the store at an address; with `create` a missing one is made."""
    return store_at(address).open(create=create)


def open_memory(clock: Clock) -> SequencedStore:
    """A store that ends with the process, as simulations need it."""
    from redkey.stores.memory import MemoryStore

    return MemoryStore(clock)


def open_signing(store: OpenStore) -> Signing:
    """The signing service of a store; the log gets its id and its first key when it has none."""
    log = open_log(store, os.urandom(32))
    return Signing(store, SignerKeys(store.keys_directory, log_name(log.log_id)))


def _sqlite(directory: str) -> Place:
    from redkey.stores.sqlite.place import SqlitePlace

    return SqlitePlace(Path(directory))


_ADAPTERS: dict[str, Callable[[str], Place]] = {"sqlite": _sqlite}
