"""The largest checkpoint of each topic that a server has seen, outside the database: in its own data directory.

A database that was set back, by a restore or by a failover to a replica that was behind, still has a whole hash chain;
only something outside can show that records are missing.
"""

from __future__ import annotations

import threading
from pathlib import Path

import structlog

from redkey.errors import StoreRefused
from redkey.ledger.ports import Reader
from redkey.ledger.tail import checkpoint_size
from redkey.stores.durable import replace_file

_log = structlog.get_logger("redkey.stores")


class SeenCheckpoints:
    """One file a topic, replaced as a whole by a thread of its own: no unit waits for this machine's disk."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "seen"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sizes: dict[str, int] = {}
        self._ready = threading.Condition()
        self._pending: dict[str, bytes] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="redkey-seen", daemon=True)
        self._thread.start()

    def keep(self, topic: str, note: bytes) -> None:
        """Keep a checkpoint that is committed, soon, unless a larger one is kept."""
        size = checkpoint_size(note) or 0
        with self._ready:
            if size >= self._sizes.get(topic, 0):
                self._sizes[topic] = size
                self._pending[topic] = note
                self._ready.notify()

    def close(self) -> None:
        """Write what is left."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _write_all(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._pending or self._closed)
                if not self._pending:
                    return
                pending, self._pending = self._pending, {}
            for topic, note in pending.items():
                try:
                    replace_file(self._folder / topic, note, 0o600)
                except OSError as failure:
                    # The database has it; what is missing is the proof against a database that was set back.
                    _log.error("a seen checkpoint was not kept", topic=topic, reason=str(failure))

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
