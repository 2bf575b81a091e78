"""Usage, credits and prices: counted once, enforced when work starts, and correct after every change."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.client import Client
from tests.harness.server import Server


def reconcile(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "redkey", "usage", "reconcile", "--data", str(server.data), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def work(client: Client) -> dict[str, str]:
    """A task that one agent wins and another misses."""
    begin_queue(client)
    one, two = (register(client, name)["agentId"] for name in ("One", "Two"))
    task_id = create_task(client)
    won = claim(client, task_id, one)
    assert claim(client, task_id, two)["status"] == "missed"
    client.post(f"/claims/{won['claimId']}/complete", {})
    return {"one": one, "two": two}


def test_usage_counts_every_event_once(workspace: Workspace) -> None:
    agents = work(workspace.admin)
    events = workspace.admin.get("/ledger/query?limit=500").json["items"]
    usage = workspace.admin.get("/usage").json
    assert usage["total"]["events"] == len(events)
    assert (usage["total"]["claims"], usage["total"]["misses"], usage["total"]["rejected"]) == (1, 1, 0)
    assert [item["day"] for item in usage["items"]] == [events[0]["timestamp"][:10]]
    by_type = {item["type"]: item["events"] for item in workspace.admin.get("/usage?by=type").json["items"]}
    assert by_type == {
        kind: len([event for event in events if event["type"] == kind]) for kind in {e["type"] for e in events}
    }
    by_agent = {item["agentId"]: item for item in workspace.admin.get("/usage?by=agent").json["items"]}
    assert (by_agent[agents["one"]]["claims"], by_agent[agents["two"]]["misses"]) == (1, 1)


def test_days_bound_what_is_counted(workspace: Workspace) -> None:
    assert workspace.admin.get("/usage?to=2020-01-01").json["total"]["events"] == 0
    assert workspace.admin.get("/usage?from=2999-01-01").json["total"]["events"] == 0
    assert workspace.admin.get("/usage?from=2020-01-01&to=2999-01-01").json["total"]["events"] > 0
    refused = workspace.admin.get("/usage?from=today&to=2026-5-1")
    assert [one["pointer"] for one in refused.json["errors"]] == ["/from", "/to"]


def test_requests_cost_and_what_follows_from_them_does_not(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    before = admin.get("/billing/credits").json["used"]
    create_task(admin)
    assert admin.get("/billing/credits").json["used"] == before + 1
    kinds = {item["type"]: item for item in admin.get("/usage?by=type").json["items"]}
    assert (kinds["task.created"]["credits"], kinds["task.available"]["credits"]) == (1, 0)


def test_nothing_is_limited_before_the_first_grant(workspace: Workspace) -> None:
    credits = workspace.admin.get("/billing/credits").json
    assert (credits["granted"], credits["balance"]) == (0, None)
    assert credits["ledgerFees"] == {"currency": "USD", "amount": 0}


def test_an_exhausted_workspace_gets_no_new_work_and_finishes_what_runs(workspace: Workspace, operator: Client) -> None:
    admin = workspace.admin
    begin_queue(admin)
    agent_id = register(admin)["agentId"]
    held = claim(admin, create_task(admin), agent_id)["claimId"]
    used = admin.get("/billing/credits").json["used"]
    granted = operator.post("/billing/credits", {"workspaceId": workspace.workspace_id, "amount": used + 2})
    assert granted.status == 201
    assert admin.get("/billing/credits").json["balance"] == 1
    create_task(admin)
    refused = admin.post("/queues/queue_q/tasks", {"title": "one too many"})
    assert (refused.status, refused.json["code"]) == (402, "credits_exhausted")
    assert admin.post(f"/claims/{held}/complete", {}).json["status"] == "completed"
    operator.post("/billing/credits", {"workspaceId": workspace.workspace_id, "amount": 10})
    create_task(admin)


def test_prices_hold_from_their_place_on_and_the_meter_stays_right(workspace: Workspace, operator: Client) -> None:
    admin = workspace.admin
    begin_queue(admin)
    create_task(admin)
    before = admin.get("/billing/credits").json["used"]
    body = {"workspaceId": workspace.workspace_id, "prices": {"task.created": 7, "credits.priced": 0}}
    assert operator.post("/billing/prices", body).json["version"] == 1
    assert admin.get("/billing/credits").json["used"] == before
    create_task(admin)
    assert admin.get("/billing/credits").json["used"] == before + 7
    body["prices"] = {"task.created": 0, "credits.priced": 0}
    assert operator.post("/billing/prices", body).json["version"] == 2
    create_task(admin)
    assert admin.get("/billing/credits").json["used"] == before + 7
    assert reconcile(workspace.server).returncode == 0


@pytest.mark.parametrize(
    "body",
    [
        {"amount": 0},
        {"amount": -5},
        {"amount": 10**13},
        {"amount": 1.5},
        {"amount": "5"},
        {"amount": 5, "unit": "Not A Slug"},
        {},
    ],
)
def test_amounts_have_bounds(operator: Client, body: dict[str, Any]) -> None:
    assert operator.post("/billing/credits", body).status == 422


def test_prices_are_of_known_events(operator: Client) -> None:
    reply = operator.post("/billing/prices", {"prices": {"task.created": 1, "task.dreamt": 2}})
    assert (reply.status, reply.json["errors"][0]["pointer"]) == (422, "/prices/task.dreamt")


def test_only_an_operator_grants_and_a_missing_workspace_is_missing(workspace: Workspace, operator: Client) -> None:
    assert workspace.admin.post("/billing/prices", {"prices": {}}).status == 403
    missing = {"workspaceId": "wk_00000000000000000000000000", "amount": 5}
    assert operator.post("/billing/credits", missing).status == 404


def test_reconciliation_finds_nothing_while_the_server_runs(workspace: Workspace) -> None:
    work(workspace.admin)
    done = reconcile(workspace.server, "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    mine = next(one for one in told if one["workspaceId"] == workspace.workspace_id)
    assert (done.returncode, mine["differences"]) == (0, [])
    assert mine["records"] == workspace.admin.get("/usage").json["total"]["events"]


def test_reconciliation_names_what_differs(start: Callable[..., Server]) -> None:
    server = start()
    with server.client() as client:
        work(client)
    assert server.stop() == 0
    with sqlite3.connect(server.data / "redkey.db") as database:
        database.execute("UPDATE counter SET amount = amount + 1 WHERE name LIKE 'type/%/task.claimed/events'")
        database.execute("DELETE FROM counter WHERE name LIKE 'agent/%/misses'")
    database.close()
    done = reconcile(server)
    assert done.returncode == 1
    assert "2 differences" in done.stdout
    assert "task.claimed/events: the meter has 2, the ledger 1" in done.stdout
    assert "/misses: the meter has 0, the ledger 1" in done.stdout


def test_reconciling_what_is_not_there_is_a_wrong_use(tmp_path: Any) -> None:
    command = [sys.executable, "-m", "redkey", "usage", "reconcile", "--data", str(tmp_path / "none")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
