"""A state is called `state` in every view, beside the earlier name `status`, and filters know it."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue
from tests.harness.client import Client
from tests.harness.runs import plan_of, step

PLAN = plan_of(step("a", outputs=["text"]))


def shown(client: Client, path: str) -> dict[str, Any]:
    reply = client.get(path)
    assert reply.status == 200, reply.text
    found: dict[str, Any] = reply.json
    return found


def ids(client: Client, path: str) -> list[str]:
    return [one["id"] for one in shown(client, path)["items"]]


def has_state(said: dict[str, Any], state: str) -> dict[str, Any]:
    assert (said["state"], said["status"]) == (state, state), said
    return said


def test_runs_say_their_state(workspace: Workspace) -> None:
    client = workspace.admin
    begin_queue(client, "podcast")
    started = client.post("/workflows", {"queueId": "podcast", "plan": PLAN}).json
    run = has_state(started, "running")["id"]
    assert run == started["workflowId"]
    for act, state in (("pause", "paused"), ("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert has_state(client.post(f"/workflows/{run}/{act}").json, state)["id"] == run
        for view in (f"/workflows/{run}", f"/workflows/{run}/state", f"/workflows/{run}/graph"):
            assert has_state(shown(client, view), state)["id"] == run
        [listed] = shown(client, f"/workflows?state={state}")["items"]
        has_state(listed, state)


def test_projects_and_phases_say_their_state_and_take_it(workspace: Workspace) -> None:
    client = workspace.admin
    for name in ("one", "two", "three"):
        assert has_state(client.post("/projects", {"name": name}).json, "active")["id"] == name
    has_state(client.post("/projects/one/phases", {"name": "first"}).json, "active")
    for path in ("/projects/two", "/phases/first"):
        has_state(client.patch(path, {"state": "on_hold"}).json, "on_hold")
        has_state(shown(client, path), "on_hold")
    [phase] = shown(client, "/projects/one")["phases"]
    has_state(phase, "on_hold")
    assert ids(client, "/projects?state=on_hold") == ["two"]
    assert ids(client, "/projects?state=active") == ["one", "three"]
    has_state(client.patch("/projects/two", {"status": "active"}).json, "active")
    has_state(client.patch("/projects/two", {"status": "on_hold", "state": "on_hold"}).json, "on_hold")
    refused = client.patch("/projects/two", {"status": "active", "state": "on_hold"})
    assert (refused.status, refused.json["errors"][0]["code"]) == (422, "state_contradictory")
    has_state(client.post("/projects/three/complete").json, "completed")
    assert ids(client, "/projects?state=completed") == ["three"]
    assert ids(client, "/projects") == ["one", "two", "three"]
    assert client.get("/projects?state=gone").status == 422


def test_a_page_of_a_filtered_list_leads_to_the_next(workspace: Workspace) -> None:
    client = workspace.admin
    for name in ("one", "two", "three"):
        client.post("/projects", {"name": name})
    client.patch("/projects/three", {"state": "on_hold"})
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = shown(client, f"/projects?state=on_hold&limit=1&after={after}")
        found, after = found + [one["id"] for one in page["items"]], page["next"]
    assert found == ["three"]


def test_definitions_say_their_state(workspace: Workspace) -> None:
    client = workspace.admin
    first, second = (client.post("/workflow-definitions", {"plan": PLAN}).json for _ in range(2))
    key, other = has_state(first, "draft")["id"], second["id"]
    has_state(client.post(f"/workflow-definitions/{key}/publish").json, "published")
    has_state(shown(client, f"/workflow-definitions/{key}"), "published")
    assert ids(client, "/workflow-definitions?state=published") == [key]
    assert ids(client, "/workflow-definitions?state=draft") == [other]
    assert sorted(ids(client, "/workflow-definitions")) == sorted([key, other])


def test_acts_on_tasks_say_the_state(workspace: Workspace) -> None:
    client = workspace.admin
    queue = begin_queue(client)
    created = has_state(client.post(f"/queues/{queue}/tasks", {"title": "Research"}).json, "available")
    assert created["id"] == created["taskId"]
    has_state(client.post(f"/tasks/{created['id']}/cancel").json, "cancelled")
    has_state(client.post(f"/tasks/{created['id']}/retry").json, "available")
