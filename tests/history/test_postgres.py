"""Servers on one PostgreSQL are killed under load, and a proxy cuts COMMITs: what clients saw is what the ledger says.

The check shares no code with the server, as in `test_histories`: it reads the tables with SQL of its own.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from redkey.services.fsck.check import Fsck
from redkey.stores.opening import store_at
from tests.harness.postgres import Cluster, cluster, database
from tests.harness.postgres_proxy import Proxy
from tests.history.check import check_history
from tests.history.cluster import run_faults
from tests.history.ledger_file import Ledger, judge_ledger

pytestmark = pytest.mark.xdist_group("cluster")

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
# Servers, kills, claimants, the least seconds between two kills: 60 seconds at the large size.
SIZE = (4, 30, 64, 2.0) if LONG else (2, 2, 4, 0.0)
CUT = 0.05
# Crashes of PostgreSQL, claimants.
CRASHES, CRASH_WORKERS = (30, 32) if LONG else (3, 4)


def read_database(url: str) -> Ledger:
    """The one topic of a database."""
    with psycopg.connect(url) as connection:
        (number, topic), *others = connection.execute("SELECT number, id FROM redkey.topic ORDER BY number").fetchall()
        rows = connection.execute(
            "SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record WHERE topic = %s"
            " ORDER BY sequence",
            (number,),
        ).fetchall()
        signed = connection.execute(
            "SELECT size, note FROM redkey.checkpoint WHERE topic = %s ORDER BY size", (number,)
        ).fetchall()
    return judge_ledger(topic, others, rows, signed)


@contextmanager
def cutting(proxy: Proxy) -> Iterator[None]:
    """Cut the next COMMIT, and others by chance."""
    proxy.next, proxy.chance = "after", CUT
    try:
        yield
    finally:
        proxy.next, proxy.chance = None, 0.0


def judged(run: Any, url: str) -> tuple[Ledger, list[Any]]:
    """Check what clients saw against the ledger, and the database with fsck; return the ledger and the calls."""
    ledger = read_database(url)
    findings, calls = check_history(run.lines(), ledger)
    assert findings == []
    assert run.followed[: run.head] == list(range(1, run.head + 1)), "a follower missed a record, or saw one twice"
    with store_at(url).inspect() as evidence:
        report = Fsck(evidence).run(())
    assert report.clean, report.faults
    return ledger, calls


def test_killed_servers_and_lost_commits_lose_nothing(tmp_path: Path, record_property: Any) -> None:
    servers, kills, workers, seconds = SIZE
    environment = {"REDKEY_STORE_KEY": b64encode(os.urandom(32)).decode()}
    with database() as url, Proxy(cluster().socket, seed=7) as proxy:
        began = time.monotonic()
        run = run_faults(
            tmp_path,
            servers,
            ["kill"] * kills,
            seed=29,
            workers=workers,
            every_seconds=seconds,
            trouble=cutting(proxy),
            arguments=("--store", proxy.url(url.partition("@/")[2].partition("?")[0])),
            environment=environment,
        )
        lasted = time.monotonic() - began
        ledger, calls = judged(run, url)
        claimed = Counter(
            wire["payload"]["claim_id"] for wire in ledger.wires.values() if wire["type"] == "task.claimed"
        )
        assert max(claimed.values()) == 1
        assert proxy.cuts["before"] + proxy.cuts["after"] > 0, "no COMMIT was cut"
        answered = [call for call in calls if call.status]
        record_property(
            "proven",
            f"PostgreSQL: {servers} servers, {kills} kills, {workers} claimants, {sum(proxy.cuts.values())} of "
            f"{proxy.commits:,} COMMITs cut ({proxy.cuts}), {lasted:.0f} s: {len(answered):,} answered calls, "
            f"{len(ledger.wires):,} records, {len(claimed):,} claims, 0 findings",
        )


def test_a_postgresql_that_crashes_and_begins_anew_loses_nothing(tmp_path: Path, record_property: Any) -> None:
    environment = {"REDKEY_STORE_KEY": b64encode(os.urandom(32)).decode()}
    crashing = Cluster(fsync="on", full_page_writes="on")

    def crash() -> None:
        crashing.crash()
        crashing.start()

    try:
        url = crashing.url(crashing.create_database())
        run = run_faults(
            tmp_path,
            2,
            [crash] * CRASHES,
            seed=31,
            workers=CRASH_WORKERS,
            calls=20,
            arguments=("--store", url),
            environment=environment,
        )
        ledger, calls = judged(run, url)
        record_property(
            "proven",
            f"PostgreSQL killed and restarted {CRASHES} times, 2 servers, {CRASH_WORKERS} claimants: "
            f"{sum(bool(call.status) for call in calls):,} answered calls, {len(ledger.wires):,} records, 0 findings",
        )
    finally:
        crashing.stop()
