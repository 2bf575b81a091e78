"""Roles over HTTP: one role with several spellings, and eligibility only by grants."""

from __future__ import annotations

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, head, register

SEED = {
    "id": "role_researcher",
    "name": "Researcher",
    "description": "Finds source material and summarizes relevant findings",
    "capabilities": ["web_search", "source_review"],
}


def test_a_role_has_the_shape_of_the_seed(workspace: Workspace) -> None:
    reply = workspace.admin.post("/roles", SEED)
    assert reply.status == 201
    assert {name: reply.json[name] for name in SEED} == SEED
    shown = workspace.admin.get("/roles/role_researcher").json
    assert {name: shown[name] for name in SEED} == SEED
    assert shown["agents"] == []
    assert [role["id"] for role in workspace.admin.get("/roles").json["items"]] == ["role_researcher"]


@pytest.mark.parametrize("name", ["researcher", "role_researcher", "roles.researcher"])
def test_one_role_answers_to_all_its_names(workspace: Workspace, name: str) -> None:
    begin_queue(workspace.admin)
    assert workspace.admin.post("/roles", {"id": name, "name": "Researcher"}).json["id"] == "role_researcher"
    agent = register(workspace.admin)
    for spelled in ("researcher", "role_researcher", "roles.researcher"):
        assert workspace.admin.get(f"/roles/{spelled}").json["id"] == "role_researcher"
        granted = workspace.admin.post(f"/roles/{spelled}/agents/{agent['agentId']}").json
        assert (granted["roleId"], granted["status"]) == ("role_researcher", "granted")
        task_id = create_task(workspace.admin, requiredRoles=[spelled])
        assert workspace.admin.get(f"/tasks/{task_id}").json["requiredRoles"] == ["role_researcher"]
    assert workspace.admin.post("/roles", {"name": "Researcher"}).json["code"] == "role_exists"


def test_a_grant_makes_eligible_and_a_revocation_ends_it(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    workspace.admin.post("/roles", SEED)
    agent = register(workspace.admin, eligibleRoles=["researcher"])
    task_id = create_task(workspace.admin, requiredRoles=["researcher"], requiredCapabilities=["web_search"])
    rejected = claim(workspace.admin, task_id, agent["agentId"])
    assert (rejected["reason"], rejected["detail"]) == ("missing_role", "role_researcher")
    assert rejected["next"] == {"action": "ask_for_role", "queueId": "queue_q", "roleId": "role_researcher"}
    path = f"/roles/researcher/agents/{agent['agentId']}"
    assert "eventId" in workspace.admin.post(path).json
    before = head(workspace.admin)
    assert "eventId" not in workspace.admin.post(path).json
    assert head(workspace.admin) == before
    assert workspace.admin.get("/roles/researcher").json["agents"] == [agent["agentId"]]
    # The role brings its capabilities with it.
    assert claim(workspace.admin, task_id, agent["agentId"])["status"] == "claimed"
    assert workspace.admin.delete(path).json["status"] == "revoked"
    assert "eventId" not in workspace.admin.delete(path).json
    second = create_task(workspace.admin, requiredRoles=["researcher"])
    assert claim(workspace.admin, second, agent["agentId"])["reason"] == "missing_role"


def test_only_an_admin_creates_or_grants_roles(workspace: Workspace) -> None:
    workspace.admin.post("/roles", SEED)
    agent = register(workspace.admin)
    for scopes in (("agent",), ("produce",), ("runner",), ("read",)):
        caller = workspace.caller(*scopes, agent_id=agent["agentId"] if scopes == ("agent",) else None)
        assert caller.post("/roles", {"name": "Boss"}).status == 403
        assert caller.post(f"/roles/researcher/agents/{agent['agentId']}").status == 403
        assert caller.delete(f"/roles/researcher/agents/{agent['agentId']}").status == 403
        assert caller.get("/roles/researcher").status == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "R", "id": "研究"}, "/id"),
        ({"name": "R", "id": "a/b"}, "/id"),
        ({"name": "R", "id": "x" * 40}, "/id"),
        ({"name": "R", "capabilities": ["!!"]}, "/capabilities/0"),
        ({"name": "R", "capabilities": [f"c{number}" for number in range(9)]}, "/capabilities"),
        ({"name": "R", "admin": True}, "/admin"),
    ],
)
def test_a_bad_role_is_refused_with_its_place(workspace: Workspace, body: dict[str, object], pointer: str) -> None:
    reply = workspace.admin.post("/roles", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}


def test_unknown_roles_and_agents_are_not_found(workspace: Workspace) -> None:
    workspace.admin.post("/roles", SEED)
    agent = register(workspace.admin)
    assert workspace.admin.get("/roles/nobody").json["code"] == "role_not_found"
    assert workspace.admin.post(f"/roles/nobody/agents/{agent['agentId']}").json["code"] == "role_not_found"
    assert workspace.admin.post("/roles/researcher/agents/agt_nobody").json["code"] == "agent_not_found"
