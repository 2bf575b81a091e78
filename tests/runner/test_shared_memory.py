"""Memories in PostgreSQL: what is true of them alone; tests/runner/test_memory.py has what both stores promise."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psycopg
import pytest

from redkey.errors import MemoryRefused
from redkey.runner.memory.opening import open_memories
from redkey.runner.memory.postgres import PostgresMemories
from redkey.runner.memory.sqlite import SqliteMemories
from redkey.runner.spec import read_spec
from tests.harness.postgres import cluster
from tests.runner.test_memory import QUINN, Letters


def test_runners_that_start_together_share_one_set_of_memories(postgres_url: str) -> None:
    opened: list[PostgresMemories] = []
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            memories = PostgresMemories(postgres_url, Letters())
            opened.append(memories)
            for turn in range(5):
                memories.remember(QUINN, f"number {number} {turn}")
        except BaseException as cause:
            failed.append(cause)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(opened[0].recall(QUINN, "number", 100)) == 30
    for memories in opened:
        memories.close()


def test_a_lost_connection_is_opened_again(postgres_url: str) -> None:
    memories = PostgresMemories(postgres_url)
    memories.remember(QUINN, "alpha")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    memories.remember(QUINN, "beta")
    assert [one.text for one in memories.recall(QUINN, "alpha beta")] == ["beta", "alpha"]
    memories.close()


def test_a_role_that_may_not_create_tables_works_on_those_that_exist(postgres_url: str) -> None:
    role = "runner_" + os.urandom(4).hex()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        address = postgres_url.replace("redkey@", f"{role}@")
        with pytest.raises(MemoryRefused, match=r"permission denied.*grant the schema redkey_memory"):
            PostgresMemories(address, Letters())
        PostgresMemories(postgres_url, Letters()).close()
        owner.execute(f"GRANT USAGE ON SCHEMA redkey_memory TO {role}")
        owner.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA redkey_memory TO {role}")
    memories = PostgresMemories(address, Letters())
    memories.remember(QUINN, "alpha")
    assert [one.text for one in memories.recall(QUINN, "alpha")] == ["alpha"]
    memories.close()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"DROP OWNED BY {role}")
        owner.execute(f"DROP ROLE {role}")


def test_wrong_addresses_are_refused_in_one_line_without_the_password(postgres_url: str) -> None:
    wrong = [
        "postgresql://quinn:hunter%zz2@127.0.0.1/x",
        "postgresql://quinn:hunter2@127.0.0.1:1/x",
        "hunter2",
        postgres_url.replace("/test_", "/hunter_"),
    ]
    for address in wrong:
        with pytest.raises(MemoryRefused) as refused:
            PostgresMemories(address)
        assert "cannot be opened" in refused.value.message
        assert "hunter2" not in refused.value.message
        assert "zz2" not in refused.value.message
        assert "\n" not in refused.value.message


def test_the_setting_chooses_the_store(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"queue": "q", "exec": "true", "persona": "p", "name": "quinn", "memory": "words"}
    monkeypatch.delenv("REDKEY_MEMORY_STORE", raising=False)
    assert open_memories(read_spec(base), tmp_path, create=False) is None
    in_file = open_memories(read_spec(base), tmp_path)
    assert isinstance(in_file, SqliteMemories)
    in_file.close()
    named = open_memories(read_spec({**base, "memory_store": postgres_url}), tmp_path)
    monkeypatch.setenv("REDKEY_MEMORY_STORE", postgres_url)
    by_variable = open_memories(read_spec(base), tmp_path)
    assert isinstance(named, PostgresMemories)
    assert isinstance(by_variable, PostgresMemories)
    named.remember(QUINN, "alpha")
    assert by_variable.recall(QUINN, "alpha")
    named.close()
    by_variable.close()


def test_memories_need_no_right_on_the_ledger_and_leave_nothing_in_public(postgres_url: str) -> None:
    PostgresMemories(postgres_url, Letters()).close()
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    tables = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)' ORDER BY 2"
    assert cluster().execute(tables, database=name) == [("redkey_memory", "memory"), ("redkey_memory", "vector")]
