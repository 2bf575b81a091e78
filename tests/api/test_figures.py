"""What `/metrics` says of the work: what waits, by queue and role where strangers cannot read it, and what happened."""

from __future__ import annotations

import re
from pathlib import Path

from redkey.client import RedKey
from tests.harness.server import serving


def figures(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(number) for name, _, number in lines}


def work(rk: RedKey) -> None:
    """Three tasks: one is done by ada and missed by bob, two wait."""
    rk.queues.create("jobs")
    rk.roles.create("analyst")
    ada, bob = (rk.agents.register(card={"name": name, "version": "1"}).agent_id for name in ("ada", "bob"))
    first = rk.tasks.create("jobs", title="A").task_id
    claimed = rk.tasks.claim(first, ada)
    assert claimed.status == "claimed"
    assert rk.tasks.claim(first, bob).status == "missed"
    rk.claims.complete(claimed.claim_id)
    for _ in range(2):
        rk.tasks.create("jobs", title="B", required_roles=["analyst"])


def test_open_figures_are_sums_without_names(tmp_path: Path) -> None:
    with serving(tmp_path) as server, RedKey(server.url, server.key) as rk:
        work(rk)
        text = rk.server.metrics()
    found = figures(text)
    assert found["redkey_queue_tasks"] == 2
    assert 0 <= found["redkey_queue_oldest_seconds"] < 600
    assert found['redkey_tasks{state="available"}'] == 2
    assert found['redkey_tasks{state="completed"}'] == 1
    assert found['redkey_claims_total{outcome="won"}'] == 1
    assert found['redkey_claims_total{outcome="missed"}'] == 1
    assert found['redkey_tasks_ended_total{how="completed"}'] == 1
    assert found['redkey_leases_ended_total{how="expired"}'] == 0
    assert found["redkey_workers"] == 2
    assert found["redkey_unit_records_count"] == found["redkey_commits_total"]
    assert found["redkey_unit_records_sum"] == found["redkey_records_total"]
    assert found["redkey_commit_seconds_count"] > 0
    assert not re.search("jobs|analyst", text)


def test_closed_figures_name_queues_and_roles(tmp_path: Path) -> None:
    with serving(tmp_path, config="open_metrics = false\n") as server, RedKey(server.url, server.key) as rk:
        work(rk)
        found = figures(rk.server.metrics())
    assert found['redkey_queue_tasks{queue="queue_jobs",role="role_analyst"}'] == 2
