"""Work in `/metrics`: waiting tasks, by queue and role for operators, and counts of events."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest

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
        text = httpx2.get(f"{server.url}/metrics", timeout=60).text
        with RedKey(server.url, rk.workspaces.create(name="Other").api_key) as admin:
            of_admin = admin.server.metrics()
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
    assert not re.search("jobs|analyst", text + of_admin)
    assert figures(of_admin)["redkey_queue_tasks"] == 2
    assert "for operators by queue and role" in text


@pytest.mark.parametrize("is_open", ["true", "false"])
def test_operators_get_queues_and_roles_by_name(is_open: str, tmp_path: Path) -> None:
    with serving(tmp_path, config=f"open_metrics = {is_open}\n") as server, RedKey(server.url, server.key) as rk:
        work(rk)
        found = figures(rk.server.metrics())
    assert found['redkey_queue_tasks{queue="queue_jobs",role="role_analyst"}'] == 2


def test_a_key_that_is_not_valid_gets_no_figures(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.client("rk_none_none") as client:
        refused = client.get("/metrics")
    assert (refused.status, refused.json["code"]) == (401, "invalid_token")
