"""The examples of seed 004, sent exactly as in the seed.

Only ids that the seed makes up (wk_123, agt_123, wf_789) are replaced by those that the server gave.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.server import Server
from tests.harness.stranger import Stranger

PLAN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "examples/podcast/plan.json").read_text())
ROLE = {
    "id": "role_researcher",
    "name": "Researcher",
    "description": "Finds source material and summarizes relevant findings",
    "capabilities": ["web_search", "source_review"],
}
CARD = {
    "name": "Research Agent",
    "description": "Finds and summarizes source material",
    "url": "https://agent.example.com/a2a",
    "version": "1.0.0",
    "skills": [],
    "capabilities": {},
}
SIMPLE = {
    "title": "Research Piers Gorman",
    "requiredRoles": ["role_researcher"],
    "input": {"guestName": "Piers Gorman", "sourceHint": "TreviPay podcast planning doc"},
}


@pytest.fixture
def ask(server: Server) -> Stranger:
    """A person with the only key of a new workspace."""
    made = Stranger(server.url, server.key).ok("POST", "/workspaces", {})
    stranger = Stranger(server.url, made["apiKey"])
    stranger.ok("POST", "/queues", {"name": "podcast"})
    return stranger


def register(ask: Stranger, name: str = "Research Agent") -> str:
    (workspace,) = ask.ok("GET", "/workspaces")["items"]
    body = {"workspaceId": workspace["workspaceId"], "agentCard": CARD | {"name": name}}
    return str(ask.ok("POST", "/agents/register-card", body)["agentId"])


def claim(ask: Stranger, task_id: str, agent_id: str) -> Any:
    body = {"agentId": agent_id, "leaseSeconds": 600, "idempotencyKey": f"claim-{task_id}-{agent_id}-001"}
    return ask.ok("POST", f"/tasks/{task_id}/claim", body)


def open_tasks(ask: Stranger) -> dict[str, str]:
    """Return the available tasks of the queue: task id by plan id."""
    items = ask.ok("GET", "/queues/queue_podcast/tasks/available")["items"]
    return {one["planTaskId"]: one["taskId"] for one in items}


def test_a_simple_role_task_needs_no_plan(ask: Stranger) -> None:
    role = ask.ok("POST", "/roles", ROLE)
    assert {name: role[name] for name in ROLE} == ROLE
    winner, loser = register(ask), register(ask, "Second Agent")
    for agent_id in (winner, loser):
        ask.ok("POST", f"/roles/role_researcher/agents/{agent_id}")
    task_id = ask.ok("POST", "/queues/queue_podcast/tasks", SIMPLE)["taskId"]
    won = claim(ask, task_id, winner)
    assert sorted(won) == ["agentId", "claimId", "eventId", "leaseExpiresAt", "status", "taskId"]
    missed = claim(ask, task_id, loser)
    assert missed["next"] == {"action": "poll_available_tasks", "queueId": "queue_podcast"}
    assert {name: missed[name] for name in missed if name not in ("eventId", "next")} == {
        "status": "missed",
        "taskId": task_id,
        "agentId": loser,
        "reason": "claim_already_won",
        "winningClaimId": won["claimId"],
        "winningAgentId": winner,
    }
    assert ask.ok("POST", f"/claims/{won['claimId']}/heartbeat")["state"] == "held"
    assert ask.ok("POST", f"/claims/{won['claimId']}/complete", {})["status"] == "completed"
    (event,) = ask.ok("GET", f"/agents/{loser}/events?type=task.claim_missed")["items"]
    receipt = ask.ok("GET", f"/events/{event['eventId']}/receipt")
    assert {"eventId", "type", "sequence", "timestamp", "actor", "subject", "verification"} <= set(receipt)
    assert receipt["actor"] == {"type": "agent", "id": loser}


def test_the_plan_of_the_seed_ends_by_the_calls_of_the_seed(ask: Stranger) -> None:
    workflow_id, gate_id = run_the_plan(ask)
    state = ask.ok("GET", f"/workflows/{workflow_id}/state")
    assert [task["state"] for task in state["tasks"]] == ["completed"] * 3 + ["awaiting_approval"]
    # The workspace was created by an operator: here who did the work does not approve it.
    refused = ask("POST", f"/gates/{gate_id}/approve", {})
    assert (refused.status, refused.json["code"]) == (403, "own_gate")
    (workspace,) = ask.ok("GET", "/workspaces")["items"]
    policy = f"/workspaces/{workspace['workspaceId']}/policy"
    assert f"PATCH {policy}" in refused.json["detail"]
    assert "another admin key" in refused.json["detail"]
    assert ask.ok("GET", policy)["selfApproval"] is False
    changed = ask.ok("PATCH", policy, {"selfApproval": True})
    assert (changed["selfApproval"], changed["eventId"][:4]) == (True, "evt_")
    # A gate keeps the policy that it opened under.
    assert ask("POST", f"/gates/{gate_id}/approve", {}).status == 403
    key = ask.ok("POST", f"/workspaces/{workspace['workspaceId']}/api-keys", {"scopes": ["admin"]})["apiKey"]
    Stranger(ask.url, key).ok("POST", f"/gates/{gate_id}/approve", {})
    assert ask.ok("GET", f"/workflows/{workflow_id}")["status"] == "completed"
    assert ask.ok("GET", f"/gates/{gate_id}").get("selfApproved") is None


def test_one_person_with_the_one_key_of_a_fresh_server_passes_the_gate(start: Callable[..., Server]) -> None:
    server = start()
    ask = Stranger(server.url, server.key)
    ask.ok("POST", "/queues", {"name": "podcast"})
    workflow_id, gate_id = run_the_plan(ask)
    assert ask.ok("GET", f"/gates/{gate_id}")["selfApproval"] is True
    ask.ok("POST", f"/gates/{gate_id}/approve", {"note": "Read it twice."})
    gate = ask.ok("GET", f"/gates/{gate_id}")
    assert (gate["state"], gate["selfApproved"]) == ("approved", True)
    assert ask.ok("GET", f"/workflows/{workflow_id}")["status"] == "completed"
    sequence = ask.ok("GET", f"/workflows/{workflow_id}/state")["sequence"]
    assert ask.ok("GET", f"/workflows/{workflow_id}/state?at={sequence}")["status"] == "completed"
    (opened,) = ask.ok("GET", "/ledger/query?type=gate.opened")["items"]
    assert opened["data"]["selfApproval"] is True
    # An agent with a key of its own never decides on its own work.
    policy = f"/workspaces/{server.workspace_id}/policy"
    assert ask.ok("GET", policy)["selfApproval"] is True
    registered = {"agentCard": CARD | {"name": "Own key"}, "issueKey": True}
    agent = ask.ok("POST", "/agents/register-card", registered)
    worker = Stranger(server.url, agent["apiKey"])
    gated = {"title": "Write", "approvalGate": {"approvers": [agent["agentId"]]}}
    task_id = ask.ok("POST", "/queues/queue_podcast/tasks", gated)["taskId"]
    ended = worker.ok("POST", f"/claims/{claim(worker, task_id, agent['agentId'])['claimId']}/complete", {})
    assert worker("POST", f"/gates/{ended['gateId']}/approve", {}).json["code"] == "own_gate"
    ask.ok("PATCH", policy, {"selfApproval": False})
    assert ask.ok("GET", policy)["selfApproval"] is False
    assert "eventId" not in {k: v for k, v in ask.ok("PATCH", policy, {"selfApproval": False}).items() if v}


def run_the_plan(ask: Stranger) -> tuple[str, str]:
    """Run the plan of the seed up to its gate; return the ids of the run and the gate.

    No endpoint is used that the seed does not list.
    """
    assert ask.ok("POST", "/workflow-definitions/validate", {"plan": PLAN})["valid"] is True
    empty = {"version": "1.0", "name": "podcast-production", "tasks": []}
    assert ask("POST", "/workflows", {"queueId": "queue_podcast", "plan": empty}).status == 422
    started = ask.ok("POST", "/workflows", {"queueId": "queue_podcast", "plan": PLAN})
    assert (started["status"], started["availableTasks"]) == ("running", ["guest_intake"])
    agent_id = register(ask)
    ask.ok("POST", "/roles", ROLE | {"id": "role_finder", "name": "Finder"})
    for role in (*PLAN["roles"], "finder"):
        ask.ok("POST", f"/roles/role_{role}/agents/{agent_id}")
    outputs = {
        "guest_intake": {"output": {"guest_brief": "Piers runs marketing."}},
        "guest_research": {"output": {"research_packet": {"facts": ["one", "two", "three", "four", "five"]}}},
        "draft_script": {"artifacts": [{"name": "script_draft", "content": "# Intro", "mediaType": "text/markdown"}]},
        "review_script": {"artifacts": [{"name": "review_notes", "content": {"ready": True}}], "summary": "Ready."},
    }
    seen: dict[str, Any] = {}
    for key, ending in outputs.items():
        task_id = open_tasks(ask)[key]
        seen[key] = claim(ask, task_id, agent_id)
        shown = ask.ok("GET", f"/tasks/{task_id}")
        for named in ("upstream", "results"):
            assert shown.get(named) == seen[key].get(named), named
        ended = ask.ok("POST", f"/claims/{seen[key]['claimId']}/complete", ending)
    assert "upstream" not in seen["guest_intake"]
    (brief,) = seen["guest_research"]["upstream"]
    assert (brief["name"], brief["planTaskId"]) == ("guest_brief", "guest_intake")
    assert ask("GET", f"/content/{brief['sha256']}").text == "Piers runs marketing."
    (result,) = seen["guest_research"]["results"]
    assert (result["planTaskId"], result["output"]) == ("guest_intake", outputs["guest_intake"]["output"])
    packet = {one["name"]: one for one in seen["draft_script"]["upstream"]}["research_packet"]
    assert ask("GET", f"/content/{packet['sha256']}").json == outputs["guest_research"]["output"]["research_packet"]
    assert [one["name"] for one in seen["review_script"]["upstream"]] == ["script_draft"]
    return started["workflowId"], ended["gateId"]


def test_a_refused_completion_says_what_helps_and_records_nothing(ask: Stranger) -> None:
    agent_id = register(ask)
    task = {"title": "Write", "outputs": ["draft", "notes"]}
    task_id = ask.ok("POST", "/queues/queue_podcast/tasks", task)["taskId"]
    claim_id = claim(ask, task_id, agent_id)["claimId"]
    before = len(ask.ok("GET", f"/tasks/{task_id}/events")["items"])
    for ending in ({}, {"output": {"draft": "x"}}, {"output": "x"}, {"artifacts": [{"name": "notes", "content": "x"}]}):
        refused = ask("POST", f"/claims/{claim_id}/complete", ending)
        assert (refused.status, refused.json["code"]) == (422, "missing_artifact"), ending
        assert f"POST /claims/{claim_id}/artifacts" in refused.json["detail"]
        assert "`output`" in refused.json["advice"]
    twice = [{"name": "draft", "content": "x", "uri": "https://example.com/x"}]
    wrong = ask("POST", f"/claims/{claim_id}/complete", {"artifacts": twice})
    assert wrong.json["errors"][0]["pointer"] == "/artifacts/0/content"
    assert len(ask.ok("GET", f"/tasks/{task_id}/events")["items"]) == before
    done = {"output": {"draft": "words", "notes": ["a"]}, "artifacts": [{"name": "extra", "content": "more"}]}
    key = {"idempotency-key": "end-1"}
    first = ask("POST", f"/claims/{claim_id}/complete", done, headers=key)
    assert first.status == 200, first.text
    assert ask("POST", f"/claims/{claim_id}/complete", done, headers=key).body == first.body
    shown = ask.ok("GET", f"/tasks/{task_id}")
    assert sorted(one["name"] for one in shown["artifacts"]) == ["draft", "extra", "notes"]
    assert shown["dependsOn"] == []


def test_results_reach_simple_tasks_too(ask: Stranger) -> None:
    agent_id = register(ask)
    first = ask.ok("POST", "/queues/queue_podcast/tasks", {"title": "Find"})["taskId"]
    body = {"title": "Use", "dependsOn": [first]}
    second = ask.ok("POST", "/queues/queue_podcast/tasks", body)["taskId"]
    assert "results" not in ask.ok("GET", f"/tasks/{second}")
    ask.ok("POST", f"/claims/{claim(ask, first, agent_id)['claimId']}/complete", {"output": {"facts": 5}})
    won = claim(ask, second, agent_id)
    assert won["results"] == [{"taskId": first, "output": {"facts": 5}}]
    assert claim(ask, second, agent_id) == won
