"""Explanations of waiting tasks: every reason has one next step, and the step works."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register


def reasons(workspace: Workspace, task_id: str) -> list[tuple[str, str]]:
    explained: dict[str, Any] = workspace.admin.get(f"/tasks/{task_id}/explain").json
    assert explained["taskId"] == task_id
    return [(reason["code"], reason["next"]["action"]) for reason in explained["reasons"]]


def test_each_step_taken_leads_to_the_next_until_the_task_runs(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    workspace.admin.post("/roles", {"name": "Writer"})
    first = create_task(workspace.admin)
    task_id = create_task(
        workspace.admin, dependsOn=[first], requiredRoles=["writer"], requiredCapabilities=["web_search"]
    )
    assert reasons(workspace, task_id) == [("unmet_dependency", "complete_dependency")]
    worker = register(workspace.admin, "Worker")["agentId"]
    workspace.admin.post(f"/claims/{claim(workspace.admin, first, worker)['claimId']}/complete")
    assert reasons(workspace, task_id) == [("missing_role", "grant_role")]
    workspace.admin.post(f"/roles/writer/agents/{worker}")
    assert reasons(workspace, task_id) == [("missing_capability", "register_agent")]
    card = {"name": "Searcher", "url": "https://a.example/", "skills": [{"id": "web_search"}]}
    agent = workspace.admin.post("/agents/register-card", {"agentCard": card}).json["agentId"]
    workspace.admin.post(f"/roles/writer/agents/{agent}")
    assert reasons(workspace, task_id) == [("not_claimed", "claim")]
    workspace.admin.post(f"/agents/{agent}/deactivate")
    assert reasons(workspace, task_id) == [("no_agent_active", "activate_agent")]
    workspace.admin.patch(f"/agents/{agent}", {"active": True})
    workspace.admin.post(f"/agents/{agent}/heartbeat", {"capacity": 1, "inUse": 1})
    assert reasons(workspace, task_id) == [("all_saturated", "wait_or_add_agents")]
    workspace.admin.post(f"/agents/{agent}/heartbeat", {"capacity": 2, "inUse": 1})
    workspace.admin.patch("/queues/q", {"paused": True})
    assert reasons(workspace, task_id) == [("queue_paused", "resume_queue")]
    workspace.admin.patch("/queues/q", {"paused": False})
    assert claim(workspace.admin, task_id, agent)["status"] == "claimed"
    explained = workspace.admin.get(f"/tasks/{task_id}/explain").json
    assert (explained["running"], explained["reasons"]) == (True, [])


def test_ended_and_paused_entities_say_so(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = register(workspace.admin)["agentId"]
    tasks = [create_task(workspace.admin) for _ in range(5)]
    claims = [claim(workspace.admin, task_id, agent)["claimId"] for task_id in tasks[:4]]
    workspace.admin.post(f"/claims/{claims[0]}/complete")
    workspace.admin.post(f"/claims/{claims[1]}/fail", {"reason": "x"})
    workspace.admin.post(f"/claims/{claims[2]}/block", {"reason": "x", "blockerType": "auth"})
    body = {"reason": "x", "blockerType": "dependency", "dependsOn": [tasks[4]]}
    workspace.admin.post(f"/claims/{claims[3]}/block", body)
    assert [reasons(workspace, task_id)[0] for task_id in tasks[:4]] == [
        ("completed", "none"),
        ("failed", "retry"),
        ("blocked", "unblock"),
        ("blocked", "complete_dependency"),
    ]
    workspace.admin.post(f"/tasks/{tasks[4]}/cancel")
    assert reasons(workspace, tasks[4]) == [("cancelled", "retry")]
    assert workspace.admin.get("/tasks/task_nobody/explain").json["code"] == "task_not_found"
