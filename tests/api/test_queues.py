"""Queues over HTTP: created, changed, listed; and claims of their next task, at once or after a wait."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, gauge, head, register, until


def ids(page: dict[str, Any]) -> list[str]:
    return [item["taskId"] for item in page["items"]]


def test_a_queue_is_created_with_defaults_and_its_id_follows_from_its_name(workspace: Workspace) -> None:
    reply = workspace.admin.post("/queues", {"name": "Podcast Production"})
    assert reply.status == 201
    assert reply.json["queueId"] == "queue_podcast_production"
    shown = workspace.admin.get("/queues/podcast_production").json
    assert shown["name"] == "Podcast Production"
    assert {name: shown[name] for name in ("leaseSeconds", "maxAttempts", "priority", "paused", "allowSecrets")} == {
        "leaseSeconds": 900,
        "maxAttempts": 1,
        "priority": "normal",
        "paused": False,
        "allowSecrets": False,
    }
    for spelled in ("podcast_production", "queue_podcast_production", "queues.podcast_production"):
        assert workspace.admin.get(f"/queues/{spelled}").json["queueId"] == "queue_podcast_production"
    assert workspace.admin.post("/queues", {"name": "podcast production"}).json["code"] == "queue_exists"


def test_settings_are_changed_one_by_one(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    changed = workspace.admin.patch("/queues/q", {"leaseSeconds": 60, "maxLeaseLosses": 3, "maxLiveClaims": 2}).json
    assert (changed["leaseSeconds"], changed["maxLeaseLosses"], changed["maxLiveClaims"]) == (60, 3, 2)
    changed = workspace.admin.patch("/queues/q", {"name": "Renamed", "description": "For tests"}).json
    assert (changed["name"], changed["description"], changed["leaseSeconds"]) == ("Renamed", "For tests", 60)
    assert workspace.admin.patch("/queues/q", {"description": ""}).json.get("description", "") == ""
    assert workspace.admin.patch("/queues/q", {}).json["code"] == "nothing_to_change"
    assert workspace.admin.patch("/queues/nobody", {"paused": True}).status == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": "Q", "id": "a b"}, "/id"),
        ({"name": "Q", "leaseSeconds": 4}, "/leaseSeconds"),
        ({"name": "Q", "leaseSeconds": 86401}, "/leaseSeconds"),
        ({"name": "Q", "maxAttempts": 0}, "/maxAttempts"),
        ({"name": "Q", "priority": "first"}, "/priority"),
        ({"name": "Q", "paused": "yes"}, "/paused"),
        ({"name": "Q", "workspaceId": "wk_1"}, "/workspaceId"),
    ],
)
def test_a_bad_queue_is_refused_with_its_place(workspace: Workspace, body: dict[str, Any], pointer: str) -> None:
    reply = workspace.admin.post("/queues", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}


def test_producers_make_queues_and_agents_do_not(workspace: Workspace) -> None:
    assert workspace.caller("produce").post("/queues", {"name": "One"}).status == 201
    agent = register(workspace.admin)
    for caller in (workspace.caller("agent", agent_id=agent["agentId"]), workspace.caller("read")):
        assert caller.post("/queues", {"name": "Two"}).status == 403
        assert caller.patch("/queues/one", {"paused": True}).status == 403
        assert [queue["queueId"] for queue in caller.get("/queues").json["items"]] == ["queue_one"]


def test_tasks_are_listed_by_state_priority_and_age_in_pages(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    made = {
        (priority, number): create_task(workspace.admin, priority=priority, title=f"{priority} {number}")
        for number in range(2)
        for priority in ("low", "normal", "urgent", "high")
    }
    expected = [made[priority, number] for priority in ("urgent", "high", "normal", "low") for number in range(2)]
    seen: list[str] = []
    after = ""
    while True:
        page = workspace.admin.get(f"/queues/q/tasks?state=available&limit=3&after={after}").json
        seen += ids(page)
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == expected
    assert ids(workspace.admin.get("/queues/q/tasks/available?limit=500").json) == expected
    assert workspace.admin.get("/queues/q/tasks?state=available").json["items"][0]["title"] == "urgent 0"
    assert ids(workspace.admin.get("/queues/q/tasks?state=blocked").json) == []
    for bad in ("", "?state=lost", "?state=available&limit=0", "?state=available&limit=501", "?state=available&x=1"):
        assert workspace.admin.get(f"/queues/q/tasks{bad}").status == 422
    assert workspace.admin.get("/queues/nobody/tasks?state=available").json["code"] == "queue_not_found"


def test_an_agent_sees_what_it_may_claim(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    for name in ("Writer", "Reader"):
        workspace.admin.post("/roles", {"name": name, "capabilities": [name.lower()]})
    agent = register(workspace.admin)["agentId"]
    workspace.admin.post(f"/roles/writer/agents/{agent}")
    free = create_task(workspace.admin)
    writing = create_task(workspace.admin, requiredRoles=["writer"])
    able = create_task(workspace.admin, requiredCapabilities=["writer"])
    create_task(workspace.admin, requiredRoles=["reader"])
    create_task(workspace.admin, requiredRoles=["writer", "reader"])
    create_task(workspace.admin, requiredCapabilities=["reader"])
    waiting = create_task(workspace.admin, dependsOn=[free])
    path = f"/queues/q/tasks/available?agentId={agent}"
    assert ids(workspace.admin.get(path).json) == [free, writing, able]
    assert waiting not in ids(workspace.admin.get("/queues/q/tasks/available").json)
    claim(workspace.admin, writing, agent)
    assert ids(workspace.admin.get(path).json) == [free, able]
    workspace.admin.patch("/queues/q", {"paused": True})
    assert ids(workspace.admin.get(path).json) == []
    workspace.admin.patch("/queues/q", {"paused": False})
    workspace.admin.post(f"/agents/{agent}/deactivate")
    assert ids(workspace.admin.get(path).json) == []
    assert workspace.admin.get("/queues/q/tasks/available?agentId=agt_nobody").json["code"] == "agent_not_found"


def test_waiting_for_work_ends_when_some_comes_that_fits(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    workspace.admin.post("/roles", {"name": "Writer"})
    agent = register(workspace.admin)["agentId"]
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(workspace.admin.get, f"/queues/q/tasks/available?wait=30&agentId={agent}")
        until(lambda: gauge(workspace.server.url, "redkey_subscribers") >= 1)
        create_task(workspace.admin, requiredRoles=["writer"])
        fitting = create_task(workspace.admin)
        assert ids(asked.result(20).json) == [fitting]


def test_waiting_for_work_ends_with_nothing_when_the_time_is_over(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    begun = time.monotonic()
    assert ids(workspace.admin.get("/queues/q/tasks/available?wait=0.5").json) == []
    # The timers of a server count whole milliseconds.
    assert 0.49 <= time.monotonic() - begun < 30
    assert workspace.admin.get("/queues/q/tasks/available?wait=61").status == 422


def test_reading_writes_nothing(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    create_task(workspace.admin)
    before = head(workspace.admin)
    for path in ("/queues", "/queues/q", "/queues/q/tasks?state=available", "/queues/q/tasks/available"):
        assert workspace.admin.get(path).status == 200
    assert head(workspace.admin) == before
