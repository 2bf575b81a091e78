"""The whole of `services` in made-up time: many seeds, each a run of its own, each repeatable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.far_store import postgres_stores, sqlite_stores
from tests.simulation.run import Report, Run

ROOT = Path(__file__).parents[2]
SEEDS = 2000 if os.environ.get("REDKEY_TEST_LONG") == "1" else 200
NETWORK_SEEDS = 1000 if os.environ.get("REDKEY_TEST_LONG") == "1" else 20
# Each on SQLite and on PostgreSQL.
STORE_SEEDS = 60 if os.environ.get("REDKEY_TEST_LONG") == "1" else 2
BLOCK = 10


def run(seed: int, *, network: bool = False) -> Report:
    try:
        return Run(seed, network=network).go()
    except BaseException:
        print(f"repeat with: python -m tests.simulation {seed}{' network' if network else ''}")
        raise


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nothing_is_lost_or_done_twice_and_everything_ends(first: int) -> None:
    for seed in range(first, first + BLOCK):
        run(seed)


@pytest.mark.parametrize("first", range(0, NETWORK_SEEDS, BLOCK))
def test_the_same_holds_on_a_database_across_a_network(first: int) -> None:
    for seed in range(first, first + BLOCK):
        run(seed, network=True)


@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("seed", range(STORE_SEEDS))
def test_sqlite_and_postgresql_come_to_the_same_records_and_rows(
    seed: int, tmp_path: Path, postgres_url: str, record_property: Any
) -> None:
    found = []
    for stores in (sqlite_stores(tmp_path / "data"), postgres_stores(postgres_url)):
        one = Run(seed, network=True, stores=stores)
        found.append((repr(one.go()), one.contents))
    (of_sqlite, on_sqlite), (of_postgres, on_postgres) = found
    assert of_sqlite == of_postgres
    assert list(on_sqlite) == list(on_postgres)
    for topic, parts in on_sqlite.items():
        for part, held in parts.items():
            assert held == on_postgres[topic][part], f"{part} of {topic} differ"
        assert all(parts[name] for name in ("records", "rows", "subjects")), f"nothing to compare in {topic}"
    record_property("proven", f"SQLite and PostgreSQL under one seed: {of_postgres}")


def test_one_seed_is_one_run_on_a_network_too() -> None:
    assert repr(run(3, network=True)) == repr(run(3, network=True))


# In the run of seed 6 somebody waits in two workspaces when another process has written to both.
@pytest.mark.parametrize("seed", [4, 6])
def test_one_seed_is_one_run_in_every_process(seed: int) -> None:
    here = run(seed)
    for hashes in ("1", "3"):
        ran = subprocess.run(
            [sys.executable, "-m", "tests.simulation", str(seed)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            check=True,
        )
        assert repr(here) in ran.stdout


def test_runs_differ_and_meet_what_they_are_for() -> None:
    reports = [run(seed) for seed in range(20)]
    assert len({report.head for report in reports}) == len(reports)
    assert sum(report.crashes for report in reports) > 10
    assert sum(report.unknown for report in reports) > 10
