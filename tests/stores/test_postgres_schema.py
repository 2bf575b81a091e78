"""The SQL of the PostgreSQL store: each statement is used, has a purpose, and names its schema."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from redkey.stores.postgres import schema
from redkey.stores.sql_files import read_statements

PACKAGE = "redkey.stores.postgres"
TABLES = "setting|topic|record|event|tile|checkpoint|row|due|upload|piece|content|counter|server|secret|format"


@pytest.mark.parametrize("file", ["statements.sql", "inspection.sql"])
def test_every_statement_is_used_and_names_its_schema(file: str) -> None:
    code = "".join(one.read_text() for one in resources.files(PACKAGE).iterdir() if one.name.endswith(".py"))
    code += resources.files("redkey.stores").joinpath("sql_queries.py").read_text()
    for name, sql in read_statements(PACKAGE, file).items():
        assert f'"{name}"' in code, f"nothing runs {name}"
        bare = re.findall(rf"\b(?:FROM|INTO|UPDATE|JOIN)\s+({TABLES})\b", sql)
        assert bare == [], f"{name} names {bare} without the schema"


def test_every_statement_has_a_purpose() -> None:
    text = resources.files(PACKAGE).joinpath("statements.sql").read_text()
    parts = text.split("-- name: ")[1:]
    assert len(parts) == len(schema.SQL)
    for part in parts:
        assert part.split("\n")[1].startswith("-- "), part


def test_text_keys_sort_by_bytes() -> None:
    sql = schema.MIGRATIONS[0].sql
    for column in ("kind", "key", "listed", "subject"):
        for line in re.findall(rf"^  {column} text.*$", sql, re.MULTILINE):
            assert 'COLLATE "C"' in line, line


def test_the_migrations_lead_to_the_version() -> None:
    assert [one.version for one in schema.MIGRATIONS] == list(range(1, schema.VERSION + 1))
