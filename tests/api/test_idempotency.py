"""A repeated request always gets the same bytes; another request with its key is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, gauge, head, register, until
from tests.harness.client import Client
from tests.harness.server import Server


def acts(workspace: Workspace) -> dict[str, tuple[str, dict[str, Any]]]:
    """One request of each kind that a repeated key must not do twice."""
    admin = workspace.admin
    begin_queue(admin)
    agent_id = register(admin)["agentId"]
    held = claim(admin, create_task(admin), agent_id)["claimId"]
    return {
        "queue": ("/queues", {"name": "another"}),
        "task": ("/queues/queue_q/tasks", {"title": "T", "input": {"a": 1}}),
        "claim": (f"/tasks/{create_task(admin)}/claim", {"agentId": agent_id}),
        "next": ("/queues/queue_q/claim-next", {"agentId": agent_id}),
        "complete": (f"/claims/{held}/complete", {"output": {"b": 2}, "claimNext": {"queueId": "queue_q"}}),
        "role": ("/roles", {"name": "Reviewer"}),
        "agent": ("/agents/register-card", {"agentCard": {"name": "A2", "url": "https://a.example"}, "issueKey": True}),
        "key": (f"/workspaces/{workspace.workspace_id}/api-keys", {"scopes": ["read"]}),
        "mail": ("/inbox", {"to": "human", "subject": "s", "body": "b"}),
        "heartbeat": (f"/agents/{agent_id}/heartbeat", {"capacity": 5}),
    }


def test_the_same_key_gives_the_same_bytes_for_every_kind_of_request(workspace: Workspace) -> None:
    for name, (path, body) in acts(workspace).items():
        first = workspace.admin.post(path, body, key=f"key-{name}")
        assert first.status in (200, 201), f"{name}: {first.text}"
        before = head(workspace.admin)
        for _ in range(3):
            again = workspace.admin.post(path, body, key=f"key-{name}")
            assert (again.status, again.content) == (first.status, first.content), name
        assert head(workspace.admin) == before, name


def test_a_hundred_at_once_do_it_once(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    replies: list[bytes] = []

    def ask() -> None:
        with workspace.server.client(workspace.admin.key) as client:
            replies.extend(client.post("/queues/queue_q/tasks", {"title": "once"}, key="k").content for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 100
    assert len(set(replies)) == 1
    assert len(workspace.admin.get("/queues/queue_q/tasks?state=available").json["items"]) == 1


def test_another_body_or_another_path_under_the_same_key_is_refused(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    agent_id = register(admin)["agentId"]
    one, two = create_task(admin), create_task(admin)
    assert admin.post(f"/tasks/{one}/claim", {"agentId": agent_id}, key="k").json["status"] == "claimed"
    for path, body in (
        (f"/tasks/{one}/claim", {"agentId": agent_id, "leaseSeconds": 60}),
        (f"/tasks/{two}/claim", {"agentId": agent_id}),
    ):
        refused = admin.post(path, body, key="k")
        assert (refused.status, refused.json["code"]) == (422, "idempotency_key_reused")


def test_keys_of_other_callers_and_other_operations_are_other_keys(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    body = {"title": "same"}
    first = workspace.admin.post("/queues/queue_q/tasks", body, key="k").json["taskId"]
    other = workspace.caller("produce").post("/queues/queue_q/tasks", body, key="k").json["taskId"]
    assert first != other
    assert workspace.admin.post(f"/tasks/{first}/cancel", {}, key="k").status == 200


def test_header_and_body_must_agree(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    body = {"agentId": register(admin)["agentId"], "idempotencyKey": "from-body"}
    path = f"/tasks/{create_task(admin)}/claim"
    refused = admin.post(path, body, key="from-header")
    assert (refused.status, refused.json["code"]) == (422, "idempotency_key_mismatch")
    first = admin.post(path, body)
    assert first.json["status"] == "claimed"
    assert admin.post(path, body, key="from-body").content == first.content


@pytest.mark.parametrize("key", ["x" * 256, "tab\there"])
def test_a_key_has_bounds(workspace: Workspace, key: str) -> None:
    refused = workspace.admin.post("/queues", {"name": "q"}, key=key)
    assert (refused.status, refused.json["code"]) == (422, "idempotency_key_invalid")


def test_what_was_refused_is_not_remembered(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    body = {"title": "t", "requiredRoles": ["role_later"]}
    assert workspace.admin.post("/queues/queue_q/tasks", body, key="k").status == 422
    assert workspace.admin.post("/roles", {"name": "later"}).status == 201
    assert workspace.admin.post("/queues/queue_q/tasks", body, key="k").status == 201


def test_no_tasks_is_an_answer_like_any_other(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    body = {"agentId": register(admin)["agentId"], "idempotencyKey": "k"}
    first = admin.post("/queues/queue_q/claim-next", body)
    assert first.json["status"] == "no_tasks"
    create_task(admin)
    assert admin.post("/queues/queue_q/claim-next", body).content == first.content
    waited = {**body, "idempotencyKey": "k2", "wait": 0.05}
    admin.post("/queues/queue_q/claim-next", {**body, "idempotencyKey": "takes-it"})
    assert admin.post("/queues/queue_q/claim-next", waited).json["status"] == "no_tasks"
    create_task(admin)
    assert admin.post("/queues/queue_q/claim-next", waited).json["status"] == "no_tasks"


def test_a_claim_that_was_held_already_is_not_a_new_one_after_a_release(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    agent_id, task_id = register(admin)["agentId"], create_task(admin)
    won = admin.post(f"/tasks/{task_id}/claim", {"agentId": agent_id}, key="k1")
    held = admin.post(f"/tasks/{task_id}/claim", {"agentId": agent_id}, key="k2")
    assert held.json["claimId"] == won.json["claimId"]
    assert admin.post(f"/claims/{won.json['claimId']}/release").status == 200
    before = head(admin)
    for key, first in (("k1", won), ("k2", held)):
        assert admin.post(f"/tasks/{task_id}/claim", {"agentId": agent_id}, key=key).content == first.content
    assert head(admin) == before


def test_a_retry_in_flight_joins_the_first(workspace: Workspace) -> None:
    admin, url = workspace.admin, workspace.server.url
    begin_queue(admin)
    body = {"agentId": register(admin)["agentId"], "wait": 30, "idempotencyKey": "k"}
    replies: list[Any] = []

    def ask() -> None:
        with workspace.server.client(admin.key) as client:
            replies.append(client.post("/queues/queue_q/claim-next", body))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: gauge(url, "redkey_waiting") == 1 and gauge(url, "redkey_requests_open") >= 3)
    task_id = create_task(admin)
    for thread in threads:
        thread.join(30)
    assert len({reply.content for reply in replies}) == 1
    assert replies[0].json["taskId"] == task_id


def test_a_disconnected_caller_gets_no_claim(workspace: Workspace) -> None:
    admin, url = workspace.admin, workspace.server.url
    begin_queue(admin)
    agent_id = register(admin)["agentId"]
    with workspace.server.client(admin.key) as gone:
        gone.http.timeout = 0.5
        with pytest.raises(Exception, match="timed out"):
            gone.post("/queues/queue_q/claim-next", {"agentId": agent_id, "wait": 30})
    until(lambda: gauge(url, "redkey_requests_open") <= 1)
    task_id = create_task(admin)
    assert admin.get(f"/tasks/{task_id}").json["state"] == "available"


def test_a_key_is_kept_over_a_restart(start: Callable[..., Server]) -> None:
    server = start()
    with server.client() as client:
        begin_queue(client)
        first = client.post("/queues/queue_q/tasks", {"title": "t"}, key="k")
        created = client.post("/workspaces", {"name": "w"}, key="k")
    assert server.stop() == 0
    again = start(name="again")
    with again.client() as client:
        assert _again(client, "/queues/queue_q/tasks", {"title": "t"}) == first.content
        assert _again(client, "/workspaces", {"name": "w"}) == created.content


def test_a_workspace_is_begun_once(operator: Client) -> None:
    first = operator.post("/workspaces", {"name": "once"}, key="begin")
    assert operator.post("/workspaces", {"name": "once"}, key="begin").content == first.content
    refused = operator.post("/workspaces", {"name": "twice"}, key="begin")
    assert (refused.status, refused.json["code"]) == (422, "idempotency_key_reused")


def _again(client: Client, path: str, body: dict[str, Any]) -> bytes:
    return client.post(path, body, key="k").content
