"""Open a store: choose the adapter by the store's address.

The address is a URL, whose scheme names the adapter, or the path of a data directory, which is a SQLite store.
Commands and the server use only the ports. To add an adapter, write its `Place` and add it to
`_ADAPTERS`; it is imported only if an address needs it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
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
    """The secrets of a log: in files of this machine, or in the database that servers share."""

    def signers(self, name: str, folder: str = "signer") -> SigningKeys:
        """Return the signing keys of a log; keys for another purpose have their own folder."""
        ...

    def issuing_secret(self) -> bytes:
        """Return the secret from which API keys are derived; create it at first use."""
        ...

    def export(self) -> list[Secret]:
        """Return all secrets, to copy them to another store."""
        ...

    def restore(self, found: Iterable[Secret]) -> None:
        """Store the secrets of another store; raise KeyRefused if a different secret has one of their names."""
        ...


class OpenStore(SequencedStore, Protocol):
    """An open store, with what its servers share besides the ledger. It closes at the end of its `with` block."""

    @property
    def clock(self) -> Clock:
        """The clock of the store; ledger timestamps follow it."""
        ...

    @property
    def secrets(self) -> Secrets:
        """The secrets of the log."""
        ...

    @property
    def servers(self) -> int:
        """How many servers share the rate limits of callers."""
        ...

    def join(self, url: str, version: str, rules: int, home: Path) -> None:
        """Register this process as a server of the store, until it closes; `home` is its data directory.

        `rules` are the newest rules that its version knows.
        """

    def servers_behind(self, rules: int) -> Sequence[str]:
        """Return the registered servers that do not know some rules yet, each as its address and version."""
        ...

    def accept_timeline(self) -> None:
        """Allow writes again after a failover, even if commits were lost; SQLite has no failover."""

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Run a block under a lock that excludes the other servers."""
        ...

    def holder(self, name: str) -> Alone:
        """Return a lock that one server at a time can hold."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Inspected(Evidence, Protocol):
    """A read-only snapshot of a store. It closes at the end of its `with` block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Place(Protocol):
    """The location of a store that exists or can be created."""

    def open(self, *, create: bool) -> OpenStore:
        """Open the store; with `create`, create it if it does not exist."""
        ...

    def inspect(self) -> Inspected:
        """Open the current state for reading, even if it is damaged; other processes may continue to write."""
        ...

    def inspect_closed(self) -> Inspected:
        """Like `inspect`, for a store that no process has open; it writes nothing to the store."""
        ...

    def export_secrets(self) -> list[Secret]:
        """Return the secrets of the log without opening the store."""
        ...

    def take_backup(
        self, target: Path, taken_at: str, *, with_keys: bool, check: Callable[[Path], None] | None = None
    ) -> Manifest:
        """Copy the store, which may be in use, to a new folder. `check` raises if the copy is damaged."""
        ...

    def read_backup(self) -> Manifest:
        """Verify the files of the backup at this place; return its manifest or raise BackupRefused."""
        ...

    def unpack_backup(self, manifest: Manifest, target: Path) -> AbstractContextManager[Path]:
        """Copy the backup to a temporary folder for the block; rename it to `target` if the block succeeds."""
        ...


def store_at(address: str | Path, *, key_file: Path | None = None) -> Place:
    """Return the place of an address, without opening it. `key_file` has the key to a database's secrets."""
    scheme, rest = "sqlite", str(address)
    if isinstance(address, str) and (match := _SCHEME.fullmatch(address)):
        scheme, rest = match.groups()
    adapter = _ADAPTERS.get(scheme)
    if adapter is None:
        known = ", ".join(sorted(_ADAPTERS))
        raise StoreRefused(
            f"{scheme} is not the scheme of a store; use one of {known}, or the path of a data directory",
            code="store_unknown",
        )
    return adapter(rest, key_file)


def open_store(address: str | Path, *, create: bool = True, key_file: Path | None = None) -> OpenStore:
    """Open the store at an address; with `create`, create it if it does not exist."""
    return store_at(address, key_file=key_file).open(create=create)


def open_memory(clock: Clock) -> SequencedStore:
    """Return a store that exists only in this process, for simulations."""
    from redkey.stores.memory import MemoryStore

    return MemoryStore(clock)


def open_signing(store: OpenStore) -> Signing:
    """Return the signing service of a store; create the id and the first key of the log if they are missing."""
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
