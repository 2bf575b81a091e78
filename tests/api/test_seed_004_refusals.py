"""Refusals for agents: the exact reason, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.test_seed_004 import CARD, ask, claim, register
from tests.harness.secret_samples import SAMPLES
from tests.harness.stranger import Stranger

__all__ = ["ask"]


@pytest.fixture
def agent_id(ask: Stranger) -> str:
    return register(ask)


def new_task(ask: Stranger, **more: Any) -> str:
    return str(ask.ok("POST", "/queues/queue_podcast/tasks", {"title": "Write", **more})["taskId"])


def test_an_agent_that_claims_a_task_it_finished_learns_that(ask: Stranger, agent_id: str) -> None:
    task_id = new_task(ask)
    claim_id = claim(ask, task_id, agent_id)["claimId"]
    ask.ok("POST", f"/claims/{claim_id}/complete", {})
    again = ask.ok("POST", f"/tasks/{task_id}/claim", {"agentId": agent_id})
    assert (again["status"], again["reason"], again["detail"]) == ("rejected", "completed_by_you", claim_id)
    assert (again["taskId"], again["next"]["action"]) == (task_id, "poll_available_tasks")
    assert ask.ok("GET", f"/agents/{agent_id}/events?type=task.claim_missed")["items"] == []
    # Another agent has missed it.
    other = register(ask, "Second Agent")
    missed = ask.ok("POST", f"/tasks/{task_id}/claim", {"agentId": other})
    assert (missed["status"], missed["winningAgentId"]) == ("missed", agent_id)


def test_a_heartbeat_on_an_ended_claim_shows_how_it_ended(ask: Stranger, agent_id: str) -> None:
    for ending, body, state in (("complete", {}, "completed"), ("fail", {"reason": "no"}, "failed")):
        claim_id = claim(ask, new_task(ask), agent_id)["claimId"]
        ask.ok("POST", f"/claims/{claim_id}/{ending}", body)
        assert ask.ok("POST", f"/claims/{claim_id}/heartbeat", {})["state"] == state
    # One that gave it back holds nothing, whatever others made of it.
    task_id, other = new_task(ask), register(ask, "Second Agent")
    lost = claim(ask, task_id, agent_id)["claimId"]
    ask.ok("POST", f"/claims/{lost}/release")
    ask.ok("POST", f"/claims/{claim(ask, task_id, other)['claimId']}/complete", {})
    assert ask.ok("POST", f"/claims/{lost}/heartbeat", {})["state"] == "lease_lost"


def test_a_deactivated_agent_may_only_release(ask: Stranger, agent_id: str) -> None:
    task_id = new_task(ask)
    claim_id = claim(ask, task_id, agent_id)["claimId"]
    ask.ok("POST", f"/agents/{agent_id}/deactivate")
    for act, body in (("heartbeat", {}), ("start", None), ("complete", {}), ("fail", {"reason": "no"})):
        refused = ask("POST", f"/claims/{claim_id}/{act}", body)
        assert (refused.status, refused.json["code"]) == (409, "inactive_agent"), act
        assert f"POST /claims/{claim_id}/release" in refused.json["detail"]
    assert ask.ok("POST", f"/claims/{claim_id}/release")["status"] == "released"
    assert ask.ok("GET", f"/tasks/{task_id}")["state"] == "available"


def test_rejections_name_bounds_and_tasks(ask: Stranger, agent_id: str) -> None:
    first = new_task(ask)
    waiting = new_task(ask, dependsOn=[first])
    for seconds in (-5, 4, 86401):
        body = {"agentId": agent_id, "leaseSeconds": seconds}
        rejected = ask.ok("POST", f"/tasks/{first}/claim", body)
        assert (rejected["reason"], rejected["detail"]) == ("invalid_lease", "5-86400")
        assert "5 to 86400 seconds" in rejected["next"]["detail"]
        nexts = ask.ok("POST", "/queues/queue_podcast/claim-next", body)
        assert (nexts["reason"], nexts["detail"]) == ("invalid_lease", "5-86400")
    rejected = ask.ok("POST", f"/tasks/{waiting}/claim", {"agentId": agent_id})
    assert (rejected["reason"], rejected["detail"]) == ("dependency_unsatisfied", first)
    assert rejected["next"] == {"action": "complete_dependency", "queueId": "queue_podcast", "taskId": first}


def test_a_key_reused_at_another_path_is_reported_as_such(ask: Stranger) -> None:
    ask.ok("POST", "/queues", {"name": "other"})
    key, body = {"idempotency-key": "one"}, {"title": "Write"}
    assert ask("POST", "/queues/podcast/tasks", body, headers=key).status == 201
    elsewhere = ask("POST", "/queues/other/tasks", body, headers=key)
    assert (elsewhere.status, elsewhere.json["code"]) == (422, "idempotency_key_reused")
    assert "at another path" in elsewhere.json["detail"]
    changed = ask("POST", "/queues/podcast/tasks", {"title": "Read"}, headers=key)
    assert (changed.status, "another body" in changed.json["detail"]) == (422, True)


def test_every_secret_of_a_request_is_reported(ask: Stranger) -> None:
    first, second = (samples[0] for samples in list(SAMPLES.values())[:2])
    body = {"title": "Write", "input": {"a": first, "b": [{"c": second}]}}
    refused = ask("POST", "/queues/podcast/tasks", body)
    assert refused.json["code"] == "secret_detected"
    assert [one["pointer"] for one in refused.json["errors"]] == ["/input/a", "/input/b/0/c"]
    assert first not in refused.text


@pytest.mark.parametrize("name", ["Podcast production for the autumn season", "日本", "x" * 200])
def test_names_of_any_length_and_script_work(ask: Stranger, name: str) -> None:
    for path, listed in (("/queues", "queueId"), ("/roles", "id")):
        made = ask.ok("POST", path, {"name": name})
        shown = ask.ok("GET", f"{path}/{made[listed]}")
        assert (shown["name"], shown[listed]) == (name, made[listed])
        again = ask("POST", path, {"name": name})
        assert again.status == 409, "the same name has the same id"
        assert ask.ok("POST", path, {"name": name + "!" if len(name) < 200 else "y" * 200})[listed] != made[listed]


def test_roles_that_fit_are_worked_out_and_never_granted(ask: Stranger) -> None:
    for name, able in (("researcher", ["web_search", "source_review"]), ("writer", ["prose"]), ("anyone", [])):
        ask.ok("POST", "/roles", {"id": f"role_{name}", "name": name, "capabilities": able})
    card = CARD | {"skills": [{"id": "web_search", "name": "Web search", "tags": ["source_review", "extra"]}]}
    agent = ask.ok("POST", "/agents/register-card", {"agentCard": card, "eligibleRoles": ["anyone"]})
    assert agent["eligibleRoles"] == ["role_anyone", "role_researcher"]
    assert agent["roleMatches"] == [{"roleId": "role_researcher", "matched": ["web_search", "source_review"]}]
    assert agent["roles"] == []
    task_id = new_task(ask, requiredRoles=["role_researcher"])
    assert ask.ok("POST", f"/tasks/{task_id}/claim", {"agentId": agent["agentId"]})["reason"] == "missing_role"
    bare = ask.ok("POST", "/agents/register-card", {"agentCard": {"name": "Bare"}})
    for listed in ("skills", "authRequirements", "eligibleRoles", "roleMatches", "endpoints", "features", "roles"):
        assert bare[listed] == [], listed
    changed = ask.ok("PATCH", f"/agents/{bare['agentId']}", {"agentCard": card | {"name": "Bare"}})
    assert changed["eligibleRoles"] == ["role_researcher"]


@pytest.mark.parametrize(
    ("path", "pointer", "words"),
    [
        ("/workflows?state=foo", "/state", "running, paused"),
        ("/queues/queue_podcast/tasks?state=open", "/state", "awaiting_approval"),
        ("/queues/queue_podcast/tasks", "/state", "awaiting_approval"),
        ("/gates?state=approved", "/state", "open"),
    ],
)
def test_a_wrong_or_missing_filter_is_refused_with_its_allowed_values(
    path: str, pointer: str, words: str, ask: Stranger
) -> None:
    refused = ask("GET", path)
    (error,) = refused.json["errors"]
    assert (refused.status, error["pointer"]) == (422, pointer)
    assert all(word in error["message"] for word in words.split(", ")), error["message"]


@pytest.mark.parametrize("blank", [" ", "\t\n", "\u2003"])
def test_a_title_or_name_that_cannot_be_seen_is_refused(blank: str, ask: Stranger) -> None:
    before = ask.ok("GET", "/ledger/query?order=desc&limit=1")["items"]
    for path, body, pointer in (
        ("/queues/queue_podcast/tasks", {"title": blank}, "/title"),
        ("/queues", {"name": blank}, "/name"),
        ("/roles", {"name": blank}, "/name"),
        ("/projects", {"name": blank}, "/name"),
    ):
        refused = ask("POST", path, body)
        (error,) = refused.json["errors"]
        assert (refused.status, error["pointer"]) == (422, pointer)
        assert error["message"].endswith("has no visible character")
    assert ask.ok("GET", "/ledger/query?order=desc&limit=1")["items"] == before


def test_a_slot_is_one_line(ask: Stranger) -> None:
    card = {"name": "Ada", "description": "d", "url": "https://a.example.com/a", "version": "1"}
    refused = ask(
        "POST", "/agents/register-card", {"agentCard": {**card, "skills": [], "capabilities": {}}, "slot": "a\n"}
    )
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/slot")
