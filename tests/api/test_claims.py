"""Claims over HTTP: exactly one winner, whom the losers learn, and everything a holder may do until its claim ends."""

from __future__ import annotations

import base64
import hashlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, gauge, head, register, until
from tests.harness.client import Client


def agents(workspace: Workspace, count: int) -> list[str]:
    begin_queue(workspace.admin)
    return [str(register(workspace.admin, f"Agent {number}")["agentId"]) for number in range(count)]


def won(client: Client, task_id: str, agent_id: str, lease: int = 600) -> str:
    reply = client.post(f"/tasks/{task_id}/claim", {"agentId": agent_id, "leaseSeconds": lease}).json
    assert reply["status"] == "claimed", reply
    return str(reply["claimId"])


def act(client: Client, claim_id: str, what: str, body: Any = None, **more: Any) -> Any:
    return client.post(f"/claims/{claim_id}/{what}", body, **more)


def test_claimed_and_missed_have_exactly_the_shapes_of_the_seed(workspace: Workspace) -> None:
    first, second = agents(workspace, 2)
    task_id = create_task(workspace.admin)
    body = {"agentId": first, "leaseSeconds": 600, "idempotencyKey": "claim-001"}
    won = workspace.admin.post(f"/tasks/{task_id}/claim", body).json
    assert won.keys() == {"status", "taskId", "claimId", "agentId", "leaseExpiresAt", "eventId"}
    assert (won["status"], won["taskId"], won["agentId"]) == ("claimed", task_id, first)
    missed = claim(workspace.admin, task_id, second)
    assert missed == {
        "status": "missed",
        "taskId": task_id,
        "agentId": second,
        "reason": "claim_already_won",
        "winningClaimId": won["claimId"],
        "winningAgentId": first,
        "eventId": missed["eventId"],
        "next": {"action": "poll_available_tasks", "queueId": "queue_q"},
    }
    events = workspace.admin.get(f"/tasks/{task_id}/events").json["items"]
    assert [event["type"] for event in events] == [
        "task.created",
        "task.available",
        "task.claim_attempted",
        "task.claimed",
        "task.claim_attempted",
        "task.claim_missed",
    ]
    assert [event["eventId"] for event in events if event["type"] in ("task.claimed", "task.claim_missed")] == [
        won["eventId"],
        missed["eventId"],
    ]


def test_a_completed_task_is_missed_and_a_loser_in_a_loop_does_not_fill_the_ledger(workspace: Workspace) -> None:
    first, second = agents(workspace, 2)
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, first)
    missed = claim(workspace.admin, task_id, second)
    before = head(workspace.admin)
    assert [claim(workspace.admin, task_id, second) for _ in range(5)] == [missed] * 5
    assert claim(workspace.admin, task_id, first)["claimId"] == claim_id
    assert head(workspace.admin) == before
    act(workspace.admin, claim_id, "complete")
    third = claim(workspace.admin, task_id, register(workspace.admin, "Late")["agentId"])
    assert (third["reason"], third["winningAgentId"]) == ("task_completed", first)


@pytest.mark.parametrize("lease", [0, -1, 4, 86401, 10**9])
def test_a_lease_beyond_the_limits_is_rejected_and_recorded(workspace: Workspace, lease: int) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    reply = workspace.admin.post(f"/tasks/{task_id}/claim", {"agentId": agent, "leaseSeconds": lease}).json
    assert (reply["status"], reply["reason"]) == ("rejected", "invalid_lease")
    assert reply["next"]["action"] == "ask_for_another_lease"
    event = workspace.admin.get(f"/events/{reply['eventId']}").json
    assert (event["type"], event["data"]["reason"]) == ("task.claim_rejected", "invalid_lease")
    following = workspace.admin.post("/queues/q/claim-next", {"agentId": agent, "leaseSeconds": lease}).json
    assert (following["status"], following["reason"]) == ("rejected", "invalid_lease")


@pytest.mark.parametrize("lease", [2**31, 1.5, "600", True])
def test_a_lease_that_is_no_number_of_seconds_is_no_claim(workspace: Workspace, lease: Any) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    reply = workspace.admin.post(f"/tasks/{task_id}/claim", {"agentId": agent, "leaseSeconds": lease})
    assert (reply.status, reply.json["errors"][0]["pointer"]) == (422, "/leaseSeconds")


