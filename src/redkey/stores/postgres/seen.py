"""The largest checkpoint of each topic that a server has seen, outside the database: in its own data directory.

A database that was set back, by a restore or by a failover to a replica that was behind, still has a whole hash chain;
only something outside can show that records are missing.
"""

from __future__ import annotations

from pathlib import Path

from redkey.errors import StoreRefused
from redkey.ledger.ports import Reader
from redkey.ledger.tail import checkpoint_size
from redkey.stores.durable import replace_file


class SeenCheckpoints:
    """One file a topic, replaced as a whole."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "seen"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sizes: dict[str, int] = {}

    def keep(self, topic: str, note: bytes) -> None:
        """Keep a checkpoint that is committed, unless a larger one is kept."""
        size = checkpoint_size(note) or 0
        if size < self._sizes.get(topic, 0):
            return
        self._sizes[topic] = size
        replace_file(self._folder / topic, note, 0o600)

    def compare(self, store: Reader) -> None:
        """Refuse a database that ends before a checkpoint that was seen."""
        # A name with a dot before it is a file that a killed process did not finish.
        for file in sorted(path for path in self._folder.iterdir() if not path.name.startswith(".")):
            size, head = checkpoint_size(file.read_bytes()) or 0, store.head(file.name).sequence
            if head < size:
                raise StoreRefused(
                    f"topic {file.name} ends at record {head}, but this server saw a checkpoint of {size}: records are "
                    f"missing; restore the database, or run redkey ledger new-epoch on it and delete {file}",
                    code="head_behind_checkpoint",
                )
