"""kill -9 around every round trip of a process that writes to PostgreSQL: a unit is there whole, or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redkey.stores.postgres import PostgresStore
from tests.conformance.stores.checker import check_topic

pytestmark = pytest.mark.xdist_group("cluster")

ROOT = Path(__file__).parents[2]


def test_a_unit_is_whole_or_absent_wherever_its_process_is_killed(
    postgres_url: str, tell: Callable[[str], None]
) -> None:
    command = [sys.executable, "-m", "tests.crash.postgres_run", postgres_url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rounds, acknowledged = map(int, done.stdout.split())
    # The opening, and four round trips a unit, each with a kill before and after it.
    assert rounds > 24
    with PostgresStore(postgres_url) as store:
        topic = "1.0.1001"
        assert len(check_topic(store, topic)) >= 2 * acknowledged
    tell(f"PostgreSQL: {rounds} processes killed before and after each of their round trips, {acknowledged} units")