def test_every_reason_to_reject_is_reported_in_the_order_of_the_checks(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    for role in ("writer", "reader"):
        workspace.admin.post("/roles", {"name": role, "capabilities": [f"{role}_skill"]})
    open_task = create_task(workspace.admin)
    task_id = create_task(
        workspace.admin, requiredRoles=["writer"], requiredCapabilities=["reader_skill"], dependsOn=[open_task]
    )

    def reason(**more: Any) -> tuple[str, str]:
        reply = workspace.admin.post(f"/tasks/{task_id}/claim", {"agentId": agent, **more}).json
        assert reply["status"] == "rejected"
        return reply["reason"], reply.get("detail", "")

    workspace.admin.post(f"/agents/{agent}/deactivate")
    assert reason(leaseSeconds=1) == ("inactive_agent", "")
    workspace.admin.patch(f"/agents/{agent}", {"active": True})
    assert reason(leaseSeconds=1) == ("missing_role", "role_writer")
    workspace.admin.post(f"/roles/writer/agents/{agent}")
    assert reason(leaseSeconds=1) == ("missing_capability", "reader_skill")
    workspace.admin.post(f"/roles/reader/agents/{agent}")
    workspace.admin.patch("/queues/q", {"maxLiveClaims": 1})
    claim_id = won(workspace.admin, open_task, agent)
    assert reason(leaseSeconds=1) == ("policy", "live_claims")
    workspace.admin.patch("/queues/q", {"maxLiveClaims": 2})
    assert reason(leaseSeconds=1) == ("invalid_lease", "5-86400")
    assert reason() == ("dependency_unsatisfied", open_task)
    act(workspace.admin, claim_id, "complete")
    workspace.admin.patch("/queues/q", {"paused": True})
    assert reason() == ("task_not_available", "paused")
    workspace.admin.post(f"/tasks/{task_id}/cancel")
    assert reason() == ("task_not_available", "cancelled")


def test_of_many_concurrent_claims_one_wins_and_the_others_learn_who(workspace: Workspace) -> None:
    asking = agents(workspace, 16)
    for _ in range(3):
        task_id = create_task(workspace.admin)
        callers = [workspace.server.client(workspace.admin.key) for _ in asking]
        with ThreadPoolExecutor(len(asking)) as threads:
            replies = list(threads.map(claim, callers, repeat(task_id), asking))
        for caller in callers:
            caller.close()
        winners = [reply for reply in replies if reply["status"] == "claimed"]
        assert len(winners) == 1
        assert {
            (reply["winningClaimId"], reply["winningAgentId"]) for reply in replies if reply["status"] == "missed"
        } == {(winners[0]["claimId"], winners[0]["agentId"])}


def test_an_agent_key_claims_for_its_agent_alone(workspace: Workspace) -> None:
    own, another = agents(workspace, 2)
    task_id = create_task(workspace.admin)
    caller = workspace.caller("agent", agent_id=own)
    for path in (f"/tasks/{task_id}/claim", "/queues/q/claim-next"):
        reply = caller.post(path, {"agentId": another})
        assert (reply.status, reply.json["code"]) == (404, "agent_not_found")
        assert reply.content == caller.post(path, {"agentId": "agt_nobody"}).content
    foreign = won(workspace.admin, task_id, another)
    for what in ("start", "heartbeat", "release", "complete"):
        reply = act(caller, foreign, what)
        assert reply.content == act(caller, "clm_nobody", what).content
        assert (reply.status, reply.json["code"]) == (404, "claim_not_found")
    assert workspace.admin.get(f"/tasks/{task_id}").json["claim"]["claimId"] == foreign
    assert workspace.caller("produce").post(f"/tasks/{task_id}/claim", {"agentId": own}).status == 403
    assert workspace.caller("runner").post(f"/tasks/{task_id}/claim", {"agentId": own}).json["status"] == "missed"


def test_start_extend_and_release_of_a_claim_are_each_an_event(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, agent)
    started = act(workspace.admin, claim_id, "start").json
    assert (started["status"], started["taskId"], started["claimId"]) == ("started", task_id, claim_id)
    assert act(workspace.admin, claim_id, "start").json["code"] == "already_started"
    before = head(workspace.admin)
    held = [act(workspace.admin, claim_id, "heartbeat").json for _ in range(3)]
    assert held[0]["state"] == "held"
    assert held == [held[0]] * 3
    assert head(workspace.admin) == before
    assert act(workspace.admin, claim_id, "plan", {"plan": {"steps": ["read", "write"]}}).json["status"] == "planned"
    assert act(workspace.admin, claim_id, "release").json["status"] == "released"
    assert workspace.admin.get(f"/tasks/{task_id}").json["state"] == "available"
    assert act(workspace.admin, claim_id, "heartbeat").json == {"state": "lease_lost"}
    refused = act(workspace.admin, claim_id, "complete")
    assert (refused.status, refused.json["code"]) == (409, "lease_lost")
    assert refused.headers["x-should-retry"] == "false"


def test_an_expired_claim_is_lost_to_another_agent_or_continues_if_none_came(workspace: Workspace) -> None:
    first, second = agents(workspace, 2)
    kept, taken = create_task(workspace.admin), create_task(workspace.admin)
    keeper, loser = won(workspace.admin, kept, first, 5), won(workspace.admin, taken, first, 5)
    until(lambda: workspace.admin.get(f"/tasks/{taken}").json["state"] == "available")
    winner = won(workspace.admin, taken, second)
    before = head(workspace.admin)
    for what, body in (("complete", None), ("fail", {"reason": "x"}), ("release", None), ("start", None)):
        refused = act(workspace.admin, loser, what, body)
        assert (refused.status, refused.json["code"]) == (409, "lease_lost")
        assert second in refused.json["detail"]
    assert act(workspace.admin, loser, "heartbeat").json == {"state": "lease_lost"}
    assert head(workspace.admin) == before
    assert workspace.admin.get(f"/tasks/{taken}").json["claim"]["claimId"] == winner
    until(lambda: workspace.admin.get(f"/tasks/{kept}").json["state"] == "available")
    assert act(workspace.admin, keeper, "complete").json["status"] == "completed"
    events = [event["type"] for event in workspace.admin.get(f"/claims/{keeper}/events").json["items"]]
    assert events[-3:] == ["task.lease_expired", "task.lease_extended", "task.complete"]


def test_claim_next_gives_the_best_task_with_its_input_and_brief(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    low, urgent = (create_task(workspace.admin, priority=one, input={"p": one}) for one in ("low", "urgent"))
    reply = workspace.admin.post("/queues/q/claim-next", {"agentId": agent, "leaseSeconds": 60}).json
    assert (reply["status"], reply["taskId"]) == ("claimed", urgent)
    assert reply["task"]["input"] == {"p": "urgent"}
    assert "claims" not in reply
    assert workspace.admin.post("/queues/q/claim-next", {"agentId": agent}).json["taskId"] == low
    empty = workspace.admin.post("/queues/q/claim-next", {"agentId": agent}).json
    assert empty == {
        "status": "no_tasks",
        "agentId": agent,
        "queueId": "queue_q",
        "next": {"action": "wait", "queueId": "queue_q"},
    }
    assert workspace.admin.post("/queues/nobody/claim-next", {"agentId": agent}).json["code"] == "queue_not_found"
    assert workspace.admin.post("/queues/q/claim-next", {"agentId": "agt_nobody"}).json["code"] == "agent_not_found"


def test_claim_next_gives_several_at_once(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    tasks = [create_task(workspace.admin) for _ in range(5)]
    reply = workspace.admin.post("/queues/q/claim-next", {"agentId": agent, "count": 3}, key="many-1")
    assert [one["taskId"] for one in reply.json["claims"]] == tasks[:3]
    assert reply.json["taskId"] == tasks[0]
    assert (
        workspace.admin.post("/queues/q/claim-next", {"agentId": agent, "count": 3}, key="many-1").content
        == reply.content
    )
    rest = workspace.admin.post("/queues/q/claim-next", {"agentId": agent, "count": 100}).json
    assert [one["taskId"] for one in rest["claims"]] == tasks[3:]
    for count in (0, 101):
        assert workspace.admin.post("/queues/q/claim-next", {"agentId": agent, "count": count}).status == 422


def test_claim_next_waits_for_a_task_that_fits_and_not_longer(workspace: Workspace) -> None:
    plain, writer = agents(workspace, 2)
    workspace.admin.post("/roles", {"name": "Writer"})
    workspace.admin.post(f"/roles/writer/agents/{writer}")
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        waits = [
            threads.submit(
                stack.enter_context(workspace.server.client(workspace.admin.key)).post,
                "/queues/q/claim-next",
                {"agentId": agent, "wait": 30},
            )
            for agent in (plain, writer)
        ]
        until(lambda: gauge(workspace.server.url, "redkey_waiting") >= 2)
        # The first in line may not have it, so the second gets it.
        writing = create_task(workspace.admin, requiredRoles=["writer"])
        assert waits[1].result(20).json["taskId"] == writing
        free = create_task(workspace.admin)
        assert waits[0].result(20).json["taskId"] == free
    begun = time.monotonic()
    assert workspace.admin.post("/queues/q/claim-next", {"agentId": plain, "wait": 0.5}).json["status"] == "no_tasks"
    # The timers of a server count whole milliseconds.
    assert time.monotonic() - begun >= 0.49


def test_a_caller_whose_connection_is_gone_gets_no_claim(workspace: Workspace) -> None:
    gone, there = agents(workspace, 2)
    host, port = workspace.server.url.removeprefix("http://").split(":")
    body = f'{{"agentId":"{gone}","wait":60}}'.encode()
    waiting = gauge(workspace.server.url, "redkey_waiting")
    answering = gauge(workspace.server.url, "redkey_requests_open")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            b"POST /queues/queue_q/claim-next HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            + f"Authorization: Bearer {workspace.admin.key}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        until(lambda: gauge(workspace.server.url, "redkey_waiting") > waiting)
    until(lambda: gauge(workspace.server.url, "redkey_requests_open") <= answering)
    task_id = create_task(workspace.admin)
    assert workspace.admin.get(f"/tasks/{task_id}").json["state"] == "available"
    assert claim(workspace.admin, task_id, there)["status"] == "claimed"
    assert workspace.admin.get(f"/agents/{gone}/claim-history").json["items"] == []


def test_a_completion_shows_what_was_done(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, agent)
    body = {
        "output": {"facts": 5},
        "summary": "Five facts found.",
        "notes": "One source is paid.",
        "costUsd": 0.25,
        "durationSeconds": 90,
        "semantic": "pass",
    }
    reply = act(workspace.admin, claim_id, "complete", body, key="done-1")
    assert reply.json.keys() == {"status", "taskId", "claimId", "eventId"}
    assert act(workspace.admin, claim_id, "complete", body, key="done-1").content == reply.content
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    assert {name: shown[name] for name in ("output", "summary", "notes", "completedBy")} == {
        "output": {"facts": 5},
        "summary": "Five facts found.",
        "notes": "One source is paid.",
        "completedBy": agent,
    }
    data = workspace.admin.get(f"/events/{reply.json['eventId']}").json["data"]
    assert (data["costUsd"], data["durationSeconds"]) == (0.25, 90)
    assert data["verification"] == {"mechanical": "pass", "semantic": "pass", "attempts": 1}
    assert act(workspace.admin, claim_id, "complete", body).json["code"] == "already_terminal"
    other = act(workspace.admin, claim_id, "complete", {"summary": "Another body"}, key="done-1")
    assert (other.status, other.json["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"summary": "word " * 151}, "/summary"),
        ({"costUsd": -1}, "/costUsd"),
        ({"durationSeconds": -1}, "/durationSeconds"),
        ({"semantic": "maybe"}, "/semantic"),
        ({"artifactIds": ["art_nobody"]}, "/artifactIds"),
        ({"claimNext": {"queueId": "q", "leaseSeconds": 1}}, "/claimNext/leaseSeconds"),
        ({"verification": {"mechanical": "pass"}}, "/verification"),
    ],
)
def test_a_bad_completion_is_refused_and_the_claim_stays_active(
    workspace: Workspace, body: dict[str, Any], pointer: str
) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    before = head(workspace.admin)
    reply = act(workspace.admin, claim_id, "complete", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}
    assert head(workspace.admin) == before
    assert act(workspace.admin, claim_id, "heartbeat").json["state"] == "held"


def test_the_next_claim_comes_with_the_end_of_the_last(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    first, second = (create_task(workspace.admin, input=number) for number in range(2))
    claim_id = won(workspace.admin, first, agent)
    following = {"claimNext": {"queueId": "q", "leaseSeconds": 60}}
    reply = act(workspace.admin, claim_id, "complete", following, key="next-1")
    assert (reply.json["next"]["status"], reply.json["next"]["taskId"]) == ("claimed", second)
    assert reply.json["next"]["task"]["input"] == 1
    assert act(workspace.admin, claim_id, "complete", following, key="next-1").content == reply.content
    claim_id = reply.json["next"]["claimId"]
    body = {"reason": "broken", "kind": "error", **following}
    failed = act(workspace.admin, claim_id, "fail", body, key="next-2")
    assert (failed.json["status"], failed.json["retry"]) == ("failed", False)
    assert failed.json["next"]["status"] == "no_tasks"
    create_task(workspace.admin)
    # What was not there then is not there for the same request now.
    assert act(workspace.admin, claim_id, "fail", body, key="next-2").content == failed.content
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    unknown = act(workspace.admin, claim_id, "complete", {"claimNext": {"queueId": "nobody"}})
    assert (unknown.status, unknown.json["code"]) == (404, "queue_not_found")
    assert act(workspace.admin, claim_id, "heartbeat").json["state"] == "held"


def test_a_batch_of_completions_gives_each_its_own_result(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    claims = [won(workspace.admin, create_task(workspace.admin), agent) for _ in range(3)]
    items = [{"claimId": claims[0], "summary": "One"}, {"claimId": "clm_nobody"}, {"claimId": claims[2], "output": 3}]
    reply = workspace.admin.post("/claims/complete", {"claims": items}, key="batch-1")
    assert [item.get("claim", item.get("problem"))["status"] for item in reply.json["items"]] == [
        "completed",
        404,
        "completed",
    ]
    assert workspace.admin.post("/claims/complete", {"claims": items}, key="batch-1").content == reply.content
    assert act(workspace.admin, claims[1], "heartbeat").json["state"] == "held"
    long = [{"claimId": claims[1], "summary": "word " * 151}]
    problem = workspace.admin.post("/claims/complete", {"claims": long}).json["items"][0]["problem"]
    assert problem["errors"][0]["pointer"] == "/claims/0/summary"
    for bad in ([], [{"claimId": claims[1]}] * 501, [{"summary": "whose?"}]):
        assert workspace.admin.post("/claims/complete", {"claims": bad}).status == 422


def test_artifacts_come_inline_by_hash_or_by_uri(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin, outputs=["text", "json", "bytes", "put"])
    claim_id = won(workspace.admin, task_id, agent)
    stored = b"put before"
    digest = hashlib.sha256(stored).hexdigest()
    assert workspace.admin.put("/content", stored).status in (200, 201)
    bodies = [
        {"name": "text", "content": "words", "mediaType": "text/markdown"},
        {"name": "json", "content": {"b": 1, "a": [2]}},
        {"name": "bytes", "contentBase64": base64.b64encode(b"\x00\xff").decode()},
        {"name": "put", "sha256": digest},
        {"name": "elsewhere", "uri": "https://example.com/a.pdf", "sha256": "b" * 64, "bytes": 1000},
    ]
    missing = act(workspace.admin, claim_id, "complete").json
    assert (missing["code"], "text" in missing["detail"]) == ("missing_artifact", True)
    added = [act(workspace.admin, claim_id, "artifacts", body) for body in bodies]
    assert [(one.status, one.json["version"]) for one in added] == [(201, 1)] * 5
    assert added[1].json["sha256"] == hashlib.sha256(b'{"a":[2],"b":1}').hexdigest()
    assert workspace.admin.get(f"/content/{added[0].json['sha256']}").content == b"words"
    again = act(
        workspace.admin,
        claim_id,
        "artifacts",
        {**bodies[0], "content": "better", "artifactId": added[0].json["artifactId"]},
    )
    assert (again.json["version"], again.json["artifactId"]) == (2, added[0].json["artifactId"])
    shown = {one["name"]: one for one in workspace.admin.get(f"/tasks/{task_id}").json["artifacts"]}
    assert (shown["text"]["version"], shown["text"]["mediaType"]) == (2, "text/markdown")
    assert (shown["json"]["mediaType"], shown["bytes"]["bytes"]) == ("application/json", 2)
    assert shown["elsewhere"]["uri"] == "https://example.com/a.pdf"
    assert act(workspace.admin, claim_id, "complete").json["status"] == "completed"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"content": "x"}, "/name"),
        ({"name": "Not A Slug", "content": "x"}, "/name"),
        ({"name": "a"}, "/content"),
        ({"name": "a", "content": "x", "contentBase64": "eA=="}, "/content"),
        ({"name": "a", "content": "x", "uri": "https://example.com/"}, "/content"),
        ({"name": "a", "contentBase64": "%%%"}, "/contentBase64"),
        ({"name": "a", "content": "x", "sha256": "a" * 64}, "/sha256"),
        ({"name": "a", "content": "x", "bytes": 2}, "/bytes"),
        ({"name": "a", "sha256": "a" * 64}, "/sha256"),
        ({"name": "a", "uri": "https://example.com/"}, "/content"),
        ({"name": "a", "uri": "https://example.com/", "sha256": "a" * 64}, "/bytes"),
        ({"name": "a", "content": "x", "readiness": "done"}, "/readiness"),
        ({"name": "a", "content": "x", "artifactId": "art_01JTMX9A2B3C4D5E6F7G8H9JKP"}, "/artifactId"),
        ({"name": "a", "content": "x", "mediaType": "nonsense"}, "/mediaType"),
    ],
)
def test_a_bad_artifact_is_refused_with_its_place(workspace: Workspace, body: dict[str, Any], pointer: str) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    reply = act(workspace.admin, claim_id, "artifacts", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}


def test_a_draft_is_not_an_output_and_erased_bytes_are_missing(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin, outputs=["packet"]), agent)
    draft = act(
        workspace.admin, claim_id, "artifacts", {"name": "packet", "content": "draft", "readiness": "draft"}
    ).json
    assert act(workspace.admin, claim_id, "complete").json["code"] == "missing_artifact"
    ready = act(workspace.admin, claim_id, "artifacts", {"name": "packet", "content": "ready"}).json
    assert workspace.admin.delete(f"/content/{ready['sha256']}").status == 200
    refused = act(workspace.admin, claim_id, "complete")
    assert (refused.status, refused.json["code"]) == (422, "missing_artifact")
    body = {"name": "packet", "content": "again", "artifactId": ready["artifactId"]}
    act(workspace.admin, claim_id, "artifacts", body)
    assert act(workspace.admin, claim_id, "complete").json["status"] == "completed"
    assert draft["artifactId"] != ready["artifactId"]


