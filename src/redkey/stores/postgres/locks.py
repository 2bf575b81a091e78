"""Locks that servers of one database take beside their units: advisory locks of a transaction that stays open.

The lock belongs to the transaction, so it is free when its server is gone, and it works behind a pooler.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import psycopg

from redkey.stores.postgres.connections import Connection, Connections
from redkey.stores.postgres.failures import translated
from redkey.stores.postgres.schema import SQL


@contextmanager
def exclusive(connections: Connections, name: str) -> Iterator[None]:
    """Keep the other servers out of a block, waiting for them first."""
    with connections.lend() as connection, translated(), connection.transaction():
        connection.execute(SQL["advisory_lock"], (_number(name),))
        yield


class DatabaseHolder:
    """A lock that one server at a time has, for as long as it likes."""

    def __init__(self, connections: Connections, name: str) -> None:
        self._connections, self._name = connections, name
        self._connection: Connection | None = None

    def take(self) -> bool:
        """Take the lock unless another server has it; True when this one does."""
        return self._connections.beside(self._take)

    def _take(self) -> bool:
        if self._connection is not None and self._is_alive(self._connection):
            return True
        self.release()
        connection = self._connections.connect()
        with translated():
            connection.execute(SQL["begin"])
            (got,) = connection.execute(SQL["try_advisory_lock"], (_number(self._name),)).fetchall()[0]
        if got:
            self._connection = connection
        else:
            connection.close()
        return bool(got)

    def release(self) -> None:
        """Let another server take it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @staticmethod
    def _is_alive(connection: Connection) -> bool:
        try:
            connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True


def _number(name: str) -> int:
    """A name as PostgreSQL's locks are named: a signed integer of 32 bits, beside those of units and migrations."""
    return (crc32(name.encode()) | 0x100) - 2**31
