"""The embedded default: a ledger, its rows and its content in one data directory, for several processes at once.

The store owns the life of a data directory in this process: opening it (and refusing to, when it is not safe),
lending connections to readers, giving writers their turn, ending. What a unit does is `unit`'s, how it commits
is `writer`'s, who writes next is `lock`'s.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redkey.errors import StoreError, StoreMisused, StorePoisoned, StoreRefused
from redkey.ledger.ports import Clock
from redkey.ledger.record import Head, Record
from redkey.ledger.tail import head_of, leaf_hashes, open_tree, records_after
from redkey.ledger.tiles import TileTree
from redkey.stores.clock import SystemClock
from redkey.stores.disk import check_room
from redkey.stores.follow import Commits, Poller, follow
from redkey.stores.sqlite.checkpoint_files import CheckpointFiles
from redkey.stores.sqlite.directory import KEYS, create_database, prepare_directory, sync_names
from redkey.stores.sqlite.failures import translated
from redkey.stores.sqlite.incoming import Incoming, incoming_folder, remove_abandoned
from redkey.stores.sqlite.lock import WriterLock
from redkey.stores.sqlite.numbers import Numbers
from redkey.stores.sqlite.queries import Parameters, Queries
from redkey.stores.sqlite.readers import Readers, Snapshot, Watch
from redkey.stores.sqlite.schema import SQL
from redkey.stores.sqlite.unit import SqliteUnit
from redkey.stores.sqlite.writer import Writer
from redkey.stores.transactions import Transactions, refuse_second

# How often followers look for commits of other processes; this process's own wake them at once.
POLL_SECONDS = 0.025
# How long to wait for other processes when a store is opened: they may be opening it too, and finish what was left.
_OPEN_SECONDS = 10.0
# Readiness: how long to wait for the writer lock, how much room there must be, how long the answer holds.
_CHECK_SECONDS = 1.0
_ROOM_BYTES = 256 * 1024
_CHECK_KEPT_SECONDS = 0.5
# Trees kept for readers, about 70 KiB each at most.
_TREES = 64


class SqliteStore(Transactions[SqliteUnit], Queries):
    """A sequenced store over one data directory. Use it from any thread of the process that opened it."""

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
        # The transaction that is open, and the thread that has it.
        self._unit: SqliteUnit | None = None
        self._unit_thread: int | None = None
        # Heads of the topics that are watched, at a version of the file.
        self._heads: dict[str, int] = {}
        self._heads_version = 0
        with translated():
            prepare_directory(self.directory, create=create)
            self._lock = WriterLock(self.directory)
        try:
            self._open(clock or SystemClock())
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
                    # Before anything is deleted: a log that was deleted could come back and name it.
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
        self._trees: dict[str, tuple[TileTree, Head]] = {}
        self._trees_guard = threading.Lock()
        self._commits = Commits()
        self._poller = Poller(self._commits, lambda: Watch(self.directory), POLL_SECONDS)

    def close(self) -> None:
        """End followers, wait for the unit that is open, give everything back. Closing twice is fine."""
        if self._process != os.getpid() or self._closed:
            return
        self._lock.close()
        self._closed = True
        self._commits.close()
        self._poller.close()
        self._readers.close()
        self._watch.close()
        self._writer.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing.

    @contextmanager
    def _transaction(self, wait: bool) -> Iterator[SqliteUnit]:
        """A transaction, or the one that this thread has open for several units."""
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
        """Take the writer lock and write a little beside the database. Asked again soon, the last answer holds."""
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
        """Exact: the version of the file is in memory that the processes share."""
        self._check_usable()
        with translated():
            version = self._watch.version()
        if version != self._heads_version:
            self._heads, self._heads_version = {}, version
        head = self._heads.get(topic)
        if head is None:
            # The version was read first: whoever commits in between changes it once more.
            head = self._heads[topic] = self.head(topic).sequence
            self._told.setdefault(topic, head)
        return head

    def look(self) -> None:
        self._check_usable()
        if self._subscribers and self._writer.changed():
            self._tell(lambda topic: self.head(topic).sequence)

    def due(self, now: int, limit: int) -> Sequence[str]:
        return [topic for (topic,) in self._fetch(SQL["due"], (now, limit))]

    def follow(self, topic: str, after: int = 0) -> Iterator[Sequence[Record]]:
        self._check_usable()
        return self._follow(topic, after)

    def _follow(self, topic: str, after: int) -> Iterator[Sequence[Record]]:
        with self._poller:
            yield from follow(self, self._commits, topic, after)

    def tree(self, topic: str) -> TileTree:
        with self._trees_guard:
            kept = self._trees.pop(topic, None)
            tree, head = kept or open_tree(self, topic)
            for batch in records_after(self, topic, head.sequence):
                tree.append(leaf_hashes(head.running_hash, batch))
                head = head_of(batch[-1])
            self._trees[topic] = tree, head
            if len(self._trees) > _TREES:
                del self._trees[next(iter(self._trees))]
            return tree.for_reading()

    @property
    def keys_directory(self) -> Path:
        """The folder of the log's secrets."""
        return self.directory / KEYS

    @property
    def kept_checkpoints(self) -> CheckpointFiles:
        """The last signed checkpoints, outside the database."""
        return self._writer.checkpoint_files

    def topic_number(self, topic: str) -> int | None:
        number = self._numbers.get(topic)
        if number is None:
            for (number,) in self._fetch(SQL["topic_number"], (topic,)):
                self._numbers.put(topic, number)
        return number

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
        """Refuse a database whose head is behind a checkpoint that was published: records are missing."""
        for topic in self._writer.checkpoint_files.topics():
            size, head = self._writer.checkpoint_files.size(topic), self._writer.head(topic).sequence
            if head < size:
                raise StoreRefused(
                    f"topic {topic} ends at record {head}, but a checkpoint was signed at {size}: "
                    "records are missing; restore a backup with redkey restore",
                    code="head_behind_checkpoint",
                )