def test_a_failure_says_why_and_a_rejected_task_is_not_tried_again(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    for kind, again in (("error", True), ("timeout", True), ("verification", True), ("rejected", False)):
        task_id = create_task(workspace.admin, retry={"maxAttempts": 2})
        claim_id = won(workspace.admin, task_id, agent)
        reply = act(workspace.admin, claim_id, "fail", {"reason": f"because {kind}", "kind": kind}).json
        assert (reply["status"], reply["retry"]) == ("failed", again)
        state = workspace.admin.get(f"/tasks/{task_id}").json
        assert state["state"] == ("available" if again else "failed")
    assert state["failure"] == {"kind": "rejected", "reason": "because rejected"}
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    for bad in ({}, {"reason": ""}, {"reason": "x", "kind": "deadline"}, {"reason": "x", "retry": True}):
        assert act(workspace.admin, claim_id, "fail", bad).status == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"reason": "x"}, "/blockerType"),
        ({"reason": "x", "blockerType": "mood"}, "/blockerType"),
        ({"blockerType": "auth"}, "/reason"),
        ({"reason": "x", "blockerType": "dependency", "dependsOn": ["task_01JTMX9A2B3C4D5E6F7G8H9JKP"]}, "/dependsOn"),
    ],
)
def test_a_bad_block_is_refused_with_its_place(workspace: Workspace, body: dict[str, Any], pointer: str) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    reply = act(workspace.admin, claim_id, "block", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}


