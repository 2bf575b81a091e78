"""Connections for reading, lent to any thread; each statement sees one complete commit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redkey.errors import StoreMisused
from redkey.stores.sql_queries import Parameters
from redkey.stores.sqlite.connection import connect
from redkey.stores.sqlite.content_files import ContentFiles
from redkey.stores.sqlite.failures import translated
from redkey.stores.sqlite.numbers import Numbers
from redkey.stores.sqlite.queries import Queries
from redkey.stores.sqlite.schema import SQL

# How many idle connections are kept.
_IDLE = 8


class Readers:
    """A pool of connections for reading."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    def fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        """All rows of one statement."""
        connection = self._borrow()
        try:
            return connection.execute(sql, parameters).fetchall()
        finally:
            self._give_back(connection)

    @contextmanager
    def snapshot(self, files: ContentFiles) -> Iterator[Snapshot]:
        """A connection whose statements all see the same commit."""
        connection = self._borrow()
        try:
            with translated():
                connection.execute("BEGIN")
                # The first statement that reads determines the commit.
                connection.execute(SQL["topic_number"], ("",)).fetchall()
            try:
                yield Snapshot(connection, files)
            finally:
                connection.execute("ROLLBACK")
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close idle connections now, and lent ones when they are returned."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _borrow(self) -> sqlite3.Connection:
        with self._guard:
            if self._closed:
                raise StoreMisused("the store is closed", code="store_closed")
            if self._idle:
                return self._idle.pop()
        return connect(self._directory, read_only=True)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            if not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


class Snapshot(Queries):
    """The data directory at one commit."""

    def __init__(self, connection: sqlite3.Connection, files: ContentFiles) -> None:
        self._connection, self._files = connection, files
        self._numbers = Numbers()

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        with translated():
            return self._connection.execute(sql, parameters).fetchall()

    def topic_number(self, topic: str) -> int | None:
        return self._numbers.find(topic, self._fetch)


class Watch:
    """Reports whether another connection has committed since the last check; SQLite counts that per connection."""

    def __init__(self, directory: Path) -> None:
        self._connection = connect(directory, read_only=True)
        self._seen = self.version()

    def changed(self) -> bool:
        before, self._seen = self._seen, self.version()
        return before != self._seen

    def close(self) -> None:
        self._connection.close()

    def version(self) -> int:
        """A number that changes with every commit of any other connection."""
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version
