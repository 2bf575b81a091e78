"""`redkey serve --store` on a database that cannot be used: one line that says what to do, and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from redkey.stores.postgres import PostgresStore
from redkey.stores.postgres.schema import VERSION
from tests.harness.postgres import cluster

pytestmark = pytest.mark.xdist_group("cluster")

KEY, OTHER = b64encode(bytes(32)).decode(), b64encode(bytes(31) + b"1").decode()


def attempt(home: Path, store: str, key: str | None) -> str:
    """What a server says that is started on a store and ends by itself: one line, with code 1."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    done = subprocess.run(
        [sys.executable, "-m", "redkey", "serve", "--store", store, "--data", str(home), "--port", "0"],
        capture_output=True,
        text=True,
        env={**clean, **({"REDKEY_STORE_KEY": key} if key else {})},
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert not (home / "credentials.json").exists()
    line, *more = done.stderr.strip().splitlines()
    # Which data directory it used, and perhaps the next step.
    assert {text.split()[0] for text in more} <= {"data:", "hint:"}, done.stderr
    return line


def test_a_store_that_cannot_be_used_is_one_line(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed, newer, bare = (cluster().create_database() for _ in range(3))
    role = f"poor_{sealed}"
    try:
        monkeypatch.setenv("REDKEY_STORE_KEY", KEY)
        with PostgresStore(cluster().url(sealed)) as store:
            store.secrets.issuing_secret()
        PostgresStore(cluster().url(newer)).close()
        cluster().execute(
            "INSERT INTO redkey.format (version, name) VALUES (%s, 'later')", [VERSION + 1], database=newer
        )
        cluster().execute(f"CREATE ROLE {role} LOGIN")
        cases = {
            "port": ("postgresql://redkey@127.0.0.1:http/redkey", KEY, "is not a port"),
            "scheme": ("mysql://redkey@127.0.0.1/redkey", KEY, "is not the scheme of a store"),
            "away": ("postgresql://redkey@127.0.0.1:1/redkey", KEY, "check that it runs"),
            "rights": (cluster().url(bare, role), KEY, "right"),
            "newer": (cluster().url(newer), KEY, "use a newer RedKey"),
            "no key": (postgres_url, None, "REDKEY_STORE_KEY"),
            "other key": (cluster().url(sealed), OTHER, "REDKEY_STORE_KEY"),
        }
        with ThreadPoolExecutor(len(cases)) as pool:
            said = {name: pool.submit(attempt, tmp_path / name, store, key) for name, (store, key, _) in cases.items()}
        for name, (_, _, step) in cases.items():
            line = said[name].result()
            assert step in line, (name, line)
        with psycopg.connect(cluster().url(bare)) as connection:
            assert connection.execute("SELECT to_regclass('redkey.format')").fetchall() == [(None,)]
    finally:
        for name in (sealed, newer, bare):
            cluster().drop_database(name)
        cluster().execute(f"DROP ROLE IF EXISTS {role}")