def test_the_same_key_gives_the_same_bytes_for_everything_a_holder_does(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    steps: list[tuple[str, Any]] = [
        ("start", None),
        ("plan", {"plan": [1]}),
        ("artifacts", {"name": "a", "content": "x"}),
        ("block", {"reason": "x", "blockerType": "auth"}),
    ]
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    for what, body in steps:
        first = act(workspace.admin, claim_id, what, body, key=f"k-{what}")
        assert first.status in (200, 201)
        repeated = [act(workspace.admin, claim_id, what, body, key=f"k-{what}").content for _ in range(10)]
        assert set(repeated) == {first.content}
    released = won(workspace.admin, create_task(workspace.admin), agent)
    first = act(workspace.admin, released, "release", key="r")
    assert act(workspace.admin, released, "release", key="r").content == first.content


def test_a_claim_body_and_header_with_different_keys_is_refused(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    body = {"agentId": agent, "idempotencyKey": "one"}
    reply = workspace.admin.post(f"/tasks/{task_id}/claim", body, key="two")
    assert (reply.status, reply.json["code"]) == (422, "idempotency_key_mismatch")
    first = workspace.admin.post(f"/tasks/{task_id}/claim", body, key="one")
    assert workspace.admin.post(f"/tasks/{task_id}/claim", body).content == first.content
