"""Events by id, subject, type and time; pages without gaps or duplicates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.client import Client
from tests.harness.server import serving


@pytest.fixture
def story(workspace: Workspace) -> dict[str, Any]:
    """Two agents race for one task; one wins, completes, and another task waits."""
    admin = workspace.admin
    begin_queue(admin)
    begin_queue(admin, "queue_other")
    winner, loser = (register(admin, name)["agentId"] for name in ("Winner", "Loser"))
    task_id, elsewhere = create_task(admin), create_task(admin, "queue_other")
    won, lost = claim(admin, task_id, winner), claim(admin, task_id, loser)
    assert (won["status"], lost["status"]) == ("claimed", "missed")
    done = admin.post(f"/claims/{won['claimId']}/complete", {"summary": "done"})
    assert done.status == 200
    return {
        "admin": admin,
        "winner": winner,
        "loser": loser,
        "task": task_id,
        "elsewhere": elsewhere,
        "claim": won["claimId"],
        "missed": lost["eventId"],
        "completed": done.json["eventId"],
    }


def types(reply: Any) -> list[str]:
    assert reply.status == 200, reply.text
    return [event["type"] for event in reply.json["items"]]


def all_events(client: Client, query: str = "", limit: int = 500) -> list[dict[str, Any]]:
    """Return every event of a query, page by page."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = client.get(f"/ledger/query?limit={limit}{query}{after}").json
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"


def test_an_event_tells_what_happened_to_whom_and_by_whom(story: dict[str, Any]) -> None:
    event = story["admin"].get(f"/events/{story['missed']}").json
    assert event["type"] == "task.claim_missed"
    assert event["actor"] == {"type": "agent", "id": story["loser"]}
    assert event["data"]["taskId"] == story["task"]
    assert event["data"]["winningAgentId"] == story["winner"]
    assert "idem" not in event["data"]


def test_a_tasks_events_include_the_attempts_to_claim_it(story: dict[str, Any]) -> None:
    assert types(story["admin"].get(f"/tasks/{story['task']}/events")) == [
        "task.created",
        "task.available",
        "task.claim_attempted",
        "task.claimed",
        "task.claim_attempted",
        "task.claim_missed",
        "task.complete",
    ]


def test_a_claims_events_are_its_own(story: dict[str, Any]) -> None:
    found = types(story["admin"].get(f"/claims/{story['claim']}/events"))
    assert found == ["task.claim_attempted", "task.claimed", "task.complete"]


def test_an_agent_finds_the_claims_it_missed(story: dict[str, Any]) -> None:
    admin = story["admin"]
    found = admin.get(f"/agents/{story['loser']}/events?type=task.claim_missed").json["items"]
    assert [event["eventId"] for event in found] == [story["missed"]]
    assert types(admin.get(f"/agents/{story['winner']}/events?type=task.claim_missed")) == []
    newest = types(admin.get(f"/agents/{story['winner']}/events?order=desc&limit=1"))
    assert newest == ["task.complete"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_any_size_neither_miss_nor_repeat(story: dict[str, Any], limit: int, order: str) -> None:
    sequences = [event["sequence"] for event in all_events(story["admin"], f"&order={order}", limit)]
    expected = range(1, len(sequences) + 1)
    assert sequences == (list(expected) if order == "asc" else list(reversed(expected)))


def test_conditions_all_hold_at_once(story: dict[str, Any]) -> None:
    everything = all_events(story["admin"])
    cases: dict[str, Any] = {
        "&type=task.claimed": lambda e: e["type"] == "task.claimed",
        "&type=task.created,task.claimed": lambda e: e["type"] in ("task.created", "task.claimed"),
        f"&taskId={story['task']}": lambda e: e["data"].get("taskId") == story["task"],
        f"&claimId={story['claim']}": lambda e: e["data"].get("claimId") == story["claim"],
        f"&agentId={story['winner']}&type=task.claimed": lambda e: e["type"] == "task.claimed",
        f"&taskId={story['elsewhere']}&type=task.claimed": lambda _: False,
    }
    for query, right in cases.items():
        assert all_events(story["admin"], query) == [event for event in everything if right(event)], query


def test_a_queues_events_are_those_of_its_tasks(story: dict[str, Any]) -> None:
    found = all_events(story["admin"], "&queueId=queue_other")
    assert [event["type"] for event in found] == ["queue.created", "task.created", "task.available"]
    assert all_events(story["admin"], "&queueId=other") == found
    mine = all_events(story["admin"], "&queueId=queue_q&type=task.claimed")
    assert [event["data"]["taskId"] for event in mine] == [story["task"]]


def test_times_bound_what_is_found(story: dict[str, Any]) -> None:
    events = all_events(story["admin"])
    third, sixth = events[2]["timestamp"], events[5]["timestamp"]
    between = all_events(story["admin"], f"&from={third}&to={sixth}")
    assert [event["sequence"] for event in between] == [3, 4, 5]
    assert all_events(story["admin"], f"&from={third}&to={sixth}&order=desc") == between[::-1]
    assert all_events(story["admin"], "&to=2020-01-01") == []
    assert all_events(story["admin"], "&from=2999-01-01") == []
    assert len(all_events(story["admin"], "&from=2020-01-01&to=2999-01-01")) == len(events)


@pytest.mark.parametrize(
    "query",
    ["from=yesterday", "to=2026-13-01", "from=2026-02-30", "from=2026-05-07T18:15:00", "type=no.such", "order=up"],
)
def test_what_cannot_be_asked_is_refused_by_name(workspace: Workspace, query: str) -> None:
    reply = workspace.admin.get(f"/ledger/query?{query}")
    assert (reply.status, reply.json["errors"][0]["pointer"]) == (422, "/" + query.partition("=")[0])


@pytest.mark.parametrize(
    "path",
    [
        "/events/evt_00000000000000000000000000",
        "/events/wire_00000000000000000000000000",
        "/events/evt_00000000000000000000000000/receipt",
        "/receipts/evt_00000000000000000000000000",
        "/tasks/task_00000000000000000000000000/events",
        "/claims/clm_00000000000000000000000000/events",
        "/claims/queue_q/events",
        "/agents/agt_00000000000000000000000000/events",
    ],
)
def test_what_is_not_there_is_not_found(workspace: Workspace, path: str) -> None:
    begin_queue(workspace.admin)
    assert workspace.admin.get(path).status == 404


def test_a_query_that_would_look_through_too_much_ends_early_with_its_cursor(tmp_path: Any) -> None:
    with (
        serving(tmp_path, config="[limits]\nquery_records = 10\n") as server,
        server.client() as client,
    ):
        begin_queue(client)
        for _ in range(20):
            create_task(client)
        begin_queue(client, "queue_late")
        page = client.get("/ledger/query?type=queue.created").json
        assert (len(page["items"]), page["next"]) == (1, "10")
        assert [event["type"] for event in all_events(client, "&type=queue.created")] == ["queue.created"] * 2
