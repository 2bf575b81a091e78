"""Read the SQL files of a store: its migrations and its named statements."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import msgspec


class Migration(msgspec.Struct, frozen=True):
    """One migration: the format version that it creates, and its SQL."""

    version: int
    name: str
    sql: str


def read_migrations(package: str) -> tuple[Migration, ...]:
    """Return the migrations of a package in order, from files such as `migrations/0001_first.sql`."""
    files = sorted(resources.files(package).joinpath("migrations").iterdir(), key=lambda file: file.name)
    return tuple(
        Migration(int(file.name[:4]), file.name, file.read_text(encoding="utf-8"))
        for file in files
        if file.name.endswith(".sql")
    )


def read_statements(package: str, file: str) -> Mapping[str, str]:
    """Return the statements of a `.sql` file by the names after `-- name:`; the line after a name is its purpose."""
    text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
    statements: dict[str, str] = {}
    for part in text.split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        _purpose, _, sql = body.partition("\n")
        statements[name] = sql.strip()
    return statements
