"""The format of redkey.db: its version, the way up from older ones, and the SQL the store runs.

The version is SQLite's `user_version` and equals the number of migrations; `application_id` tells a RedKey file
from any other. All SQL lies beside this module in `.sql` files: `schema.sql` to read, `migrations/` to run,
`statements.sql` for everything else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from importlib import resources

import msgspec

from redkey.errors import StoreRefused

# "RKlg" in ASCII.
APPLICATION_ID = 0x524B6C67


class Migration(msgspec.Struct, frozen=True):
    """One step of the format: the version it leads to, and its SQL."""

    version: int
    name: str
    sql: str


def _read_migrations() -> tuple[Migration, ...]:
    files = sorted(resources.files(__package__).joinpath("migrations").iterdir(), key=lambda file: file.name)
    return tuple(
        Migration(int(file.name[:4]), file.name, file.read_text(encoding="utf-8"))
        for file in files
        if file.name.endswith(".sql")
    )


def read_statements(file: str) -> Mapping[str, str]:
    """The statements of a `.sql` file beside this module, by name."""
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    statements: dict[str, str] = {}
    for part in text.split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        _purpose, _, sql = body.partition("\n")
        statements[name] = sql.strip()
    return statements


MIGRATIONS = _read_migrations()
VERSION = MIGRATIONS[-1].version
SQL = read_statements("statements.sql")


def version(connection: sqlite3.Connection) -> int:
    """The format of an open file; 0 when nothing is in it yet, refused when it is not RedKey's."""
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise StoreRefused(
                "redkey.db is not a SQLite file, or its first page is damaged", code="not_redkey"
            ) from error
        raise
    if application == APPLICATION_ID:
        return int(found)
    if application == 0 and found == 0 and tables == 0:
        return 0
    raise StoreRefused("redkey.db is a SQLite file, but not one of RedKey's", code="not_redkey")


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring a file up to the last of `migrations`, each step whole or not at all; a newer file is refused."""
    found, known = version(connection), migrations[-1].version
    refuse_newer(found, known)
    for migration in migrations:
        if migration.version > found:
            _apply(connection, migration)


def refuse_newer(found: int, known: int = VERSION) -> None:
    """Refuse a format that this RedKey does not know: it would not keep what it does not understand."""
    if found > known:
        raise StoreRefused(
            f"redkey.db has format {found}, this RedKey knows formats up to {known}; use a newer RedKey",
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
