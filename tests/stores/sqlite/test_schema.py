"""The format: the schema people read is the sum of the migrations that ran, older files come up, SQL has no strays."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path

import pytest

from redkey.errors import StoreRefused
from redkey.stores.sqlite import SqliteStore, schema
from redkey.stores.sqlite.schema import MIGRATIONS, SQL, VERSION, Migration, migrate
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, new_topic

EXTRA = Migration(
    VERSION + 1, "next.sql", "ALTER TABLE topic ADD COLUMN note TEXT; CREATE TABLE pet (name TEXT) STRICT;"
)


@contextmanager
def database(path: str | Path = ":memory:") -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def layout(connection: sqlite3.Connection) -> dict[str, str]:
    """Every table and index as SQL without its spaces and comments."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", sql)) for name, sql in rows}


def made_by(migrations: Sequence[Migration]) -> dict[str, str]:
    with database() as connection:
        migrate(connection, migrations)
        return layout(connection)


def test_the_schema_is_the_sum_of_the_migrations() -> None:
    with database() as connection:
        connection.executescript(resources.files(schema.__name__.rpartition(".")[0]).joinpath("schema.sql").read_text())
        assert layout(connection) == made_by(MIGRATIONS)


def test_migrations_are_numbered_from_one_without_gap() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_file_of_every_older_format_comes_up_to_this_one(tmp_path: Path, version: int) -> None:
    with database(tmp_path / "redkey.db") as connection:
        migrate(connection, MIGRATIONS[:version])
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 3)
        check_topic(store, topic)
    with database(tmp_path / "redkey.db") as connection:
        assert layout(connection) == made_by(MIGRATIONS)


def test_a_migration_to_come_keeps_what_is_there(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 300, "agt_1")
    with database(tmp_path / "redkey.db") as connection:
        migrate(connection, (*MIGRATIONS, EXTRA))
        assert schema.version(connection) == VERSION + 1
        assert connection.execute("SELECT id, note FROM topic").fetchall() == [(topic, None)]
        assert connection.execute("SELECT count(*) FROM record").fetchone() == (300,)
        migrate(connection, (*MIGRATIONS, EXTRA))
        with pytest.raises(StoreRefused) as refused:
            migrate(connection, MIGRATIONS)
        assert refused.value.code == "newer_format"


def test_a_migration_that_fails_leaves_the_format_before_it(tmp_path: Path) -> None:
    broken = Migration(VERSION + 1, "broken.sql", "CREATE TABLE half (name TEXT); CREATE TABLE topic (again TEXT);")
    with database(tmp_path / "redkey.db") as connection:
        migrate(connection, MIGRATIONS)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, (*MIGRATIONS, broken))
        assert schema.version(connection) == VERSION
        assert layout(connection) == made_by(MIGRATIONS)
    SqliteStore(tmp_path).close()


def test_every_statement_is_valid_and_used() -> None:
    package = resources.files(schema.__name__.rpartition(".")[0])
    code = "".join(file.read_text() for file in package.iterdir() if file.name.endswith(".py"))
    code += resources.files("redkey.stores").joinpath("sql_queries.py").read_text()
    with database() as connection:
        migrate(connection)
        for name, sql in SQL.items():
            assert f'"{name}"' in code, f"nobody runs {name}"
            connection.execute(f"EXPLAIN {sql}", _blanks(connection, sql))
    assert set(re.findall(r'\bSQL\["(\w+)"', code)) <= set(SQL)


def test_every_statement_has_a_purpose() -> None:
    text = resources.files(schema.__name__.rpartition(".")[0]).joinpath("statements.sql").read_text()
    parts = text.split("-- name: ")[1:]
    assert len(parts) == len(SQL) == len({part.split("\n")[0] for part in parts})
    for part in parts:
        assert part.split("\n")[1].startswith("-- "), part


# Asked when a topic begins, and when a store opens.
OVER_ALL_TOPICS = ("topics", "last_local_topic", "last_checkpoints")


@pytest.mark.parametrize(
    "name",
    [name for name, sql in SQL.items() if sql.startswith("SELECT") and name not in OVER_ALL_TOPICS],
)
def test_no_reading_goes_through_a_whole_table(name: str) -> None:
    with database() as connection:
        migrate(connection)
        plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", _blanks(connection, SQL[name])).fetchall()
    for step in plan:
        assert not re.match(r"SCAN (?!json_each|subject)", step[3]), plan


def _blanks(connection: sqlite3.Connection, sql: str) -> Sequence[None] | dict[str, None]:
    names = set(re.findall(r":(\w+)", sql))
    return dict.fromkeys(names) if names else [None] * sql.count("?")
