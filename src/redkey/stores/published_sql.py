"""The SQL scripts that create a ledger in PostgreSQL, to apply by hand or with Supabase. The server runs the same SQL.

This module needs no driver and no database: it only reads the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import ConfigRefused
from redkey.stores.durable import create_file

_FOLDER: Final = Path(__file__).with_name("postgres")
# Supabase orders migrations by the time in their names. A published script never changes its name, so the time of each
# one is fixed: its minute is the version of the format.
_FIRST_TIME: Final = 20261118000000
# Scripts only for Supabase, with their time (minute 2, and a second), so that they run after the views of version 2.
_BESIDE: Final = {"supabase": 240, "broadcast": 250}


class Script(msgspec.Struct, frozen=True):
    """One script: its file name and its text."""

    name: str
    sql: str


def scripts(*, supabase: bool = False, broadcast: bool = False) -> list[Script]:
    """Return the scripts in the order in which to apply them; for Supabase, with the names that it requires."""
    files = sorted((_FOLDER / "migrations").glob("*.sql"))
    if not supabase:
        return [Script(file.name, _migration_text(file)) for file in files]
    timed = [(int(file.name[:4]) * 100, file.stem, _migration_text(file)) for file in files]
    for name, wanted in (("supabase", supabase), ("broadcast", broadcast)):
        if wanted:
            timed.append((_BESIDE[name], name, (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")))
    return [Script(f"{_FIRST_TIME + time}_redkey_{name}.sql", sql) for time, name, sql in sorted(timed)]


def write_scripts(folder: Path, found: list[Script]) -> list[str]:
    """Write the scripts that a folder does not have; return the names of all scripts written.

    Raise ConfigRefused if a file has the name of a script but another text: an applied migration must not change.
    """
    missing = []
    for script in found:
        path = folder / script.name
        try:
            if path.read_text(encoding="utf-8") != script.sql:
                text = f"{path} differs from the script of this RedKey; move the file away and run the command again"
                raise ConfigRefused(text, code="migration_differs")
        except FileNotFoundError:
            missing.append(script)
        except (OSError, UnicodeDecodeError) as cause:
            raise ConfigRefused(f"{path} cannot be read: {cause}") from cause
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for script in missing:
            create_file(folder / script.name, script.sql.encode(), 0o644)
    except OSError as cause:
        raise ConfigRefused(f"the scripts cannot be written to {folder}: {cause}") from cause
    return [script.name for script in missing]


def _migration_text(file: Path) -> str:
    """Return the text of a migration, with the statement that records it as applied."""
    row = f"INSERT INTO redkey.format (version, name) VALUES ({int(file.name[:4])}, '{file.name}');\n"  # noqa: S608
    return f"{file.read_text(encoding='utf-8').rstrip()}\n\n{row}"
