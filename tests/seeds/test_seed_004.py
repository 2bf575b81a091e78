"""Seed 004: its literal documents are accepted, and replies have exactly the keys that it prints."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from redkey.plans.validate import validate
from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.runs import plan_of, step
from tests.seeds.literal import example

PLAN = example("004-plan")
# Words that only whoever runs Hedera may meet.
INTERNAL = ("hedera", "topicid", "topic_id", "operatoraccount", "transactionid", "consensus", "mirrornode")


def _researcher(workspace: Workspace) -> str:
    """Return an active agent that has the role of the seed."""
    workspace.admin.post("/roles", example("004-role"))
    agent_id = str(register(workspace.admin)["agentId"])
    workspace.admin.post(f"/roles/role_researcher/agents/{agent_id}")
    return agent_id


def test_the_literal_role_is_created_and_shown(workspace: Workspace) -> None:
    literal = example("004-role")
    assert workspace.admin.post("/roles", literal).status == 201
    shown = workspace.admin.get("/roles/role_researcher").json
    assert {name: shown[name] for name in literal} == literal


def test_the_literal_card_is_registered(workspace: Workspace) -> None:
    body = {**example("004-register-inline"), "workspaceId": workspace.workspace_id}
    reply = workspace.admin.post("/agents/register-card", body)
    assert reply.status == 201
    assert (reply.json["name"], reply.json["endpoint"]) == ("Research Agent", "https://agent.example.com/a2a")
    url = {**example("004-register-by-url"), "workspaceId": workspace.workspace_id}
    assert url.keys() == {"workspaceId", "agentCardUrl"}


def test_the_literal_simple_task_is_one_available_task(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    agent_id = _researcher(workspace)
    reply = workspace.admin.post("/queues/queue_podcast/tasks", example("004-simple-task"))
    assert (reply.status, reply.json["status"]) == (201, "available")
    task_id = reply.json["taskId"]
    listed = workspace.admin.get("/queues/queue_podcast/tasks/available").json["items"]
    assert [task["taskId"] for task in listed] == [task_id]
    assert workspace.admin.get(f"/tasks/{task_id}").json["input"] == example("004-simple-task")["input"]
    assert claim(workspace.admin, task_id, agent_id)["status"] == "claimed"
    assert workspace.admin.get("/workflows").json["items"] == []


def test_the_literal_task_claim_and_replies_have_the_keys_of_the_seed(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    agent_id = _researcher(workspace)
    started = workspace.admin.post("/workflows", {"queueId": "podcast", "plan": plan_of(step("a"))}).json
    body = {**example("004-task"), "workflowId": started["workflowId"]}
    reply = workspace.admin.post("/queues/queue_podcast/tasks", body)
    assert reply.status == 201, reply.text
    task_id = reply.json["taskId"]
    won = workspace.admin.post(f"/tasks/{task_id}/claim", {**example("004-claim"), "agentId": agent_id}).json
    assert won.keys() == example("004-claimed").keys()
    other = str(register(workspace.admin, "Second")["agentId"])
    workspace.admin.post(f"/roles/role_researcher/agents/{other}")
    again = {**example("004-claim"), "agentId": other, "idempotencyKey": "claim-002"}
    missed = workspace.admin.post(f"/tasks/{task_id}/claim", again).json
    literal = example("004-missed")
    assert missed.keys() == literal.keys()
    same = ("status", "reason", "next")
    assert {name: missed[name] for name in same} == {name: literal[name] for name in same}
    receipt = workspace.admin.get(f"/events/{won['eventId']}/receipt").json
    shape = example("004-receipt")
    assert receipt.keys() >= shape.keys()
    for name in ("actor", "subject", "verification"):
        assert receipt[name].keys() == shape[name].keys()
    assert receipt["verification"] | {"receiptUrl": ""} == shape["verification"] | {"receiptUrl": ""}


def test_the_literal_plan_is_valid_without_a_warning(workspace: Workspace) -> None:
    found = validate(PLAN)
    assert (found.valid, found.errors, found.warnings) == (True, (), ())
    begin_queue(workspace.admin, "queue_podcast")
    empty = workspace.admin.post("/workflows", example("004-start-workflow"))
    assert (empty.status, empty.json["code"]) == (422, "plan_invalid")
    reply = workspace.admin.post("/workflows", {**example("004-start-workflow"), "plan": PLAN})
    literal = example("004-workflow-started")
    assert reply.status == 201
    assert reply.json.keys() == literal.keys() | {"id", "state", "validation"}
    same = ("status", "availableTasks")
    assert {name: reply.json[name] for name in same} == {name: literal[name] for name in same}


def _without(part: str, **fields: Any) -> dict[str, Any]:
    """Return the literal plan with one thing wrong."""
    plan: dict[str, Any] = example("004-plan")
    task = plan["tasks"][1]
    if part == "task":
        task.update(fields)
    else:
        plan["policies"] = {name: value for name, value in plan["policies"].items() if name != part}
    return {**plan, "tasks": [{k: v for k, v in one.items() if v is not ...} for one in plan["tasks"]]}


CHECKS = {
    "task_id_duplicate": _without("task", id="guest_intake"),
    "task_id_missing": _without("task", id=...),
    "role_missing": _without("task", role=...),
    "role_not_one": _without("task", role=["researcher", "writer"]),
    "role_unknown": _without("task", role="nobody"),
    "dependency_unknown": _without("task", dependsOn=["nothing"]),
    "dependency_cycle": _without("task", dependsOn=["draft_script"]),
    "completion_criteria_missing": _without("task", completionCriteria=[]),
    "output_unnamed": _without("task", outputs=[""]),
    "approval_gate_invalid": _without("task", approvalGate="yes"),
    "retry_missing": _without("retry"),
    "max_parallel_missing": _without("maxParallelTasks"),
}


@pytest.mark.parametrize("code", CHECKS)
def test_each_required_check_refuses_the_plan(code: str) -> None:
    found = validate(CHECKS[code])
    assert not found.valid
    assert code in [finding.code for finding in found.errors]


def test_the_default_lease_of_a_plan_is_the_lease_of_its_claims(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    for seconds in (60, 7200):
        plan = plan_of(step("a"))
        plan["policies"]["defaultLeaseSeconds"] = seconds
        agent_id = str(register(workspace.admin)["agentId"])
        workspace.admin.post("/workflows", {"queueId": "podcast", "plan": plan})
        workspace.admin.post(f"/roles/role_writer/agents/{agent_id}")
        won = workspace.admin.post("/queues/podcast/claim-next", {"agentId": agent_id}).json
        event = workspace.admin.get(f"/events/{won['eventId']}").json
        lease = datetime.fromisoformat(won["leaseExpiresAt"]) - datetime.fromisoformat(event["timestamp"][:26] + "Z")
        assert abs(lease.total_seconds() - seconds) < 2


def test_a_failed_task_ends_and_a_completed_one_too(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent_id = str(register(workspace.admin)["agentId"])
    for verb, body, state in (("complete", {}, "completed"), ("fail", {"reason": "No source"}, "failed")):
        task_id = create_task(workspace.admin)
        claim_id = claim(workspace.admin, task_id, agent_id)["claimId"]
        assert workspace.admin.post(f"/claims/{claim_id}/{verb}", body).status == 200
        assert workspace.admin.get(f"/tasks/{task_id}").json["state"] == state


def test_the_public_api_names_nothing_of_hedera(workspace: Workspace) -> None:
    document = workspace.admin.get("/openapi.json").json
    public = {path: item for path, item in document["paths"].items() if "/ledger/" not in path or "query" in path}
    schemas = document["components"]["schemas"]
    named = {name for name in (*public, *schemas) if any(word in name.lower() for word in INTERNAL)}
    assert named == set()
    fields = {field for schema in schemas.values() for field in schema.get("properties", {})}
    # What a receipt carries for a verifier, and no developer needs.
    internal = {"topicId", "consensusTimestamp", "runningHash", "previousRunningHash", "payer"}
    assert {field for field in fields if any(word in field.lower() for word in INTERNAL)} <= internal
