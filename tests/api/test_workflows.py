"""Workflows over HTTP: running plans, shown now and at any ledger position."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.wire import files
from tests.api.conftest import Workspace
from tests.harness.acts import CARD, begin_queue
from tests.harness.client import Client
from tests.harness.runs import plan_of, step

PODCAST = files.load("fixtures/plan/v1.0/podcast-production.valid.json")
CHAIN = plan_of(step("a", outputs=["text"]), step("b", "a", expectedInputs=["text"], outputs=["more"]))


def start(client: Client, plan: dict[str, Any], **more: Any) -> dict[str, Any]:
    reply = client.post("/workflows", {"queueId": "podcast", "plan": plan, **more})
    assert reply.status == 201, reply.text
    made: dict[str, Any] = reply.json
    return made


def worker(workspace: Workspace, plan: dict[str, Any], name: str = "Worker") -> tuple[Client, str]:
    """An agent that has every role and capability of a plan, and its key."""
    able = sorted({one for task in plan["tasks"] for one in task.get("requiredCapabilities", [])})
    skills = [{"id": one, "name": one, "description": one, "tags": [one]} for one in able]
    card = {"agentCard": {**CARD, "name": name, "skills": skills}}
    agent = str(workspace.admin.post("/agents/register-card", card).json["agentId"])
    for role in plan["roles"]:
        assert workspace.admin.post(f"/roles/{role}/agents/{agent}").status == 200
    return workspace.caller("agent", agent_id=agent), agent


def work(client: Client, agent: str) -> dict[str, Any]:
    """Claim the next task, store its outputs, complete it; return the claim."""
    claimed = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    assert claimed["status"] == "claimed", claimed
    for name in claimed["task"].get("outputs", []):
        body = {"name": name, "content": f"the {name}", "mediaType": "text/plain"}
        assert client.post(f"/claims/{claimed['claimId']}/artifacts", body).status == 201
    ended = client.post(f"/claims/{claimed['claimId']}/complete", {"summary": "done"})
    assert ended.status == 200, ended.text
    found: dict[str, Any] = claimed
    return found


def test_the_start_answers_in_the_shape_of_the_specification(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    started = start(workspace.admin, PODCAST)
    assert started["status"] == "running"
    assert started["availableTasks"] == ["guest_intake"]
    assert started["workflowId"].startswith("wf_")
    assert started["eventId"].startswith("evt_")
    assert started["validation"] == {"valid": True, "errors": [], "warnings": []}
    roles = {one["id"]: one for one in workspace.admin.get("/roles").json["items"]}
    assert roles["role_researcher"]["description"] == "Finds and summarizes relevant background."


def test_the_podcast_plan_runs_from_intake_to_the_approved_script(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    run = start(workspace.admin, PODCAST)["workflowId"]
    client, agent = worker(workspace, PODCAST)
    done = [work(client, agent)["task"]["planTaskId"] for _ in range(4)]
    assert done == ["guest_intake", "guest_research", "draft_script", "review_script"]
    state = workspace.admin.get(f"/workflows/{run}/state").json
    assert (state["status"], state["tasks"][3]["state"]) == ("running", "awaiting_approval")
    (mail,) = workspace.admin.get("/inbox?to=human").json["items"]
    assert (mail["messageType"], mail["body"]) == ("exec.gate", "Review podcast script")
    reply = workspace.admin.post(f"/workflows/{run}/gates/review_script/approve", {"note": "Go"})
    assert (reply.status, reply.json["workflowId"]) == (200, run)
    assert workspace.admin.get(f"/workflows/{run}").json["status"] == "completed"


def test_an_invalid_plan_is_refused_with_the_whole_verdict_and_nothing_is_recorded(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    before = workspace.admin.get("/ledger/query?order=desc&limit=1").json
    plan = plan_of(step("a", "b"), step("b", "a"), step("c", role="writer"))
    plan["tasks"][2]["role"] = "nobody"
    reply = workspace.admin.post("/workflows", {"queueId": "podcast", "plan": plan})
    assert (reply.status, reply.json["code"]) == (422, "plan_invalid")
    verdict = workspace.admin.post("/workflow-definitions/validate", {"plan": plan}).json
    assert reply.json["validation"] == verdict
    assert [one["pointer"] for one in reply.json["errors"]] == ["/plan" + one["path"] for one in verdict["errors"]]
    assert workspace.admin.get("/ledger/query?order=desc&limit=1").json == before


@pytest.mark.parametrize(
    "body",
    [
        {"queueId": "podcast"},
        {"queueId": "podcast", "plan": CHAIN, "definitionId": "def_01JTMX9A2B3C4D5E6F7G8H9JKM"},
        {"queueId": "podcast", "plan": CHAIN, "version": 1},
        {"plan": CHAIN},
        {"queueId": "podcast", "plan": []},
    ],
)
def test_a_body_that_names_no_plan_or_two_is_refused(workspace: Workspace, body: dict[str, Any]) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    assert workspace.admin.post("/workflows", body).status == 422


def test_a_repeated_start_is_one_run(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    body = {"queueId": "podcast", "plan": PODCAST}
    first, second = (workspace.admin.post("/workflows", body, key="w1") for _ in range(2))
    assert first.content == second.content
    assert len(workspace.admin.get("/workflows").json["items"]) == 1


def test_a_claim_brings_the_task_its_upstream_artifacts_and_what_the_run_was_given(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    start(workspace.admin, CHAIN, input={"guest": "Piers"})
    client, agent = worker(workspace, CHAIN)
    first = work(client, agent)["task"]
    assert (first["planTaskId"], first["title"], first["workflowInput"]) == ("a", "Write a", {"guest": "Piers"})
    assert first["completionCriteria"] == ["The text has 3 sources"]
    second = client.post("/queues/podcast/claim-next", {"agentId": agent}, key="c1")
    (above,) = second.json["task"]["upstream"]
    assert (above["name"], above["planTaskId"], above["taskId"]) == ("text", "a", first["taskId"])
    assert (above["mediaType"], above["bytes"]) == ("text/plain", len("the text"))
    assert second.json["task"]["expectedInputs"] == ["text"]
    assert workspace.admin.get(f"/content/{above['sha256']}").content == b"the text"
    for name in second.json["task"]["outputs"]:
        client.post(f"/claims/{second.json['claimId']}/artifacts", {"name": name, "content": "x"})
    client.post(f"/claims/{second.json['claimId']}/complete")
    # The run has ended; a repeated request gets the same reply.
    assert client.post("/queues/podcast/claim-next", {"agentId": agent}, key="c1").content == second.content


def test_a_rejection_comes_back_to_the_worker_with_its_note(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    plan = plan_of(step("a", approvalGate=True), attempts=2)
    run = start(workspace.admin, plan)["workflowId"]
    client, agent = worker(workspace, plan)
    work(client, agent)
    assert workspace.admin.post(f"/workflows/{run}/gates/a/reject", {"note": "Ask about the book"}).json["retry"]
    again = work(client, agent)
    assert (again["task"]["attempt"], again["task"]["note"]) == (2, "Ask about the book")


def test_pause_resume_and_cancel(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    run = start(workspace.admin, CHAIN)["workflowId"]
    client, agent = worker(workspace, CHAIN)
    paused = workspace.admin.post(f"/workflows/{run}/pause").json
    assert (paused["status"], paused["eventId"][:4]) == ("paused", "evt_")
    assert "eventId" not in workspace.admin.post(f"/workflows/{run}/pause").json
    assert client.post("/queues/podcast/claim-next", {"agentId": agent}).json["status"] == "no_tasks"
    assert workspace.admin.get(f"/workflows/{run}").json["status"] == "paused"
    assert workspace.admin.post(f"/workflows/{run}/resume").json["status"] == "running"
    claimed = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    assert workspace.admin.post(f"/workflows/{run}/cancel").json["status"] == "cancelled"
    assert client.post(f"/claims/{claimed['claimId']}/complete").json["code"] == "already_terminal"
    for verb in ("pause", "resume", "cancel"):
        late = workspace.admin.post(f"/workflows/{run}/{verb}")
        assert (late.status, late.json["code"]) == (409, "already_terminal")
    state = workspace.admin.get(f"/workflows/{run}/state").json
    assert {task["state"] for task in state["tasks"]} == {"cancelled"}
    assert state["counts"] == {"total": 2, "completed": 0, "failed": 0, "cancelled": 2, "open": 0}


def test_another_workspaces_run_is_not_found(workspace: Workspace, other: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    run = start(workspace.admin, CHAIN)["workflowId"]
    nothing = "wf_01JTMX9A2B3C4D5E6F7G8H9JKM"
    for verb in ("pause", "resume", "cancel"):
        reply = other.admin.post(f"/workflows/{run}/{verb}")
        assert reply.status == 404
        assert reply.content == other.admin.post(f"/workflows/{nothing}/{verb}").content
    for part in ("", "/state", "/graph", "/events"):
        reply = other.admin.get(f"/workflows/{run}{part}")
        assert reply.status == 404
        assert reply.content == other.admin.get(f"/workflows/{nothing}{part}").content
    assert other.admin.get("/workflows").json["items"] == []
    assert workspace.admin.get(f"/workflows/{run}").json["status"] == "running"


def test_the_state_shows_everything_about_every_task(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    plan = plan_of(step("a"), step("b"), step("c", "a"), step("d", "c"), step("e"), parallel=2)
    run = start(workspace.admin, plan)["workflowId"]
    client, agent = worker(workspace, plan)
    claimed = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    state = workspace.admin.get(f"/workflows/{run}/state").json
    tasks = {task["planTaskId"]: task for task in state["tasks"]}
    assert {key: task["state"] for key, task in tasks.items()} == {
        "a": "claimed",
        "b": "available",
        "c": "waiting",
        "d": "waiting",
        "e": "waiting",
    }
    assert (tasks["a"]["claim"]["claimId"], tasks["a"]["claim"]["agentId"]) == (claimed["claimId"], agent)
    assert tasks["c"]["blockedBy"] == ["a"]
    assert (tasks["d"]["waitsBecause"], tasks["e"]["waitsBecause"]) == ("dependency", "parallel_limit")
    assert state["availableTasks"] == ["b"]
    assert state["criticalPath"] == ["a", "c", "d"]
    assert state["counts"] == {"total": 5, "completed": 0, "failed": 0, "cancelled": 0, "open": 5}


def test_every_state_that_was_can_be_seen_again(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    plan = plan_of(step("a"), step("b", "a", approvalGate=True), step("c", "b"), attempts=2, on_failure="reopen")
    run = start(workspace.admin, plan)["workflowId"]
    client, agent = worker(workspace, plan)
    seen = [workspace.admin.get(f"/workflows/{run}/state").json]

    def look() -> None:
        seen.append(workspace.admin.get(f"/workflows/{run}/state").json)

    claimed = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    look()
    client.post(f"/claims/{claimed['claimId']}/fail", {"reason": "no"})
    look()
    work(client, agent)
    look()
    work(client, agent)
    look()
    workspace.admin.post(f"/workflows/{run}/gates/b/reject", {"note": "again"})
    look()
    work(client, agent)
    workspace.admin.post(f"/workflows/{run}/gates/b/approve")
    workspace.admin.post(f"/workflows/{run}/pause")
    look()
    workspace.admin.post(f"/workflows/{run}/resume")
    work(client, agent)
    look()
    assert seen[-1]["status"] == "completed"
    for state in seen:
        then = workspace.admin.get(f"/workflows/{run}/state?at={state['sequence']}").json
        assert then == state
    begun = workspace.admin.get(f"/workflows/{run}/events?limit=1").json["items"][0]["sequence"]
    assert workspace.admin.get(f"/workflows/{run}/state?at={begun - 1}").status == 404
    assert workspace.admin.get(f"/workflows/{run}/state?at=999999").json["errors"][0]["code"] == "sequence_ahead"


def test_the_graph_is_drawn_as_nodes_and_edges_and_as_mermaid(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    hostile = step("b", "a", approvalGate=True) | {"title": 'x"]; click n0 "javascript:alert(1)" %%'}
    run = start(workspace.admin, plan_of(step("a"), hostile, attempts=2))["workflowId"]
    graph = workspace.admin.get(f"/workflows/{run}/graph").json
    assert [(node["id"], node["state"], node["level"]) for node in graph["nodes"]] == [
        ("a", "available", 0),
        ("b", "waiting", 1),
    ]
    assert graph["edges"] == [{"source": "a", "to": "b"}]
    drawn = workspace.admin.get(f"/workflows/{run}/graph?format=mermaid")
    assert drawn.media == "text/vnd.mermaid"
    assert drawn.text.startswith("flowchart LR\n")
    assert "n0 --> n1" in drawn.text
    assert "n1{{" in drawn.text
    assert '"]; click' not in drawn.text
    assert "javascript:" not in drawn.text
    asked = workspace.admin.get(f"/workflows/{run}/graph", headers={"accept": "text/vnd.mermaid"})
    assert asked.text == drawn.text


def test_the_events_of_a_run_are_those_of_its_tasks_too(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    run = start(workspace.admin, CHAIN)["workflowId"]
    beside = start(workspace.admin, CHAIN)["workflowId"]
    workspace.admin.post(f"/workflows/{beside}/cancel")
    client, agent = worker(workspace, CHAIN)
    work(client, agent)
    work(client, agent)
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = workspace.admin.get(f"/workflows/{run}/events?limit=3{after}").json
        found += page["items"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    types = [one["type"] for one in found]
    assert types[0] == "workflow.started"
    assert types[-1] == "workflow.completed"
    assert [one for one in types if one in ("task.claimed", "task.complete")] == ["task.claimed", "task.complete"] * 2
    assert types.count("artifact.ready") == 2
    only = workspace.admin.get(f"/workflows/{run}/events?type=task.complete").json["items"]
    assert len(only) == 2
    assert "workflow.cancelled" not in types


def test_the_events_of_a_run_are_streamed_from_any_place(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    run = start(workspace.admin, CHAIN)["workflowId"]
    workspace.admin.post(f"/workflows/{run}/pause")
    first = workspace.admin.get(f"/workflows/{run}/events?limit=1").json["items"][0]["sequence"]
    headers = {"accept": "text/event-stream", "last-event-id": str(first - 1)}
    seen: list[str] = []
    with workspace.admin.http.stream("GET", f"/workflows/{run}/events", headers=headers) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
            if seen and seen[-1] == "workflow.paused":
                break
    assert seen == ["workflow.started", "task.created", "task.available", "workflow.paused"]


def test_a_run_names_its_definition_and_version(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    key = workspace.admin.post("/workflow-definitions", {"plan": CHAIN}).json["definitionId"]
    early = workspace.admin.post("/workflows", {"queueId": "podcast", "definitionId": key})
    assert (early.status, early.json["code"]) == (409, "not_published")
    workspace.admin.post(f"/workflow-definitions/{key}/publish")
    run = workspace.admin.post("/workflows", {"queueId": "podcast", "definitionId": key}).json
    assert (run["definitionId"], run["version"], run["availableTasks"]) == (key, 1, ["a"])
    workspace.admin.post(f"/workflow-definitions/{key}/versions", {"plan": plan_of(step("z", outputs=["zed"]))})
    workspace.admin.post(f"/workflow-definitions/{key}/publish")
    last = workspace.admin.post("/workflows", {"queueId": "podcast", "definitionId": key, "input": {"n": 1}}).json
    assert (last["version"], last["availableTasks"]) == (2, ["z"])
    pinned = workspace.admin.post("/workflows", {"queueId": "podcast", "definitionId": key, "version": 1}).json
    assert (pinned["version"], pinned["availableTasks"]) == (1, ["a"])
    assert workspace.admin.get(f"/workflows/{run['workflowId']}").json["definitionId"] == key
    missing = workspace.admin.post("/workflows", {"queueId": "podcast", "definitionId": key, "version": 9})
    assert missing.status == 404


def test_runs_are_listed_by_state_in_pages(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    runs = [start(workspace.admin, CHAIN)["workflowId"] for _ in range(5)]
    workspace.admin.post(f"/workflows/{runs[1]}/cancel")
    live = workspace.admin.get("/workflows?state=live").json["items"]
    assert [one["workflowId"] for one in live] == [runs[0], *runs[2:]]
    assert [one["workflowId"] for one in workspace.admin.get("/workflows?state=ended").json["items"]] == [runs[1]]
    page = workspace.admin.get("/workflows?limit=3").json
    rest = workspace.admin.get(f"/workflows?limit=3&after={page['next']}").json
    assert sorted(one["workflowId"] for one in page["items"] + rest["items"]) == sorted(runs)


def test_a_plan_of_the_largest_size_starts(workspace: Workspace, other: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    chain = [step(f"t{n}", *([f"t{n - 1}"] if n else []), outputs=[f"o{n}"]) for n in range(10_000)]
    reply = workspace.admin.post("/workflows", {"queueId": "podcast", "plan": plan_of(*chain)})
    assert (reply.status, reply.json["availableTasks"]) == (201, ["t0"])
    assert [one["code"] for one in reply.json["validation"]["warnings"]] == ["plan_too_serial"]
    many = {"queueId": "podcast", "plan": {**plan_of(step("a")), "tasks": [{}] * 100_000}}
    # In another workspace: this one has just spent its budget of large work.
    begin_queue(other.admin, "queue_podcast")
    refused = other.admin.post("/workflows", many)
    assert (refused.status, refused.json["validation"]["errors"][0]["code"]) == (422, "tasks_too_many")


def test_erased_text_leaves_the_run_working(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    run = start(workspace.admin, plan_of(step("a"), step("b", "a")))["workflowId"]
    (event,) = workspace.admin.get(f"/workflows/{run}/events?type=workflow.started").json["items"]
    sha256 = event["data"]["contentRef"]["sha256"]
    assert workspace.admin.delete(f"/content/{sha256}").status == 200
    pinned = workspace.admin.delete(f"/content/{event['data']['structureRef']['sha256']}")
    assert (pinned.status, pinned.json["code"]) == (409, "content_pinned")
    client, agent = worker(workspace, plan_of(step("a")))
    assert work(client, agent)["task"]["erased"]
    state = workspace.admin.get(f"/workflows/{run}/state").json
    assert (state["erased"], state["availableTasks"]) == (True, ["b"])


def test_notes_reach_dependent_tasks_without_the_authors_name(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    start(workspace.admin, plan_of(step("a"), step("b", "a")))
    client, agent = worker(workspace, plan_of(step("a"), step("b", "a")))
    first = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    assert "priorContext" not in first["task"]
    body = {"notes": "Spec complete\n3 edge cases", "attempts": 2, "semantic": "pass"}
    ended = client.post(f"/claims/{first['claimId']}/complete", body).json
    second = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    assert second["task"]["priorContext"] == ["Spec complete\n3 edge cases"]
    event = client.get(f"/events/{ended['eventId']}").json
    assert event["data"]["verification"] == {"mechanical": "pass", "semantic": "pass", "attempts": 2}


def test_notes_reach_simple_tasks_that_depend_on_others(workspace: Workspace) -> None:
    begin_queue(workspace.admin, "queue_podcast")
    agent = str(workspace.admin.post("/agents/register-card", {"agentCard": CARD}).json["agentId"])
    client = workspace.caller("agent", agent_id=agent)
    first = workspace.admin.post("/queues/podcast/tasks", {"title": "First"}).json["taskId"]
    workspace.admin.post("/queues/podcast/tasks", {"title": "Second", "dependsOn": [first]})
    held = client.post("/queues/podcast/claim-next", {"agentId": agent}).json["claimId"]
    client.post(f"/claims/{held}/complete", {"notes": "Mind the gap"})
    second = client.post("/queues/podcast/claim-next", {"agentId": agent}).json
    assert second["task"]["priorContext"] == ["Mind the gap"]
