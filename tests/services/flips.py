"""Flips the bits of a data directory one at a time, and reports the result: fsck names the fault, or nothing changed.

Files are in memory and are changed in place, one byte and back again, so a try costs one check of the store. If fsck
does anything but name a fault or find none (another exception, no end), the test fails.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any

from redkey.errors import StoreError
from redkey.services.fsck.check import Fsck
from redkey.services.fsck.report import Report
from redkey.stores.sqlite.inspection import Inspection

DATABASE, LOG = "redkey.db", "redkey.db-wal"
TABLES = ("setting", "topic", "record", "event", "tile", "checkpoint", "row", "content", "counter")
# Far longer than a check takes here, and short enough for a test.
_LIMIT_SECONDS = 60


class Named(BaseException):
    """The first fault that fsck names; nothing catches it on its way out."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class FirstFault(Report):
    """A report that ends the check at its first fault."""

    def add(self, code: str, message: str, topic: str = "", sequence: int = 0) -> None:
        raise Named(code)


class Specimen:
    """A data directory that no process has open, and all its files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._tables = self.tables()
        self._judged: dict[bytes, str] = {}

    def size(self, name: str) -> int:
        return (self.directory / name).stat().st_size

    def bytes(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    @contextmanager
    def flipped(self, name: str, offsets: Sequence[int], bit: int) -> Iterator[None]:
        """Flip one bit of a file, or of several of its bytes, inside the block."""
        descriptor = os.open(self.directory / name, os.O_RDWR)
        self._flip(descriptor, offsets, bit)
        try:
            yield
        finally:
            self._flip(descriptor, offsets, bit)
            os.close(descriptor)

    def _flip(self, descriptor: int, offsets: Sequence[int], bit: int) -> None:
        for offset in offsets:
            (byte,) = os.pread(descriptor, 1, offset)
            os.pwrite(descriptor, bytes((byte ^ 1 << bit,)), offset)

    @contextmanager
    def truncated(self, name: str, size: int) -> Iterator[None]:
        """Cut a file short inside the block."""
        path = self.directory / name
        data = path.read_bytes()
        os.truncate(path, size)
        try:
            yield
        finally:
            path.write_bytes(data)

    # The result of a try.

    def tables(self) -> list[Any] | None:
        """Every row of every table, as bytes; None when they cannot be read."""
        connection = self._connect()
        connection.text_factory = bytes
        try:
            return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]  # noqa: S608
        except (sqlite3.Error, UnicodeDecodeError):
            return None
        finally:
            connection.close()

    @property
    def unchanged(self) -> bool:
        """True if the database returns what it returned before: every record, hash, checkpoint, tile, row and body."""
        return self.tables() == self._tables

    def fault(self) -> str:
        """The code of the first fault that fsck names, or nothing."""
        try:
            return next(iter(self.report(FirstFault()).errors), "")
        except Named as named:
            return named.code

    def report(self, report: Report | None = None) -> Report:
        """Return all findings of fsck; a database that it refuses to check is one fault."""
        report = report or Report()
        with _bounded():
            try:
                evidence = Inspection(self.directory)
            except StoreError as refused:
                report.add(refused.code, refused.message)
                return report
            with evidence:
                check = Fsck(evidence)
                check.report = report
                return check.run()

    def fault_of_log(self) -> str:
        """As `fault`, when only the log was changed: what SQLite reads is the same for many of its bits.

        The check reads the database through SQLite and nothing else of the log, so the same pages have the same faults.
        """
        image = self._image()
        if image is None:
            return self.fault()
        if image not in self._judged:
            self._judged[image] = self.fault()
        return self._judged[image]

    def _image(self) -> bytes | None:
        """A digest of all pages as SQLite reads them, from the database and the log."""
        connection = self._connect()
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return blake2b(connection.serialize(), digest_size=16).digest()
        except (sqlite3.Error, UnicodeDecodeError):
            return None
        finally:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        # Without a log no shared memory is needed, and opening costs half.
        options = "mode=ro" if (self.directory / LOG).exists() else "mode=ro&immutable=1"
        return sqlite3.connect(f"file:{self.directory / DATABASE}?{options}", uri=True, isolation_level=None)


@contextmanager
def _bounded() -> Iterator[None]:
    """A check that has no end fails."""

    def endless(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"fsck did not end within {_LIMIT_SECONDS} s")

    before = signal.signal(signal.SIGALRM, endless)
    signal.alarm(_LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
