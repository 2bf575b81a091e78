"""Simple tasks that belong to a run, and views of runs, tasks and claims that agree with each other."""

from __future__ import annotations

from tests.api.test_seed_004 import PLAN, ask, claim, open_tasks, register
from tests.harness.stranger import Stranger

__all__ = ["ask"]


def begin(ask: Stranger) -> str:
    return str(ask.ok("POST", "/workflows", {"queueId": "queue_podcast", "plan": PLAN})["workflowId"])


def test_a_simple_task_of_a_run_is_shown_listed_and_cancelled_with_it(ask: Stranger) -> None:
    run, agent_id = begin(ask), register(ask)
    body = {
        "queueId": "queue_podcast",
        "workflowId": run,
        "title": "Research Piers Gorman",
        "dependsOn": [],
        "priority": "normal",
        "input": {"guestName": "Piers Gorman"},
    }
    first, second = (ask.ok("POST", "/queues/queue_podcast/tasks", body)["taskId"] for _ in range(2))
    assert ask.ok("GET", f"/tasks/{first}")["workflowId"] == run
    won = claim(ask, second, agent_id)["claimId"]
    ask.ok("POST", f"/claims/{won}/complete", {})
    state = ask.ok("GET", f"/workflows/{run}/state")
    found = {one["taskId"]: (one["state"], one["title"]) for one in state["moreTasks"]}
    assert found == {first: ("available", body["title"]), second: ("completed", body["title"])}
    before = state["sequence"]
    mixed = ask("POST", "/queues/queue_podcast/tasks", body | {"contextId": "project:other"})
    assert mixed.json["errors"][0]["pointer"] == "/contextId"
    ask.ok("POST", f"/workflows/{run}/cancel")
    shown = ask.ok("GET", f"/tasks/{first}")
    assert (shown["state"], shown["cancelledBecause"]) == ("cancelled", "workflow_cancelled")
    assert ask.ok("GET", f"/tasks/{second}")["state"] == "completed"
    # Neither a new task nor another attempt at one that ended with the run.
    for refused in (ask("POST", "/queues/queue_podcast/tasks", body), ask("POST", f"/tasks/{first}/retry")):
        assert (refused.status, refused.json["code"]) == (409, "workflow_ended")
    ended = ask.ok("GET", f"/workflows/{run}/state")
    assert [one["state"] for one in ended["moreTasks"]] == ["cancelled", "completed"]
    past = ask.ok("GET", f"/workflows/{run}/state?at={before}")
    assert [one["state"] for one in past["moreTasks"]] == ["available", "completed"]
    unknown = ask("POST", "/queues/queue_podcast/tasks", body | {"workflowId": "wf_789"})
    assert unknown.json["errors"][0]["pointer"] == "/workflowId"


def test_a_paused_run_offers_nothing_in_any_view(ask: Stranger) -> None:
    run, agent_id = begin(ask), register(ask)
    ask.ok("POST", f"/roles/role_producer/agents/{agent_id}")
    task_id = open_tasks(ask)["guest_intake"]
    ask.ok("POST", f"/workflows/{run}/pause")
    state = ask.ok("GET", f"/workflows/{run}/state")
    assert (state["status"], state["availableTasks"]) == ("paused", [])
    assert state["tasks"][0]["waitsBecause"] == "paused"
    assert open_tasks(ask) == {}
    reasons = ask.ok("GET", f"/tasks/{task_id}/explain")["reasons"]
    assert [one["code"] for one in reasons] == ["workflow_paused"]
    for wanted, there in (("paused", [run]), ("live", [run]), ("running", []), ("completed", []), ("ended", [])):
        assert [one["workflowId"] for one in ask.ok("GET", f"/workflows?state={wanted}")["items"]] == there, wanted
    ask.ok("POST", f"/workflows/{run}/resume")
    assert ask.ok("GET", f"/workflows/{run}/state")["availableTasks"] == ["guest_intake"]
    ask.ok("POST", f"/workflows/{run}/cancel")
    assert [one["workflowId"] for one in ask.ok("GET", "/workflows?state=cancelled")["items"]] == [run]


def test_the_history_shows_how_won_claims_ended(ask: Stranger) -> None:
    agent_id = register(ask)
    ends = {"complete": {}, "fail": {"reason": "no"}, "release": None, "cancel": None, "": None}
    expected: dict[str, str] = {}
    words = {"complete": "completed", "fail": "failed", "release": "released", "cancel": "cancelled", "": "held"}
    for act, body in ends.items():
        task_id = ask.ok("POST", "/queues/queue_podcast/tasks", {"title": "Write"})["taskId"]
        claim_id = claim(ask, task_id, agent_id)["claimId"]
        if act == "cancel":
            ask.ok("POST", f"/tasks/{task_id}/cancel")
        elif act:
            ask.ok("POST", f"/claims/{claim_id}/{act}", body)
        expected[claim_id] = words[act]
    items = ask.ok("GET", f"/agents/{agent_id}/claim-history")["items"]
    assert {one["claimId"]: one["ended"] for one in items} == expected


def test_a_task_keeps_its_creation_time_over_retries(ask: Stranger) -> None:
    agent_id = register(ask)
    body = {"title": "Write", "retry": {"maxAttempts": 2}}
    task_id = ask.ok("POST", "/queues/queue_podcast/tasks", body)["taskId"]
    created = ask.ok("GET", f"/tasks/{task_id}")["createdAt"]
    ask.ok("POST", f"/claims/{claim(ask, task_id, agent_id)['claimId']}/fail", {"reason": "no"})
    again = ask.ok("GET", f"/tasks/{task_id}")
    assert (again["attempt"], again["createdAt"]) == (2, created)
