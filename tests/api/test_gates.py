"""Gates over HTTP: completed work waits for another person, and comes back with a note when it is rejected."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, head, register


def finish(workspace: Workspace, task_id: str, agent_id: str, caller: Any = None) -> dict[str, Any]:
    client = caller or workspace.caller("agent", agent_id=agent_id)
    claim_id = claim(client, task_id, agent_id)["claimId"]
    ended: dict[str, Any] = client.post(f"/claims/{claim_id}/complete").json
    return ended


def test_an_approved_gate_opens_dependent_tasks(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = str(register(workspace.admin)["agentId"])
    task_id = create_task(workspace.admin, approvalGate=True)
    waiting = create_task(workspace.admin, dependsOn=[task_id])
    gate_id = finish(workspace, task_id, agent)["gateId"]
    (gate,) = workspace.admin.get("/gates").json["items"]
    assert (gate["gateId"], gate["taskId"], gate["agentId"], gate["state"]) == (gate_id, task_id, agent, "open")
    assert workspace.admin.get(f"/tasks/{waiting}").json["state"] == "created"
    reply = workspace.admin.post(f"/gates/{gate_id}/approve", {"note": "Good"}, key="a1")
    assert reply.json["status"] == "approved"
    assert workspace.admin.post(f"/gates/{gate_id}/approve", {"note": "Good"}, key="a1").content == reply.content
    assert workspace.admin.get(f"/tasks/{waiting}").json["state"] == "available"
    assert workspace.admin.get("/gates").json["items"] == []
    (closed,) = workspace.admin.get("/gates?state=closed").json["items"]
    assert (closed["state"], closed["note"]) == ("approved", "Good")
    again = workspace.admin.post(f"/gates/{gate_id}/reject", {"note": "No"})
    assert (again.status, again.json["code"]) == (409, "gate_closed")


def test_a_rejection_is_a_new_attempt_that_carries_the_note(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = str(register(workspace.admin)["agentId"])
    task_id = create_task(workspace.admin, approvalGate=True, retry={"maxAttempts": 2})
    gate_id = finish(workspace, task_id, agent)["gateId"]
    rejected = workspace.admin.post(f"/gates/{gate_id}/reject", {"note": "Ask about the book"}).json
    assert (rejected["status"], rejected["taskId"]) == ("rejected", task_id)
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    assert (shown["state"], shown["attempt"], shown["note"]) == ("available", 2, "Ask about the book")
    last = finish(workspace, task_id, agent)["gateId"]
    assert workspace.admin.post(f"/gates/{last}/reject", {"note": "Still not"}).status == 200
    # The attempts are used up.
    assert workspace.admin.get(f"/tasks/{task_id}").json["attempt"] == 2


def test_own_work_and_work_of_other_workspaces_cannot_be_approved(workspace: Workspace, other: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = str(register(workspace.admin)["agentId"])
    worker = workspace.caller("agent", agent_id=agent)
    gate_id = finish(workspace, create_task(workspace.admin, approvalGate=True), agent, worker)["gateId"]
    before = head(workspace.admin)
    refused = worker.post(f"/gates/{gate_id}/approve")
    assert (refused.status, refused.json["code"]) == (403, "own_gate")
    foreign = other.admin.post(f"/gates/{gate_id}/approve")
    assert foreign.status == 404
    assert foreign.content == other.admin.post("/gates/gate_01JTMX9A2B3C4D5E6F7G8H9JKM/approve").content
    assert other.admin.get("/gates").json["items"] == []
    assert head(workspace.admin) == before
    # A key that completed the work itself may not approve it either, admin or not.
    own = finish(workspace, create_task(workspace.admin, approvalGate=True), agent, workspace.admin)["gateId"]
    assert workspace.admin.post(f"/gates/{own}/approve").json["code"] == "own_gate"


def test_those_a_gate_lists_may_approve_beside_admins(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    worker, host = (str(register(workspace.admin, name)["agentId"]) for name in ("Worker", "Host"))
    workspace.admin.post("/roles", {"name": "Host"})
    workspace.admin.post(f"/roles/host/agents/{host}")
    task_id = create_task(workspace.admin, approvalGate={"approvers": ["roles.host"], "deadlineSeconds": 3600})
    gate_id = finish(workspace, task_id, worker)["gateId"]
    refused = workspace.caller("produce").post(f"/gates/{gate_id}/approve")
    assert (refused.status, refused.json["code"]) == (403, "not_an_approver")
    assert workspace.caller("agent", agent_id=host).post(f"/gates/{gate_id}/approve").json["status"] == "approved"
