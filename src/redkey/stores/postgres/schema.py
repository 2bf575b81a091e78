"""The format of a ledger in PostgreSQL: its migrations, its version, and the SQL the store runs.

All SQL is in `.sql` files beside this module: `migrations/` creates the schema `redkey` step by step, `statements.sql`
has everything else. The version of the format is the last migration that was applied, in `redkey.format`.
"""

from __future__ import annotations

from typing import Any

import psycopg

from redkey.errors import StoreRefused
from redkey.stores.postgres.failures import translated
from redkey.stores.sql_files import read_migrations, read_statements

MIGRATIONS = read_migrations(__package__)
VERSION = MIGRATIONS[-1].version
SQL = read_statements(__package__, "statements.sql")
# transaction_timeout came with it.
OLDEST_SERVER = 170000
# Servers that start together migrate one after the other.
_LOCK = "SELECT pg_advisory_xact_lock(1380674407, 1)"
_APPLIED = "INSERT INTO redkey.format (version, name) VALUES (%s, %s)"


def check_server(connection: psycopg.Connection[Any]) -> None:
    """Refuse a PostgreSQL that is too old."""
    found = connection.info.server_version
    if found < OLDEST_SERVER:
        raise StoreRefused(
            f"the database is PostgreSQL {found // 10000}; RedKey needs 17 or newer: upgrade it", code="store_too_old"
        )


def version(connection: psycopg.Connection[Any]) -> int:
    """The format of a database; 0 when RedKey has nothing in it yet."""
    with translated():
        (exists,) = connection.execute("SELECT to_regclass('redkey.format') IS NOT NULL").fetchall()[0]
        if not exists:
            return 0
        return int(connection.execute("SELECT coalesce(max(version), 0) FROM redkey.format").fetchall()[0][0])


def migrate(connection: psycopg.Connection[Any], *, create: bool = True) -> None:
    """Bring a database to this format, all steps or none; refuse a newer one."""
    found = version(connection)
    refuse_newer(found)
    if found == VERSION:
        return
    if not found and not create:
        raise StoreRefused("the database has no ledger yet; redkey serve --store creates one", code="no_store")
    with translated(), connection.transaction():
        connection.execute(_LOCK)
        found = version(connection)
        refuse_newer(found)
        for migration in MIGRATIONS:
            if migration.version > found:
                # Several statements at once travel only where results are text.
                psycopg.Cursor(connection).execute(migration.sql.encode())
                connection.execute(_APPLIED, (migration.version, migration.name))


def refuse_newer(found: int) -> None:
    """Refuse a format that this RedKey does not know: it would not keep what it does not understand."""
    if found > VERSION:
        raise StoreRefused(
            f"the ledger in this database has format {found}, this RedKey knows formats up to {VERSION}; "
            "use a newer RedKey",
            code="newer_format",
        )
