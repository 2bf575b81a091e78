"""A secret in any free-text field is refused with its place and its shape, and is in no file afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redkey.stores.sqlite import SqliteStore
from tests.api.conftest import Workspace
from tests.api.test_tasks import BRIEF
from tests.harness.acts import CARD, begin_queue, claim, create_task, head, register
from tests.harness.invariants import no_secrets, read_all
from tests.harness.secret_samples import SAMPLES

SECRET = "AKIA" + "IOSFODNN7EXAMPLE"
BRIEF_WITH_SECRET = {**BRIEF, "payload": {**BRIEF["payload"], "context": f"Use {SECRET} to log in."}}

# (path, body, where the secret stands); {claim}, {task} and {agent} are filled in.
FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("/queues/q/tasks", {"title": SECRET}, "/title"),
    ("/queues/q/tasks", {"title": "T", "description": f"see {SECRET}"}, "/description"),
    ("/queues/q/tasks", {"title": "T", "input": {"deep": [{"er": f"key={SECRET}"}]}}, "/input/deep/0/er"),
    ("/queues/q/tasks", {"title": "T", "input": {SECRET: 1}}, "/input"),
    ("/queues/q/tasks", {"title": "T", "completionCriteria": ["fine", SECRET]}, "/completionCriteria/1"),
    ("/queues/q/tasks", {"title": "T", "brief": BRIEF_WITH_SECRET}, "/brief/payload/context"),
    ("/queues/q/tasks/batch", {"tasks": [{"title": "T"}, {"title": SECRET}]}, "/tasks/1/title"),
    ("/queues", {"name": "Q2", "description": SECRET}, "/description"),
    ("/roles", {"name": "R", "description": SECRET}, "/description"),
    ("/agents/register-card", {"agentCard": {**CARD, "description": SECRET}}, "/agentCard/description"),
    ("/agents/register-card", {"agentCard": {**CARD, "x": {"y": [SECRET]}}}, "/agentCard/x/y/0"),
    ("/agents/register-card", {"agentCard": CARD, "framework": SECRET}, "/framework"),
    ("/tasks/{task}/messages", {"parts": [{"kind": "text", "text": SECRET}]}, "/parts/0/text"),
    ("/tasks/{task}/messages", {"parts": [{"kind": "data", "data": {"k": SECRET}}]}, "/parts/0/data/k"),
    ("/tasks/{task}/concerns", {"concern": SECRET}, "/concern"),
    ("/tasks/{task}/unblock", {"answer": SECRET}, "/answer"),
    ("/claims/{claim}/plan", {"plan": {"steps": [SECRET]}}, "/plan/steps/0"),
    ("/claims/{claim}/artifacts", {"name": "a", "content": f"text {SECRET}"}, "/content"),
    ("/claims/{claim}/artifacts", {"name": "a", "content": {"k": SECRET}}, "/content/k"),
    (
        "/claims/{claim}/artifacts",
        {"name": "a", "uri": "https://user:hunter2hunter2@example.com/", "sha256": "a" * 64, "bytes": 1},
        "/uri",
    ),
    ("/claims/{claim}/block", {"reason": SECRET, "blockerType": "auth"}, "/reason"),
    ("/claims/{claim}/fail", {"reason": SECRET}, "/reason"),
    ("/claims/{claim}/complete", {"output": {"token": SECRET}}, "/output/token"),
    ("/claims/{claim}/complete", {"summary": SECRET}, "/summary"),
    ("/claims/{claim}/complete", {"notes": SECRET}, "/notes"),
    ("/claims/complete", {"claims": [{"claimId": "{claim}", "summary": SECRET}]}, "/claims/0/summary"),
    ("/inbox", {"to": "human", "subject": SECRET}, "/subject"),
    ("/inbox", {"to": "human", "subject": "x", "body": SECRET}, "/body"),
]


def holding(workspace: Workspace) -> dict[str, str]:
    begin_queue(workspace.admin)
    agent = register(workspace.admin)["agentId"]
    task = create_task(workspace.admin)
    return {"agent": agent, "task": task, "claim": claim(workspace.admin, task, agent)["claimId"]}


def problem_of(reply: Any) -> dict[str, Any]:
    found: dict[str, Any] = reply.json
    if reply.status == 200:
        found = next(item["problem"] for item in found["items"] if "problem" in item)
    return found


@pytest.mark.parametrize(("path", "body", "pointer"), FIELDS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_secret_is_refused_with_pointer_and_pattern(
    workspace: Workspace, path: str, body: dict[str, Any], pointer: str
) -> None:
    made = holding(workspace)
    if "claims" in body:
        body = {"claims": [{**body["claims"][0], "claimId": made["claim"]}]}
    problem = problem_of(workspace.admin.post(path.format(**made), body))
    assert (problem["status"], problem["code"]) == (422, "secret_detected")
    assert pointer in {error["pointer"] for error in problem["errors"]}
    assert SECRET not in str(problem)
    assert workspace.admin.post(f"/claims/{made['claim']}/heartbeat").json["state"] == "held"
    assert_nowhere(workspace.server.data, SECRET.encode())


def assert_nowhere(directory: Path, secret: bytes) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            assert secret not in path.read_bytes(), path


def test_a_card_with_a_secret_does_not_get_in_by_a_change_either(workspace: Workspace) -> None:
    agent = register(workspace.admin)["agentId"]
    begin_queue(workspace.admin)
    for path, body, pointer in (
        (f"/agents/{agent}", {"agentCard": {**CARD, "description": SECRET}}, "/agentCard/description"),
        (f"/agents/{agent}", {"framework": SECRET}, "/framework"),
        ("/queues/q", {"description": SECRET}, "/description"),
    ):
        reply = workspace.admin.patch(path, body)
        assert (reply.status, reply.json["code"]) == (422, "secret_detected")
        assert pointer in {error["pointer"] for error in reply.json["errors"]}
    assert_nowhere(workspace.server.data, SECRET.encode())


def test_secrets_of_every_known_shape_are_refused_and_nothing_is_written(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    before = head(workspace.admin)
    for name, sample in ((name, sample) for name, samples in SAMPLES.items() for sample in samples):
        reply = workspace.admin.post("/queues/q/tasks", {"title": "T", "input": {"text": f"it is {sample} there"}})
        assert (reply.status, reply.json["code"]) == (422, "secret_detected"), name
        assert sample not in reply.text
    assert head(workspace.admin) == before
    with SqliteStore(workspace.server.data, create=False) as store:
        samples = [sample.encode() for found in SAMPLES.values() for sample in found]
        for topic in store.topics():
            no_secrets(read_all(store, topic), samples)


def test_a_queue_may_allow_secrets_for_its_own_tasks(workspace: Workspace) -> None:
    made = holding(workspace)
    workspace.admin.patch("/queues/q", {"allowSecrets": True})
    secret = "AKIA" + "ALLOWEDHEREOK234"
    task_id = create_task(workspace.admin, input={"key": secret})
    assert workspace.admin.get(f"/tasks/{task_id}").json["input"] == {"key": secret}
    assert workspace.admin.post(f"/claims/{made['claim']}/complete", {"output": secret}).status == 200
    assert workspace.admin.post("/inbox", {"to": "human", "subject": secret}).status == 422


def test_hashes_and_ids_are_no_secrets(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    plain = {"sha": "a3f5" * 16, "ulid": "01JTMX9A2B3C4D5E6F7G8H9JKM", "uuid": "6f1c1f3e-1b0b-4c3e-9f3e-1b0b4c3e9f3e"}
    assert create_task(workspace.admin, input=plain)
