"""The connection that writes: it begins units and commits them durably or rolls them back.

Between units it caches what is expensive to look up: topic numbers, and the tails of recently written topics (head,
clock, tree). Numbers never change, so they stay valid whatever others write; tails are updated when SQLite's
`data_version` shows that another process has committed. After a failed unit the caches are cleared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from redkey.errors import RedKeyError, StoreError, StoreFailed, StoreFull, StorePoisoned, WriterBusy
from redkey.ledger.ports import Clock
from redkey.ledger.tail import Tail, Tails
from redkey.stores.sql_queries import Parameters, digest_of
from redkey.stores.sqlite import schema
from redkey.stores.sqlite.checkpoint_files import CheckpointFiles
from redkey.stores.sqlite.connection import DATABASE_NAME, connect
from redkey.stores.sqlite.content_files import ContentFiles, Mark
from redkey.stores.sqlite.failures import rewrite_file, sync_path, translate, translated
from redkey.stores.sqlite.numbers import Numbers
from redkey.stores.sqlite.queries import Queries
from redkey.stores.sqlite.schema import SQL
from redkey.stores.sqlite.unit import SqliteUnit

Result = TypeVar("Result")

# The write-ahead log is copied into the database after this many units, or about this many bytes.
_LOG_UNITS = 256
_LOG_BYTES = 8 * 1024 * 1024


class Writer(Queries):
    """Used by one thread at a time, under the writer lock."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._files = self.files = ContentFiles(directory)
        self.checkpoint_files = CheckpointFiles(directory)
        self._connection = connect(directory)
        self._log = directory / f"{DATABASE_NAME}-wal"
        self._topics: Numbers = Numbers()
        self._tails = Tails(self, clock)
        # Topic number -> when something is due next, as far as it is known.
        self.due_times: dict[int, int] = {}
        # The open unit, and the error that broke it.
        self._unit: SqliteUnit | None = None
        self._broken: BaseException | None = None
        # Bodies added or erased whose marks still exist; erased ones wait until the log is emptied.
        self._unsettled: set[Mark] = set()
        self._erasing = False
        self._log_units = self._log_bytes = 0
        # SQLite's `data_version`, which only other connections change: at the last unit, and at the last check.
        self.seen = self._asked = 0

    def prepare(self) -> None:
        """Migrate the file, and finish the interrupted work of a process that died."""
        with translated():
            schema.migrate(self._connection)
            self._unsettled.update(self.files.marks())
        self._distrust_log()
        self.seen = self._asked = self._data_version()
        self._erasing = bool(self._unsettled)
        self._settle()

    def close(self) -> None:
        self._connection.close()

    def changed(self) -> bool:
        """True when another connection has committed since the last call."""
        before, self._asked = self._asked, self._data_version()
        return before != self._asked

    # Units.

    def begin(self) -> SqliteUnit:
        """Open a unit at the newest commit."""
        with translated():
            self._connection.execute("BEGIN IMMEDIATE")
        self._broken = None
        self._unit = unit = SqliteUnit(self)
        try:
            self._see_others()
        except BaseException:
            self.roll_back(unit)
            raise
        return unit

    def commit(self, unit: SqliteUnit) -> None:
        """Make the unit durable. If this raises before the unit has ended, the caller must roll it back."""
        unit.flush()
        published = self._do(self._prepare_checkpoints, unit.new_checkpoints)
        if unit.erased:
            self.mark(unit.erased)
        try:
            self.run("COMMIT", ())
        except StoreFailed as error:
            # The log may already contain it: then the unit is there when the store opens again.
            self._broken = StorePoisoned(f"it is unknown whether a unit is durable; stop this process: {error}")
            raise self._broken from error
        self._end(unit)
        try:
            self.checkpoint_files.publish(published)
            self._unsettled |= unit.added | unit.erased
            self._erasing |= bool(unit.erased)
            self._settle()
            self._copy_log(unit.bytes)
        except (StoreError, OSError) as error:
            # The unit is durable, but the disk fails, so nothing may depend on it: no answer, and the process stops.
            raise StorePoisoned(f"the disk failed after a unit became durable; stop this process: {error}") from error

    def roll_back(self, unit: SqliteUnit) -> None:
        """Undo the unit, and clear the caches of everything that it may have touched."""
        self._end(unit)
        self._topics.clear()
        self._tails.forget()
        self.due_times.clear()
        try:
            # After some errors SQLite has already rolled back.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StorePoisoned(f"a unit cannot be rolled back; stop this process: {error}") from error
        if isinstance(self._broken, StorePoisoned):
            # The log may contain the unit anyway. Its marks are settled when the store opens again.
            return
        self._unsettled |= unit.added | unit.erased
        try:
            self._settle()
        except StorePoisoned:
            raise
        except (RedKeyError, OSError):
            # The marks remain: they are settled after the next unit, or when the store opens again.
            return

    def _end(self, unit: SqliteUnit) -> None:
        unit.end()
        self._unit = None

    def _see_others(self) -> None:
        """After a commit of another process, check that the format is still supported and let the tails catch up."""
        before, self.seen = self.seen, self._data_version()
        if before != self.seen:
            schema.refuse_newer(schema.version(self._connection))
            self.due_times.clear()
        self._tails.begin(others_wrote=before != self.seen)

    def republish(self) -> None:
        """Publish checkpoints that a process committed and did not publish before it died."""
        sizes = self.fetch(SQL["last_checkpoints"], ())
        with translated():
            missed = [topic for topic, size in sizes if (size or 0) > self.checkpoint_files.size(topic)]
            self.checkpoint_files.publish(
                self._prepare_checkpoints({topic: self.checkpoints(topic)[0] for topic in missed})
            )

    def _prepare_checkpoints(self, notes: Mapping[str, tuple[int, bytes]]) -> set[str]:
        published = set()
        for topic, (size, note) in notes.items():
            if size >= self.checkpoint_files.size(topic):
                self.checkpoint_files.prepare(topic, note)
                published.add(topic)
        return published

    # Called by units. An error here breaks the unit, even if the caller catches it.

    def fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        return self._do(self._fetch_all, sql, parameters)

    def run(self, sql: str, parameters: Parameters) -> None:
        self._do(self._connection.execute, sql, parameters)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._do(self._connection.executemany, sql, rows)

    def mark(self, marks: Iterable[Mark]) -> None:
        self._do(self.files.mark, marks)

    def write_files(self, topic: str, bodies: Iterable[tuple[str, bytes]]) -> None:
        self._do(self.files.write, topic, bodies)

    def adopt_files(self, topic: str, uploads: Iterable[tuple[str, Callable[[Path], None]]]) -> None:
        self._do(self.files.adopt, topic, uploads)

    def fail(self, cause: BaseException) -> None:
        """Let nothing more happen in this transaction: one of its units has failed."""
        self._broken = self._broken or cause

    def tail(self, topic: str) -> Tail:
        """The end of a topic, as seen inside the unit."""
        return self._tails.of(topic)

    def begin_topic(self, topic: str) -> int:
        number: int = self.fetch(SQL["insert_topic"], (topic,))[0][0]
        self._topics.put(topic, number)
        return number

    def topic_number(self, topic: str) -> int | None:
        return self._topics.find(topic, self.fetch)

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        if self._unit is not None:
            self._unit.flush()
        return self.fetch(sql, parameters)

    def _fetch_all(self, sql: str, parameters: Parameters) -> list[Any]:
        return self._connection.execute(sql, parameters).fetchall()

    def _do(self, action: Callable[..., Result], *arguments: Any) -> Result:
        # After some errors SQLite has already rolled back; a statement that ran now would be committed on its own.
        if self._unit is not None and self._broken is not None:
            raise self._broken
        try:
            return action(*arguments)
        except BaseException as error:
            self._broken = failure = translate(error)
            if failure is error:
                raise
            raise failure from error

    # The write-ahead log and the marks.

    def _settle(self) -> None:
        """Settle added and erased bodies; if readers delay an erasure, settle after a later unit."""
        if not self._unsettled or (self._erasing and not self._empty_log()):
            return
        self._erasing = False
        self.files.settle(self._unsettled, self._is_named)
        self._unsettled.clear()

    def _is_named(self, topic: str, sha256: str) -> bool:
        number = self.topic_number(topic)
        return number is not None and bool(self._fetch(SQL["content"], (number, digest_of(sha256))))

    def _distrust_log(self) -> None:
        """Rewrite a log that was left behind, before anything builds on it.

        The log may exist only in the page cache, after its fsync failed. Then the kernel takes its pages for written,
        no later fsync writes them, and a power cut would undo what was read from them here.
        """
        with translated():
            # Lock out every other program, including those that do not use our lock.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                # If SQLite cannot open a file for writing it opens it for reading, and fails at the first write.
                self._connection.execute(f"PRAGMA user_version = {schema.VERSION}")
                rewrite_file(self._log)
            finally:
                self._connection.execute("ROLLBACK")

    def _empty_log(self) -> bool:
        """Copy the log into the database and truncate it; false when a reader still needs it."""
        try:
            return self._cut_log()
        except (StoreFull, WriterBusy):
            return False

    def _cut_log(self) -> bool:
        (busy, _, _) = self.fetch("PRAGMA wal_checkpoint(TRUNCATE)", ())[0]
        if not busy:
            # SQLite does not sync the truncation: a power cut could bring back what was erased.
            self._do(sync_path, self._log)
        return not busy

    def _copy_log(self, size: int) -> None:
        """Copy a long log into the database. On a full disk the log only grows until the next attempt."""
        self._log_units += 1
        self._log_bytes += size
        if self._log_units >= _LOG_UNITS or self._log_bytes >= _LOG_BYTES:
            self._log_units = self._log_bytes = 0
            try:
                self.fetch("PRAGMA wal_checkpoint(PASSIVE)", ())
            except (StoreFull, WriterBusy):
                return

    def _data_version(self) -> int:
        version: int = self.fetch("PRAGMA data_version", ())[0][0]
        return version
