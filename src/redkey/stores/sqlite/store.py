"""The default store: a ledger, its rows and its content in one data directory, for several processes at once.

The store manages a data directory in this process: it opens it (or refuses to, if that is not safe), lends connections
to readers, lets one writer at a time write, and closes. `unit` is one unit of work, `writer` commits it, and `lock`
decides who writes next.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from redkey.errors import StoreError, StoreMisused, StorePoisoned, StoreRefused
from redkey.ledger.ports import Clock
from redkey.ledger.record import Record
from redkey.ledger.tiles import TileTree
from redkey.stores.clock import SystemClock
from redkey.stores.closing import Closing
from redkey.stores.disk import check_room
from redkey.stores.durable import OneHolder, locked
from redkey.stores.follow import Commits, Poller, follow
from redkey.stores.keys import FileSecrets
from redkey.stores.sql_queries import Parameters
from redkey.stores.sqlite.checkpoint_files import CheckpointFiles
from redkey.stores.sqlite.directory import KEYS, create_database, prepare_directory, sync_names
from redkey.stores.sqlite.failures import translated
from redkey.stores.sqlite.incoming import Incoming, incoming_folder, remove_abandoned
from redkey.stores.sqlite.lock import WriterLock
from redkey.stores.sqlite.numbers import Numbers
from redkey.stores.sqlite.queries import Queries
from redkey.stores.sqlite.readers import Readers, Snapshot, Watch
from redkey.stores.sqlite.schema import SQL
from redkey.stores.sqlite.unit import SqliteUnit
from redkey.stores.sqlite.writer import Writer
from redkey.stores.transactions import Transactions, refuse_second
from redkey.stores.trees import ReadTrees

# How often followers check for commits of other processes; commits of this process wake them at once.
POLL_SECONDS = 0.025
# How long to wait for other processes at opening: they may be opening the store too and finishing interrupted work.
_OPEN_SECONDS = 10.0
# Readiness: how long to wait for the writer lock, how much free space is needed, how long the answer is reused.
_CHECK_SECONDS = 1.0
_ROOM_BYTES = 256 * 1024
_CHECK_KEPT_SECONDS = 0.5


class SqliteStore(Transactions[SqliteUnit], Queries, Closing):
    """A sequenced store on one data directory. Use it from any thread of the process that opened it."""

    engine = f"SQLite {sqlite3.sqlite_version}"

    def __init__(self, directory: str | os.PathLike[str], clock: Clock | None = None, *, create: bool = True) -> None:
        super().__init__()
        self.directory = Path(directory)
        self._process = os.getpid()
        self._poison: StorePoisoned | None = None
        self._closed = False
        self._check_guard = threading.Lock()
        self._checked_until = 0.0
        self._check_failed: StoreError | None = None
        # The open transaction, and its thread.
        self._unit: SqliteUnit | None = None
        self._unit_thread: int | None = None
        # Heads of the watched topics, at one version of the file.
        self._heads: dict[str, int] = {}
        self._heads_version = 0
        with translated():
            prepare_directory(self.directory, create=create)
            self._lock = WriterLock(self.directory)
        try:
            self.clock = clock or SystemClock()
            self._open(self.clock)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, clock: Clock) -> None:
        self._lock.hold(_OPEN_SECONDS)
        try:
            with translated():
                create_database(self.directory)
                self._writer = Writer(self.directory, clock)
            try:
                with translated():
                    incoming = incoming_folder(self.directory)
                    # Sync before anything is deleted: a log that was deleted could reappear and name it.
                    sync_names(self.directory)
                self._writer.prepare()
                with translated():
                    remove_abandoned(incoming)
                    self._refuse_lost_tail()
                self._writer.republish()
            except BaseException:
                self._writer.close()
                raise
        finally:
            self._lock.release_held()
        self._files = self._writer.files
        self._readers = Readers(self.directory)
        self._watch = Watch(self.directory)
        self._numbers: Numbers = Numbers()
        self._trees = ReadTrees(self)
        self._commits = Commits()
        self._poller = Poller(self._commits, lambda: Watch(self.directory), POLL_SECONDS)

    def close(self) -> None:
        """End followers, wait for an open unit, and close all files. Closing twice is harmless."""
        if self._process != os.getpid() or self._closed:
            return
        self._lock.close()
        self._closed = True
        self._commits.close()
        self._poller.close()
        self._readers.close()
        self._watch.close()
        self._writer.close()

    # Writing.

    @contextmanager
    def _transaction(self, wait: bool) -> Iterator[SqliteUnit]:
        """Open a transaction, or return the one that this thread has open for several units."""
        if self._unit is not None and self._unit_thread == threading.get_ident():
            refuse_second(self._unit)
            try:
                yield self._unit
            except BaseException as cause:
                self._writer.fail(cause)
                raise
            return
        self._check_usable()
        self._lock.acquire(wait=wait)
        try:
            self._unit = unit = self._writer.begin()
            self._unit_thread = threading.get_ident()
            try:
                yield unit
                self._writer.commit(unit)
            except BaseException:
                if not unit.ended:
                    self._writer.roll_back(unit)
                raise
            finally:
                self._unit = self._unit_thread = None
        except StorePoisoned as poison:
            self._be_poisoned(poison)
            raise
        finally:
            self._lock.release()
        self._commits.announce()

    def hold(self) -> None:
        self._check_usable()
        self._lock.hold()

    def release(self) -> None:
        self._check_usable()
        self._lock.release_held()

    def check_writable(self) -> None:
        """Take the writer lock and write a small file. The result is reused for a short time."""
        with self._check_guard:
            if time.monotonic() < self._checked_until:
                if self._check_failed is not None:
                    raise type(self._check_failed)(self._check_failed.message)
                return
            self._check_failed = None
            try:
                self._check_usable()
                self._lock.hold(_CHECK_SECONDS)
                self._lock.release_held()
                with translated():
                    check_room(self.directory, _ROOM_BYTES)
            except StoreError as failed:
                self._check_failed = failed
                raise
            finally:
                self._checked_until = time.monotonic() + _CHECK_KEPT_SECONDS

    def upload(self) -> Incoming:
        self._check_usable()
        with translated():
            return Incoming(incoming_folder(self.directory), self._be_poisoned)

    # Reading.

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        self._check_usable()
        with self._readers.snapshot(self._files) as snapshot:
            yield snapshot

    def known_head(self, topic: str) -> int:
        """The exact head: the version of the file is in memory that the processes share."""
        self._check_usable()
        with translated():
            version = self._watch.version()
        if version != self._heads_version:
            self._heads, self._heads_version = {}, version
        head = self._heads.get(topic)
        if head is None:
            # The version was read first, so a commit in between changes it again.
            head = self._heads[topic] = self.head(topic).sequence
            self._notified.setdefault(topic, head)
        return head

    def look(self) -> None:
        self._check_usable()
        if self._subscribers and self._writer.changed():
            self._notify(lambda topic: self.head(topic).sequence)

    def due(self, now: int, limit: int) -> Sequence[str]:
        return [topic for (topic,) in self._fetch(SQL["due"], (now, limit))]

    def follow(self, topic: str, after: int = 0) -> Iterator[Sequence[Record]]:
        self._check_usable()
        return self._follow(topic, after)

    def _follow(self, topic: str, after: int) -> Iterator[Sequence[Record]]:
        with self._poller:
            yield from follow(self, self._commits, topic, after)

    def tree(self, topic: str) -> TileTree:
        return self._trees.tree(topic)

    @property
    def keys_directory(self) -> Path:
        """The folder of the log's secrets."""
        return self.directory / KEYS

    @property
    def secrets(self) -> FileSecrets:
        """The secrets of the log."""
        return FileSecrets(self.keys_directory)

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Exclude the other servers of this data directory from a block."""
        return locked(self.directory / f"{name}.lock")

    def holder(self, name: str) -> OneHolder:
        """A lock that one server of this data directory holds at a time."""
        return OneHolder(self.directory / f"{name}.lock")

    def join(self, url: str, version: str, rules: int, home: Path) -> None:
        """Nothing to do: servers of one data directory find each other by its files."""

    def servers_behind(self, rules: int) -> Sequence[str]:
        """None that is known: servers of one data directory are not registered."""
        return ()

    def accept_timeline(self) -> None:
        """Nothing to do: a data directory has no failover."""

    @property
    def servers(self) -> int:
        """How many servers share callers' limits: one, because each server of a data directory has its own limits."""
        return 1

    @property
    def kept_checkpoints(self) -> CheckpointFiles:
        """The last signed checkpoints, outside the database."""
        return self._writer.checkpoint_files

    def topic_number(self, topic: str) -> int | None:
        return self._numbers.find(topic, self._fetch)

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        self._check_usable()
        with translated():
            return self._readers.fetch(sql, parameters)

    def _be_poisoned(self, poison: StorePoisoned) -> None:
        self._poison = poison

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise StoreMisused(
                f"the store was opened by process {self._process}; open one in this process", code="wrong_process"
            )
        if self._poison is not None:
            raise StorePoisoned(self._poison.message)
        if self._closed:
            raise StoreMisused("the store is closed", code="store_closed")

    def _refuse_lost_tail(self) -> None:
        """Refuse a database whose head is behind a published checkpoint: records are missing."""
        for topic in self._writer.checkpoint_files.topics():
            size, head = self._writer.checkpoint_files.size(topic), self._writer.head(topic).sequence
            if head < size:
                raise StoreRefused(
                    f"topic {topic} ends at record {head}, but a checkpoint was signed at {size}: "
                    "records are missing; restore a backup with redkey restore",
                    code="head_behind_checkpoint",
                )
