"""The format of redkey.db: its version, its migrations, and the SQL that the store runs.

The version is SQLite's `user_version` and equals the number of migrations; `application_id` distinguishes a RedKey file
from any other. All SQL is in `.sql` files beside this module: `schema.sql` to read, `migrations/` to run,
`statements.sql` for everything else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from redkey.errors import StoreRefused
from redkey.stores.sql_files import Migration, read_migrations, read_statements

# "RKlg" in ASCII.
APPLICATION_ID = 0x524B6C67


MIGRATIONS = read_migrations(__package__)
VERSION = MIGRATIONS[-1].version
SQL = read_statements(__package__, "statements.sql")


def version(connection: sqlite3.Connection) -> int:
    """The format of an open file; 0 if it is empty, refused if it is not RedKey's."""
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (format_version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise StoreRefused(
                "redkey.db is not a SQLite file, or its first page is damaged", code="not_redkey"
            ) from error
        raise
    if application == APPLICATION_ID:
        return int(format_version)
    if application == 0 and format_version == 0 and tables == 0:
        return 0
    raise StoreRefused("redkey.db is a SQLite file of another program", code="not_redkey")


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate a file to the last of `migrations`, each step in one transaction; a newer file is refused."""
    current, known = version(connection), migrations[-1].version
    refuse_newer(current, known)
    for migration in migrations:
        if migration.version > current:
            _apply(connection, migration)


def refuse_newer(current: int, known: int = VERSION) -> None:
    """Refuse a format that is newer than this RedKey: it would lose what it does not know."""
    if current > known:
        raise StoreRefused(
            f"redkey.db has format {current}, this RedKey supports formats up to {known}; use a newer RedKey",
            code="newer_format",
        )


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    try:
        connection.executescript(
            f"BEGIN EXCLUSIVE;\n{migration.sql}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {migration.version};\nCOMMIT;"
        )
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
