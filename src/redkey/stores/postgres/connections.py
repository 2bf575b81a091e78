"""Connections to one database: lent, given back, replaced when they were lost.

All of them are in autocommit mode: a unit or a snapshot begins its own transaction. Nothing depends on the state of a
session, so a pooler may stand between: settings are local to a transaction, every name has its schema, and statements
are not prepared where a pooler was found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from redkey.errors import StoreFailed, StoreMisused, StoreRefused
from redkey.fibers import Threads, is_on_loop
from redkey.stores.postgres.failures import translated
from redkey.stores.sql_queries import Parameters

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
# Threads that read for the event loop, and connections that stay open while nobody uses them.
_READERS = _IDLE = 8
_PREPARE_AFTER = 3
# A dead machine is noticed within seconds; whatever the URL says goes before.
_DEFAULTS = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
    "application_name": "redkey",
}


class Connections:
    """The connections of one store to its database. Any thread may borrow one.

    What the event loop asks for is done in threads (`redkey.fibers`): nobody else waits for a round trip.
    """

    def __init__(self, url: str) -> None:
        try:
            named = conninfo_to_dict(url)
            if not str(named.get("port") or "5432").replace(",", "").isdigit():
                raise psycopg.ProgrammingError(f"{named['port']!r} is not a port")
        except psycopg.ProgrammingError as error:
            text = f"the store's URL is not one of PostgreSQL (postgresql://user@host:5432/database): {error}"
            raise StoreRefused(" ".join(text.split()), code="store_url") from error
        self._parameters: dict[str, Any] = {**_DEFAULTS, **named}
        self._guard = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        # Behind a pooler statements cannot be prepared, and LISTEN does nothing.
        self.is_pooled = False
        # Set while the database cannot be reached, by the thread that listens.
        self.is_down = False
        # Round trips so far: what tests count.
        self.trips = 0
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="redkey-database")
        self.threads = Threads(self._pool)

    def connect(self) -> Connection:
        """Open a connection."""
        with translated():
            try:
                connection = psycopg.connect(
                    **self._parameters, autocommit=True, prepare_threshold=None if self.is_pooled else _PREPARE_AFTER
                )
            except psycopg.OperationalError:
                self.is_down = True
                raise
        self.is_down = False
        # Binary results: bytes are half as long as in text.
        connection.cursor_factory = _BinaryCursor
        return connection

    def find_pooler(self) -> None:
        """Notice a pooler: it shows its clients another process id than that of the session."""
        with self.lend() as connection:
            (pid,) = connection.execute("SELECT pg_backend_pid()").fetchall()[0]
            self.is_pooled = pid != connection.info.backend_pid
        if self.is_pooled:
            self.drop_idle()

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection for this block; one that was lost or is inside a transaction is closed after it."""
        connection = self.borrow()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def borrow(self) -> Connection:
        """An idle connection, or a new one."""
        with self._guard:
            if self._closed:
                raise StoreMisused("the store is closed", code="store_closed")
            if self._idle:
                return self._idle.pop()
        self._refuse_while_down()
        return self.beside(self.connect)

    def beside(self, work: Callable[[], T]) -> T:
        """Do work with connections where it does not hold up the event loop."""
        return self.threads.beside(work)

    def _refuse_while_down(self) -> None:
        """While the database is away, callers of the loop are told so at once: to connect may take seconds."""
        if self.is_down and is_on_loop():
            raise StoreFailed("the database cannot be reached now; try again", code="store_unreachable")

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next one who needs it, if it is sound."""
        if not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with self._guard:
                if not self._closed and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                    return
        connection.close()

    def drop_idle(self) -> None:
        """Close the idle connections: the database was restarted, or a session of it was."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        """The rows of one statement, by itself. A connection that was lost while it was idle is replaced."""
        self._refuse_while_down()
        return self.beside(partial(self._fetch, sql, parameters))

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        with translated():
            for last in (False, True):
                connection = self.borrow()
                try:
                    return run(self, connection, sql, parameters)
                except psycopg.OperationalError:
                    if last or not connection.closed:
                        raise
                    self.drop_idle()
                finally:
                    self.give_back(connection)
        raise AssertionError("unreachable")

    def pipeline(self, connection: Connection, statements: Sequence[tuple[str, Parameters]]) -> list[list[Any]]:
        """The rows of several statements that travel in one round trip. Called in threads only."""
        self.trips += 1
        with connection.pipeline():
            cursors = [connection.execute(sql, parameters) for sql, parameters in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        with self._guard:
            self._closed = True
        self.drop_idle()
        self._pool.shutdown(wait=False)


class _BinaryCursor(psycopg.Cursor[Any]):
    """A cursor whose results are in PostgreSQL's binary format."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.format = psycopg.pq.Format.BINARY


def run(connections: Connections, connection: Connection, sql: str, parameters: Parameters) -> list[Any]:
    """Return the rows of one statement; none if a parameter is a text that PostgreSQL cannot store."""
    return connections.beside(partial(_run, connections, connection, sql, parameters))


def _run(connections: Connections, connection: Connection, sql: str, parameters: Parameters) -> list[Any]:
    connections.trips += 1
    try:
        cursor = connection.execute(sql, parameters)
    except (psycopg.DataError, UnicodeEncodeError) as error:
        if isinstance(error, psycopg.DataError) and error.sqlstate is not None:
            raise
        return []
    return cursor.fetchall() if cursor.description else []
