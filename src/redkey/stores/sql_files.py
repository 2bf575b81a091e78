"""SQL as files: the migrations of a store's format and its named statements, beside the package that runs them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

import msgspec


class Migration(msgspec.Struct, frozen=True):
    """One step of the format: the version it leads to, and its SQL."""

    version: int
    name: str
    sql: str


def read_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of a package in their order: files such as `migrations/0001_first.sql`."""
    files = sorted(resources.files(package).joinpath("migrations").iterdir(), key=lambda file: file.name)
    return tuple(
        Migration(int(file.name[:4]), file.name, file.read_text(encoding="utf-8"))
        for file in files
        if file.name.endswith(".sql")
    )


def read_statements(package: str, file: str) -> Mapping[str, str]:
    """The statements of a `.sql` file of a package, by the names after `-- name:`."""
    text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
    statements: dict[str, str] = {}
    for part in text.split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        _purpose, _, sql = body.partition("\n")
        statements[name] = sql.strip()
    return statements
