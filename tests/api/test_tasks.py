"""Tasks over HTTP: created with every field, shown at every ledger position, stopped, retried."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, head, register
from tests.harness.client import Client

BRIEF: dict[str, Any] = {
    "wire": "1.0",
    "type": "brief",
    "sender": "system",
    "ts": "2026-04-28T00:00:00Z",
    "payload": {
        "goal": "The guest's background is summarized.",
        "context": "The guest is on next week.",
        "constraints": ["No paid sources"],
        "acceptance_criteria": ["Five facts with sources"],
        "output_contract": {"type": "report", "output_ref_required": True, "min_length": 0},
        "escalation_triggers": ["The guest cannot be found"],
        "env": {"client_id": "bezeliq", "task_id": "0.0.1234"},
    },
}
WHOLE: dict[str, Any] = {
    "title": "Research Piers Gorman",
    "description": "For the podcast",
    "requiredRoles": ["role_researcher"],
    "requiredCapabilities": ["web_search", "source_review"],
    "dependsOn": [],
    "priority": "high",
    "input": {"guestName": "Piers Gorman"},
    "brief": BRIEF,
    "contextId": "project:podcast-1",
    "outputs": ["research_packet"],
    "completionCriteria": ["At least five useful facts found"],
    "retry": {"maxAttempts": 2, "onFailure": "reopen"},
    "leaseSeconds": 60,
    "deadlineSeconds": 3600,
}


def agent_with(client: Client, *roles: str) -> str:
    # The same card is the same agent: agents with other roles have another slot.
    agent_id = str(register(client, slot="-".join(roles))["agentId"])
    for role in roles:
        client.post("/roles", {"name": role})
        assert client.post(f"/roles/{role}/agents/{agent_id}").status == 200
    return agent_id


def won(client: Client, task_id: str, agent_id: str) -> str:
    reply = claim(client, task_id, agent_id)
    assert reply["status"] == "claimed", reply
    return str(reply["claimId"])


def test_the_task_of_the_seed_is_created(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    workspace.admin.post("/roles", {"name": "Researcher"})
    body = {
        "title": "Research Piers Gorman",
        "requiredRoles": ["role_researcher"],
        "input": {"guestName": "Piers Gorman", "sourceHint": "TreviPay podcast planning doc"},
    }
    reply = workspace.admin.post("/queues/queue_podcast/tasks", body)
    assert reply.status == 201
    assert reply.json.keys() == {"id", "taskId", "queueId", "state", "status", "eventId"}
    assert (reply.json["queueId"], reply.json["status"]) == ("queue_podcast", "available")
    event = workspace.admin.get(f"/events/{reply.json['eventId']}").json
    assert (event["type"], event["subject"]["id"]) == ("task.created", reply.json["taskId"])


def test_a_task_shows_everything_it_was_given(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    workspace.admin.post("/roles", {"name": "Researcher"})
    parent = create_task(workspace.admin)
    body = {**WHOLE, "parentTaskId": parent, "referenceTaskIds": [parent], "dependsOn": [parent]}
    reply = workspace.admin.post("/queues/q/tasks", body)
    assert (reply.status, reply.json["status"]) == (201, "created")
    shown = workspace.admin.get(f"/tasks/{reply.json['taskId']}").json
    same = ("title", "description", "priority", "input", "contextId", "outputs", "completionCriteria")
    assert {name: shown[name] for name in same} == {name: WHOLE[name] for name in same}
    # The server fills in the ids that the author of a brief could not know.
    brief: dict[str, Any] = {**WHOLE}["brief"]
    filled = {"task_id": reply.json["taskId"], "project_id": shown["contextId"].partition(":")[2]}
    assert shown["brief"]["payload"]["env"] == {**brief["payload"]["env"], **filled}
    assert {**shown["brief"]["payload"], "env": None} == {**brief["payload"], "env": None}
    assert shown["requiredCapabilities"] == ["source_review", "web_search"]
    assert (shown["parentTaskId"], shown["referenceTaskIds"], shown["dependsOn"]) == (parent, [parent], [parent])
    assert (shown["waitsFor"], shown["maxAttempts"], shown["leaseSeconds"]) == ([parent], 2, 60)
    assert (shown["state"], shown["attempt"]) == ("created", 1)
    assert shown["deadlineAt"] > shown["createdAt"]


def test_empty_and_false_inputs_are_kept_as_they_are(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    for value in (False, 0, "", [], {}, "text", [1, {"a": None}]):
        task_id = create_task(workspace.admin, input=value)
        assert workspace.admin.get(f"/tasks/{task_id}").json["input"] == value


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/title"),
        ({"title": ""}, "/title"),
        ({"title": "x" * 501}, "/title"),
        ({"title": "T", "priority": "now"}, "/priority"),
        ({"title": "T", "leaseSeconds": 0}, "/leaseSeconds"),
        ({"title": "T", "deadlineSeconds": 0}, "/deadlineSeconds"),
        ({"title": "T", "retry": {"maxAttempts": 0}}, "/retry/maxAttempts"),
        ({"title": "T", "outputs": ["Not A Slug"]}, "/outputs/0"),
        ({"title": "T", "queueId": "queue_other"}, "/queueId"),
        ({"title": "T", "contextId": "nonsense"}, "/contextId"),
        ({"title": "T", "requiredRoles": ["nobody"]}, "/requiredRoles"),
        ({"title": "T", "requiredRoles": ["a b"]}, "/requiredRoles/0"),
        ({"title": "T", "requiredCapabilities": ["!"]}, "/requiredCapabilities/0"),
        ({"title": "T", "dependsOn": ["task_01JTMX9A2B3C4D5E6F7G8H9JKP"]}, "/dependsOn"),
        ({"title": "T", "dependsOn": ["nonsense"]}, "/dependsOn/0"),
        ({"title": "T", "parentTaskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP"}, "/parentTaskId"),
        ({"title": "T", "referenceTaskIds": ["task_01JTMX9A2B3C4D5E6F7G8H9JKP"]}, "/referenceTaskIds/0"),
        ({"title": "T", "workflowId": "wf_01JTMX9A2B3C4D5E6F7G8H9JKP"}, "/workflowId"),
        ({"title": "T", "brief": {"wire": "1.0"}}, "/brief/type"),
        ({"title": "T", "brief": {**BRIEF, "wire": "9"}}, "/brief/wire"),
        (
            {"title": "T", "brief": {**BRIEF, "payload": {**BRIEF["payload"], "goal": "One. Two."}}},
            "/brief/payload/goal",
        ),
        ({"title": "T", "state": "completed"}, "/state"),
    ],
)
def test_a_bad_task_is_refused_with_its_place_and_writes_nothing(
    workspace: Workspace, body: dict[str, Any], pointer: str
) -> None:
    begin_queue(workspace.admin)
    before = head(workspace.admin)
    reply = workspace.admin.post("/queues/q/tasks", body)
    assert reply.status == 422, reply.text
    assert pointer in {error["pointer"] for error in reply.json["errors"]}
    assert head(workspace.admin) == before


def test_all_errors_of_a_body_are_reported_at_once(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    reply = workspace.admin.post("/queues/q/tasks", {"priority": "now", "leaseSeconds": 0, "color": "red"})
    pointers = {error["pointer"] for error in reply.json["errors"]}
    assert {"/title", "/priority", "/leaseSeconds", "/color"} <= pointers


def test_an_imperative_goal_is_a_warning(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    brief = {**BRIEF, "payload": {**BRIEF["payload"], "goal": "Build the page."}}
    reply = workspace.admin.post("/queues/q/tasks", {"title": "T", "brief": brief})
    assert reply.status == 201
    assert [warning["pointer"] for warning in reply.json["warnings"]] == ["/brief/payload/goal"]


def test_requirements_beyond_a_wire_are_pinned_and_hold(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    roles = [f"r{number}" for number in range(4)]
    agent = agent_with(workspace.admin, *roles[:3])
    workspace.admin.post("/roles", {"name": "r3"})
    task_id = create_task(workspace.admin, requiredRoles=roles, outputs=["a", "b"], retry={"maxAttempts": 3})
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    assert (shown["requiredRoles"], shown["maxAttempts"]) == ([f"role_{role}" for role in roles], 3)
    assert claim(workspace.admin, task_id, agent)["detail"] == "role_r3"
    workspace.admin.post(f"/roles/r3/agents/{agent}")
    claim_id = won(workspace.admin, task_id, agent)
    failed = workspace.admin.post(f"/claims/{claim_id}/fail", {"reason": "broken"}).json
    assert failed["retry"] is True
    again = workspace.admin.get(f"/tasks/{task_id}").json
    assert (again["attempt"], again["state"], again["outputs"]) == (2, "available", ["a", "b"])


def test_what_follows_a_failure_is_the_tasks_policy(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    for retry, again in (
        (None, False),
        ({"maxAttempts": 2}, True),
        ({"maxAttempts": 2, "onFailure": "fail"}, False),
        ({"maxAttempts": 2, "onFailure": "block"}, False),
    ):
        task_id = create_task(workspace.admin, **({"retry": retry} if retry else {}))
        claim_id = won(workspace.admin, task_id, agent)
        failed = workspace.admin.post(f"/claims/{claim_id}/fail", {"reason": "broken"}).json
        assert failed["retry"] is again, retry


def test_dependencies_open_fail_and_are_never_foreign(workspace: Workspace, other: Workspace) -> None:
    begin_queue(workspace.admin)
    begin_queue(other.admin)
    agent = agent_with(workspace.admin)
    first, second = create_task(workspace.admin), create_task(workspace.admin)
    waiting = create_task(workspace.admin, dependsOn=[first, second])
    assert claim(workspace.admin, waiting, agent)["reason"] == "dependency_unsatisfied"
    for task_id in (first, second):
        assert workspace.admin.get(f"/tasks/{waiting}").json["state"] == "created"
        workspace.admin.post(f"/claims/{won(workspace.admin, task_id, agent)}/complete")
    shown = workspace.admin.get(f"/tasks/{waiting}").json
    assert (shown["state"], shown["dependsOn"], shown.get("waitsFor")) == ("available", [first, second], None)
    third = create_task(workspace.admin)
    doomed = create_task(workspace.admin, dependsOn=[third])
    workspace.admin.post(f"/tasks/{third}/cancel")
    assert workspace.admin.get(f"/tasks/{doomed}").json["failure"]["kind"] == "dependency_failed"
    foreign = create_task(other.admin)
    reply = workspace.admin.post("/queues/q/tasks", {"title": "T", "dependsOn": [foreign]})
    assert (reply.status, reply.json["code"]) == (422, "unknown_dependency")


def test_a_task_is_cancelled_once_and_tried_again_as_a_new_attempt(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, agent)
    cancelled = workspace.admin.post(f"/tasks/{task_id}/cancel", key="c1")
    assert (cancelled.json["status"], cancelled.json["attempt"]) == ("cancelled", 1)
    assert workspace.admin.post(f"/tasks/{task_id}/cancel", key="c1").content == cancelled.content
    assert workspace.admin.post(f"/tasks/{task_id}/cancel").json["code"] == "already_terminal"
    assert workspace.admin.post(f"/claims/{claim_id}/heartbeat").json["state"] == "cancelled"
    assert workspace.admin.post(f"/claims/{claim_id}/complete").json["code"] == "already_terminal"
    retried = workspace.admin.post(f"/tasks/{task_id}/retry").json
    assert (retried["status"], retried["attempt"]) == ("available", 2)
    assert workspace.admin.post(f"/tasks/{task_id}/retry").json["code"] == "not_failed"
    assert won(workspace.admin, task_id, agent) != claim_id
    for path in ("cancel", "retry", "unblock"):
        assert workspace.admin.post(f"/tasks/task_nobody/{path}").json["code"] == "task_not_found"


def test_a_block_is_answered_and_the_next_holder_reads_the_answer(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    worker, analyst = agent_with(workspace.admin), agent_with(workspace.admin, "ba")
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, worker)
    body = {"reason": "No audience named", "blockerType": "spec_gap", "suggestedResolution": "Ask the host"}
    assert workspace.admin.post(f"/claims/{claim_id}/block", body).json["status"] == "blocked"
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    assert shown["blocker"] == {
        "blockerType": "spec_gap",
        "reason": "No audience named",
        "suggestedResolution": "Ask the host",
    }
    assert claim(workspace.admin, task_id, worker)["detail"] == "blocked"
    # The role that can end the block is notified, and the humans; others may not end it.
    inbox = workspace.admin.get(f"/agents/{analyst}/inbox").json["items"]
    assert [(mail["priority"], mail["messageType"], mail["body"]) for mail in inbox] == [
        (1, "task.blocked", "No audience named")
    ]
    assert [mail["refTaskId"] for mail in workspace.admin.get("/inbox").json["items"]] == [task_id]
    refused = workspace.caller("agent", agent_id=worker).post(f"/tasks/{task_id}/unblock", {"answer": "me"})
    assert (refused.status, refused.json["code"]) == (403, "not_asked")
    lifted = workspace.caller("agent", agent_id=analyst).post(f"/tasks/{task_id}/unblock", {"answer": "Founders"})
    assert lifted.json["status"] == "available"
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    assert (shown["answer"], "blocker" in shown) == ("Founders", False)
    assert workspace.admin.post(f"/tasks/{task_id}/unblock").json["code"] == "not_blocked"


def test_a_block_on_a_task_is_lifted_when_that_completes(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    first, second = create_task(workspace.admin), create_task(workspace.admin)
    claim_id = won(workspace.admin, second, agent)
    body = {"reason": "Needs the first", "blockerType": "dependency", "dependsOn": [first]}
    assert workspace.admin.post(f"/claims/{claim_id}/block", body).status == 200
    assert workspace.admin.get(f"/tasks/{second}").json["blocker"]["dependsOn"] == [first]
    workspace.admin.post(f"/claims/{won(workspace.admin, first, agent)}/complete")
    assert workspace.admin.get(f"/tasks/{second}").json["state"] == "available"


def test_the_state_at_every_sequence_is_what_it_was_then(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    begun = head(workspace.admin)
    task_id = create_task(workspace.admin, retry={"maxAttempts": 2}, outputs=["packet"])
    path = f"/tasks/{task_id}"
    seen: dict[int, dict[str, Any]] = {}

    def look() -> None:
        seen[head(workspace.admin)] = workspace.admin.get(path).json

    look()
    claim_id = won(workspace.admin, task_id, agent)
    look()
    workspace.admin.post(f"/claims/{claim_id}/start")
    look()
    workspace.admin.post(f"/claims/{claim_id}/artifacts", {"name": "packet", "content": "draft", "readiness": "draft"})
    look()
    workspace.admin.post(f"/claims/{claim_id}/fail", {"reason": "first try"})
    look()
    claim_id = won(workspace.admin, task_id, agent)
    workspace.admin.post(f"/claims/{claim_id}/artifacts", {"name": "packet", "content": {"final": True}})
    look()
    workspace.admin.post(f"/claims/{claim_id}/complete", {"output": 42, "summary": "Done"})
    look()
    assert [state["state"] for state in seen.values()] == [
        "available",
        "claimed",
        "working",
        "working",
        "available",
        "claimed",
        "completed",
    ]
    for sequence, state in seen.items():
        then = workspace.admin.get(f"{path}?at={sequence}").json
        assert then.pop("sequence") == sequence
        assert then == state, sequence
    assert workspace.admin.get(f"{path}?at={begun}").json["code"] == "task_not_found"
    assert workspace.admin.get(f"{path}?at={head(workspace.admin) + 1}").json["errors"][0]["pointer"] == "/at"
    assert workspace.admin.get(f"{path}?at=0").status == 422


def test_messages_and_concerns_stay_with_the_task(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    task_id = create_task(workspace.admin)
    parts = [
        {"kind": "text", "text": "See the plan"},
        {"kind": "data", "data": {"n": [1, None]}},
        {"kind": "file_ref", "uri": "https://example.com/a.pdf", "sha256": "a" * 64, "media_type": "application/pdf"},
        {"kind": "artifact_ref", "artifact_id": "art_01JTMX9A2B3C4D5E6F7G8H9JKP", "name": "plan"},
    ]
    path = f"/tasks/{task_id}/messages"
    first = workspace.admin.post(path, {"parts": parts, "metadata": {"source": "host"}})
    assert first.status == 201
    caller = workspace.caller("agent", agent_id=agent)
    caller.post(path, {"parts": [{"kind": "text", "text": "Read it"}]})
    found = workspace.admin.get(path).json["items"]
    assert [(message["role"], message["sender"].partition(":")[0]) for message in found] == [
        ("human", "human"),
        ("agent", "agent"),
    ]
    assert (found[0]["parts"], found[0]["metadata"]) == (parts, {"source": "host"})
    assert found[0]["messageId"] == first.json["messageId"]
    page = workspace.admin.get(f"{path}?limit=1").json
    assert workspace.admin.get(f"{path}?after={page['next']}").json["items"] == found[1:]
    concerns = f"/tasks/{task_id}/concerns"
    assert workspace.admin.post(concerns, {"concern": "Too early"}).json["code"] == "not_held"
    claim_id = won(workspace.admin, task_id, agent)
    assert workspace.admin.post(concerns, {"concern": "A press release", "severity": "major"}).status == 201
    workspace.admin.post(f"/claims/{claim_id}/complete")
    assert workspace.admin.post(path, {"parts": parts}).json["code"] == "already_terminal"
    for bad in (
        {"parts": []},
        {"parts": [{"kind": "text"}]},
        {"parts": [{"kind": "x"}]},
        {"parts": [{"kind": "text", "text": "a", "uri": "b"}]},
    ):
        assert workspace.admin.post(path, bad).status == 422


def test_a_context_adds_up_its_tasks(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    done, blocked = (create_task(workspace.admin, contextId="project:one") for _ in range(2))
    create_task(workspace.admin, contextId="project:two")
    claim_id = won(workspace.admin, done, agent)
    artifact = workspace.admin.post(f"/claims/{claim_id}/artifacts", {"name": "packet", "content": "x"}).json
    workspace.admin.post(f"/claims/{claim_id}/complete")
    claim_id = won(workspace.admin, blocked, agent)
    workspace.admin.post(f"/claims/{claim_id}/block", {"reason": "stuck", "blockerType": "resource"})
    state = workspace.admin.get("/contexts/project:one/state").json
    assert state == {
        "contextId": "project:one",
        "taskCount": 2,
        "tasks": {"completed": [done], "blocked": [blocked]},
        "blocked": True,
        "blockedTaskIds": [blocked],
        "artifactCount": 1,
        "artifactIds": [artifact["artifactId"]],
        "terminal": False,
        "complete": True,
    }
    create_task(workspace.admin)
    assert workspace.admin.get("/contexts/queue:queue_q/state").json["taskCount"] == 1
    assert workspace.admin.get("/contexts/project:nobody/state").json["code"] == "context_not_found"


def test_a_batch_gives_each_task_its_own_result_and_repeats_alike(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    tasks = [{"title": f"T{number}"} for number in range(50)]
    tasks[7] = {"title": "T7", "requiredRoles": ["nobody"]}
    tasks[9] = {"title": "T9", "dependsOn": ["task_01JTMX9A2B3C4D5E6F7G8H9JKP"]}
    reply = workspace.admin.post("/queues/q/tasks/batch", {"tasks": tasks}, key="batch-1")
    assert reply.status == 200
    results = reply.json["items"]
    assert [index for index, item in enumerate(results) if "problem" in item] == [7, 9]
    assert results[7]["problem"]["code"] == "unknown_role"
    titles = [workspace.admin.get(f"/tasks/{item['task']['taskId']}").json["title"] for item in results[:3]]
    assert titles == ["T0", "T1", "T2"]
    assert workspace.admin.post("/queues/q/tasks/batch", {"tasks": tasks}, key="batch-1").content == reply.content
    assert len(workspace.admin.get("/queues/q/tasks/available?limit=500").json["items"]) == 48
    assert workspace.admin.post("/queues/nobody/tasks/batch", {"tasks": tasks}).status == 404
    for bad in ([], [{"title": "T"}] * 501, [{"titel": "T"}]):
        assert workspace.admin.post("/queues/q/tasks/batch", {"tasks": bad}).status == 422


def test_a_gate_waits_for_another_person_than_the_worker(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    task_id = create_task(workspace.admin, approvalGate={"approvers": ["roles.host"], "deadlineSeconds": 60})
    ended = workspace.admin.post(f"/claims/{won(workspace.admin, task_id, agent)}/complete").json
    assert ended["gateId"].startswith("gate_")
    assert workspace.admin.get(f"/tasks/{task_id}").json["gateId"] == ended["gateId"]
    explained = workspace.admin.get(f"/tasks/{task_id}/explain").json
    assert [reason["code"] for reason in explained["reasons"]] == ["gate"]


def test_an_exhausted_workspace_gets_no_new_tasks_and_finishes_what_runs(
    workspace: Workspace, operator: Client
) -> None:
    begin_queue(workspace.admin)
    agent = agent_with(workspace.admin)
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, agent)
    granted = operator.post("/billing/credits", {"workspaceId": workspace.workspace_id, "amount": 1})
    assert granted.status in (200, 201), granted.text
    reply = workspace.admin.post("/queues/q/tasks", {"title": "T"})
    assert (reply.status, reply.json["code"]) == (402, "credits_exhausted")
    assert workspace.admin.post(f"/claims/{claim_id}/complete").status == 200
