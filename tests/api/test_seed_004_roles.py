"""Changed and removed roles, definitions with a draft and a published version, and plans as they were sent."""

from __future__ import annotations

from typing import Any

from tests.api.test_seed_004 import PLAN, ROLE, ask, claim, register
from tests.harness.stranger import Stranger

__all__ = ["ask"]


def test_a_role_that_a_plan_made_gets_capabilities(ask: Stranger) -> None:
    ask.ok("POST", "/workflows", {"queueId": "queue_podcast", "plan": PLAN})
    assert ask.ok("GET", "/roles/role_researcher")["capabilities"] == []
    changed = ask.ok("PATCH", "/roles/role_researcher", {"capabilities": ROLE["capabilities"]})
    assert (changed["id"], changed["capabilities"]) == ("role_researcher", ROLE["capabilities"])
    assert changed["eventId"].startswith("evt_")
    words = changed["description"]
    renamed = ask.ok("PATCH", "/roles/researcher", {"name": "Finder"})
    assert (renamed["name"], renamed["description"], renamed["id"]) == ("Finder", words, "role_researcher")
    assert ask.ok("GET", "/roles/role_researcher")["name"] == "Finder"
    # What a role brings counts from the next claim on.
    agent_id = register(ask)
    ask.ok("POST", f"/roles/role_researcher/agents/{agent_id}")
    body = {"title": "Find", "requiredRoles": ["researcher"], "requiredCapabilities": ["web_search", "reading"]}
    task_id = ask.ok("POST", "/queues/podcast/tasks", body)["taskId"]
    refused = ask.ok("POST", f"/tasks/{task_id}/claim", {"agentId": agent_id})
    assert (refused["reason"], refused["detail"]) == ("missing_capability", "reading")
    ask.ok("PATCH", "/roles/role_researcher", {"capabilities": ["web_search", "reading"]})
    assert claim(ask, task_id, agent_id)["status"] == "claimed"
    for body, pointer in (({}, ""), ({"capabilities": ["!"]}, "/capabilities/0"), ({"id": "x"}, "/id")):
        wrong = ask("PATCH", "/roles/role_researcher", body)
        assert wrong.status == 422, wrong.text
        assert not pointer or wrong.json["errors"][0]["pointer"] == pointer
    assert ask("PATCH", "/roles/role_nobody", {"name": "X"}).json["code"] == "role_not_found"


def test_a_role_is_removed_from_all_agents_once_no_work_needs_it(ask: Stranger) -> None:
    ask.ok("POST", "/roles", ROLE)
    agent_id = register(ask)
    ask.ok("POST", f"/roles/role_researcher/agents/{agent_id}")
    body = {"title": "Find", "requiredRoles": ["researcher"]}
    task_id = ask.ok("POST", "/queues/podcast/tasks", body)["taskId"]
    refused = ask("DELETE", "/roles/role_researcher")
    assert (refused.status, refused.json["code"]) == (409, "role_in_use")
    assert task_id in refused.json["detail"]
    ask.ok("POST", f"/tasks/{task_id}/cancel")
    removed = ask.ok("DELETE", "/roles/role_researcher")
    assert (removed["id"], removed["status"], removed["agents"]) == ("role_researcher", "removed", [agent_id])
    assert ask("GET", "/roles/role_researcher").status == 404
    assert ask.ok("GET", "/roles")["items"] == []
    assert ask.ok("GET", f"/agents/{agent_id}")["roles"] == []
    assert ask("POST", "/queues/podcast/tasks", body).json["code"] == "unknown_role"
    assert ask("DELETE", "/roles/role_researcher").status == 404
    # One of the same id may come again, and nobody holds it.
    ask.ok("POST", "/roles", ROLE)
    assert ask.ok("GET", "/roles/role_researcher")["agents"] == []
    found = ask.ok("GET", "/ledger/query?type=role.removed")["items"]
    assert [one["subject"]["id"] for one in found] == ["role_researcher"]
    run = ask.ok("POST", "/workflows", {"queueId": "queue_podcast", "plan": PLAN})["workflowId"]
    needed = ask("DELETE", "/roles/role_writer")
    assert (needed.status, run in needed.json["detail"]) == (409, True)
    ask.ok("POST", f"/workflows/{run}/cancel")
    ask.ok("DELETE", "/roles/role_writer")


def test_any_json_gets_a_verdict(ask: Stranger) -> None:
    path = "/workflow-definitions/validate"
    assert ask.ok("POST", path, PLAN) == ask.ok("POST", path, {"plan": PLAN})
    assert ask.ok("POST", path, PLAN)["valid"] is True
    nothing: list[Any] = [{"plan": "do this project"}, "do this project", [], 5, {}, {"plan": None}, {"name": "x"}]
    for body in nothing:
        verdict = ask("POST", path, body)
        assert verdict.status == 200, (body, verdict.text)
        assert verdict.json["valid"] is False
        assert verdict.json["errors"]
    assert ask("POST", path, raw="{", headers={"content-type": "application/json"}).status == 400


def test_a_definition_shows_what_is_published_and_the_draft_apart(ask: Stranger) -> None:
    made = ask.ok("POST", "/workflow-definitions", {"plan": PLAN})["definitionId"]
    path = f"/workflow-definitions/{made}"
    fresh = ask.ok("GET", path)
    assert (fresh["status"], "published" in fresh, fresh["draft"]["plan"]) == ("draft", False, PLAN)
    ask.ok("POST", f"{path}/publish")
    assert "draft" not in ask.ok("GET", path)
    ask.ok("POST", f"{path}/versions", {})
    patched = ask.ok("PATCH", path, {"plan": {"policies": {"maxParallelTasks": 2}, "description": None}, "revision": 1})
    assert patched["revision"] == 2
    shown = ask.ok("GET", path)
    assert (shown["status"], shown["version"], shown["published"]) == ("published", 1, {"version": 1, "plan": PLAN})
    draft = shown["draft"]
    assert (draft["version"], draft["revision"]) == (2, 2)
    # A merge patch: what it does not name stays, and null takes away.
    policies = {**PLAN["policies"], "maxParallelTasks": 2}
    expected = {name: value for name, value in PLAN.items() if name != "description"} | {"policies": policies}
    assert draft["plan"] == expected
    assert ask("PATCH", path, {"plan": {"name": "x"}, "revision": 1}).json["code"] == "draft_changed"
