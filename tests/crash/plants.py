"""Planted bugs: ways to be wrong that the crash proofs must find. Each changes this process, a child, for good.

Nothing of this is in the store: a child of the append run is told by name which bug it has. `test_planted_bugs` says
which proof finds which.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from redkey.errors import StoreFailed, StoreFull, StorePoisoned
from redkey.ledger import tail
from redkey.ledger.clock import LedgerClock
from redkey.ledger.record import Head
from redkey.stores.sqlite import (
    SqliteStore,
    checkpoint_files,
    connection,
    content_files,
    directory,
    failures,
    incoming,
    writer,
)
from redkey.stores.sqlite.writer import Writer

# Set by the bug that acknowledges before it commits.
acknowledges_early = False


class EarlyStore:
    """A store whose units are acknowledged when their work is done, before they are committed."""

    def __init__(self, real: SqliteStore, acknowledge: Callable[[], None]) -> None:
        self._real, self._acknowledge = real, acknowledge
        self.upload, self.write, self.create_topic = real.upload, real.write, real.create_topic
        self.write_store = real.write_store

    @contextmanager
    def together(self) -> Iterator[Any]:
        with self._real.together():
            yield
            assert self._real._unit is not None
            self._real._unit.flush()
            self._acknowledge()


def acknowledge_before_commit() -> None:
    global acknowledges_early
    acknowledges_early = True


def synchronous_off() -> None:
    """SQLite syncs nothing, and the check that would refuse it is silenced."""
    connection.SETTINGS["synchronous"] = 0
    connection._SAFE.pop("synchronous")


def synchronous_normal() -> None:
    """The setting that most programs have: the log is synced only when it is copied into the database."""
    connection.SETTINGS["synchronous"] = 1
    connection._SAFE.pop("synchronous")


def sequence_gap() -> None:
    real = tail.chain

    def skipping(head: Any, *arguments: Any) -> Any:
        if head.sequence <= 8 < head.sequence + len(arguments[-1]):
            head = Head(head.sequence + 1, head.timestamp, head.running_hash)
        return real(head, *arguments)

    tail.chain = skipping


def clock_going_back() -> None:
    LedgerClock.after = lambda self, timestamp: self._clock.wall() - timestamp % 7_000_000_000  # type: ignore[method-assign]


def hash_over_other_bytes() -> None:
    real = tail.chain

    def other(head: Any, topic: str, payer: str, times: Any, wires: Any) -> Any:
        records, leaves = real(head, topic, payer, times, [wire + b" " for wire in wires])
        return [msgspec.structs.replace(one, wire=wire) for one, wire in zip(records, wires, strict=True)], leaves

    tail.chain = other


def content_not_synced() -> None:
    content_files.sync_file = _nothing


def content_folder_not_synced() -> None:
    content_files.sync_directory = _nothing


def upload_not_synced() -> None:
    incoming.sync_file = _nothing


def data_directory_not_synced() -> None:
    """The names of the data directory and of what is in it are left to chance."""
    directory.sync_directory = _nothing


def checkpoint_file_not_synced() -> None:
    checkpoint_files.sync_file = _nothing


def checkpoint_published_before_commit() -> None:
    real = Writer._prepare_checkpoints

    def early(self: Writer, notes: Any) -> set[str]:
        self.checkpoint_files.publish(real(self, notes))
        return set()

    Writer._prepare_checkpoints = early  # type: ignore[method-assign]


def failed_fsync_tried_again() -> None:
    """What the fsync study warns of: the second fsync succeeds, and nothing was written."""

    def again(descriptor: int) -> None:
        with suppress(OSError):
            os.fsync(descriptor)
            return
        os.fsync(descriptor)

    for module in (failures, content_files, checkpoint_files, incoming):
        module.sync_file = again


def failed_commit_tried_again() -> None:
    """A unit whose fsync failed is refused like any other, and the store goes on."""
    SqliteStore._be_poisoned = _nothing  # type: ignore[method-assign]
    real = Writer.commit

    def commit(self: Writer, unit: Any) -> None:
        try:
            real(self, unit)
        except StorePoisoned as poison:
            self._broken = StoreFailed(poison.message)
            raise self._broken from poison

    Writer.commit = commit  # type: ignore[method-assign]


def log_trusted_at_opening() -> None:
    Writer._distrust_log = _nothing  # type: ignore[method-assign]


def log_cut_not_synced() -> None:
    """A power cut brings back the log, with what was erased."""
    writer.sync_path = _nothing


def marks_not_kept() -> None:
    """Nothing tells the next process what was in flight."""
    content_files.ContentFiles.mark = _nothing  # type: ignore[method-assign]


def full_disk_passed_over() -> None:
    """A body that found no space is left out, and the rest of the unit is committed."""
    real = Writer.write_files

    def write_files(self: Writer, *arguments: Any) -> None:
        try:
            real(self, *arguments)
        except StoreFull:
            self._broken = None

    Writer.write_files = write_files  # type: ignore[method-assign]


def plant(name: str) -> None:
    """Plant the bug of this name."""
    globals()[name]()


def _nothing(*_: Any, **__: Any) -> None:
    return None
