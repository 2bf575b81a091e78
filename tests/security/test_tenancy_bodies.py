"""Ids of another workspace in every field of a body that takes one: answered like missing ones, nothing written.

Examples in the OpenAPI document show few of the optional fields of a body, so these stand in a table; what the
document tells by itself is tried in `test_tenancy`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, head, register
from tests.harness.client import Reply

NOBODY = "01JTMX9A2B3C4D5E6F7G8H9JKM"

# (path, body, the kind of id in question); {own_task} and {own_claim} are the caller's.
BODIES: list[tuple[str, dict[str, Any], str]] = [
    ("/queues/queue_own/tasks", {"title": "T", "dependsOn": ["{taskId}"]}, "taskId"),
    ("/queues/queue_own/tasks", {"title": "T", "parentTaskId": "{taskId}"}, "taskId"),
    ("/queues/queue_own/tasks", {"title": "T", "referenceTaskIds": ["{taskId}"]}, "taskId"),
    ("/queues/queue_own/tasks", {"title": "T", "requiredRoles": ["{roleId}"]}, "roleId"),
    ("/queues/queue_own/tasks/batch", {"tasks": [{"title": "T", "dependsOn": ["{taskId}"]}]}, "taskId"),
    ("/queues/queue_own/claim-next", {"agentId": "{agentId}"}, "agentId"),
    ("/tasks/{own_task}/claim", {"agentId": "{agentId}"}, "agentId"),
    ("/claims/{own_claim}/block", {"reason": "x", "blockerType": "dependency", "dependsOn": ["{taskId}"]}, "taskId"),
    ("/claims/{own_claim}/complete", {"claimNext": {"queueId": "{queueId}"}}, "queueId"),
    ("/claims/{own_claim}/artifacts", {"name": "a", "sha256": "{sha256}"}, "sha256"),
    ("/claims/complete", {"claims": [{"claimId": "{claimId}"}]}, "claimId"),
    ("/inbox", {"to": "{agentId}", "subject": "x"}, "agentId"),
    ("/inbox", {"to": "{roleId}", "subject": "x"}, "roleId"),
    ("/inbox", {"to": "human", "subject": "x", "refTaskId": "{taskId}"}, "taskId"),
    ("/agents/register-card", {"agentCard": {"name": "A"}, "workspaceId": "{workspaceId}"}, "workspaceId"),
]


def hide(workspace: Workspace) -> dict[str, str]:
    """One thing of every kind in a workspace, by the kind of its id."""
    admin = workspace.admin
    begin_queue(admin, "queue_hidden")
    admin.post("/roles", {"id": "role_hidden", "name": "Hidden"})
    agent = str(register(admin)["agentId"])
    task_id = create_task(admin, "queue_hidden", contextId="project:hidden")
    held = claim(admin, task_id, agent)
    artifact = admin.post(f"/claims/{held['claimId']}/artifacts", {"name": "a", "content": "hidden bytes"}).json
    return {
        "workspaceId": workspace.workspace_id,
        "agentId": agent,
        "roleId": "role_hidden",
        "queueId": "queue_hidden",
        "taskId": task_id,
        "claimId": held["claimId"],
        "sha256": artifact["sha256"],
    }


def missing(found: str) -> str:
    """An id of the same shape and length that nobody has."""
    prefix = re.match(r"[a-z]+_", found)
    if prefix is None:
        return "0" * len(found)
    rest = found[prefix.end() :]
    return prefix.group() + (NOBODY if len(rest) == len(NOBODY) else "nobody")


def told(reply: Reply, asked: str) -> tuple[int, str, dict[str, str]]:
    """An answer without the id that was asked for, which the caller knows."""
    headers = {name: value for name, value in reply.headers.items() if name != "date"}
    return reply.status, reply.text.replace(asked, "<id>"), headers


def fill(value: Any, name: str, found: str) -> Any:
    if isinstance(value, dict):
        return {key: fill(item, name, found) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, name, found) for item in value]
    return found if value == f"{{{name}}}" else value


@pytest.mark.parametrize(("path", "body", "name"), BODIES, ids=lambda value: value if isinstance(value, str) else "")
def test_an_id_of_another_workspace_in_a_body_is_like_a_missing_one(
    workspace: Workspace, other: Workspace, path: str, body: dict[str, Any], name: str
) -> None:
    hidden = hide(other)
    begin_queue(workspace.admin, "queue_own")
    agent = str(register(workspace.admin, "Own")["agentId"])
    own_task = create_task(workspace.admin, "queue_own")
    own_claim = claim(workspace.admin, own_task, agent)["claimId"]
    before = head(workspace.admin), head(other.admin)
    answers = [
        told(
            workspace.admin.post(path.format(own_task=own_task, own_claim=own_claim), fill(body, name, found)),
            found,
        )
        for found in (hidden[name], missing(hidden[name]))
    ]
    assert answers[0] == answers[1]
    # A batch is answered as a whole, with a problem for each; everything else is refused as such.
    assert answers[0][0] in (404, 422) or '"problem"' in answers[0][1]
    assert (head(workspace.admin), head(other.admin)) == before


def test_a_context_of_another_workspace_is_like_a_missing_one(workspace: Workspace, other: Workspace) -> None:
    hide(other)
    answers = [
        told(workspace.admin.get(f"/contexts/{found}/state"), found)
        for found in ("project:hidden", "project:nobody", "queue:queue_hidden")
    ]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == 404
