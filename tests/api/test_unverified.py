"""The ledger confirms only bytes that it received: unverified artifacts, and required outputs in completions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.api.conftest import Workspace
from tests.api.test_claims import act, agents, won
from tests.harness.acts import create_task

STORED = b"the bytes of the report"
DIGEST = hashlib.sha256(STORED).hexdigest()
ELSEWHERE = {"name": "report", "uri": "https://example.com/report.pdf", "sha256": DIGEST, "bytes": len(STORED)}


def _wire(workspace: Workspace, task_id: str, kind: str) -> dict[str, Any]:
    events = workspace.admin.get(f"/tasks/{task_id}/events").json["items"]
    event = next(one for one in reversed(events) if one["type"] == kind)
    receipt = workspace.admin.get(f"/receipts/{event['eventId']}").json
    wire: dict[str, Any] = json.loads(receipt["offline"]["wire"])
    return wire


def test_a_completion_without_a_required_output_on_record_is_refused(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin, outputs=["report"])
    claim_id = won(workspace.admin, task_id, agent)
    added = act(workspace.admin, claim_id, "artifacts", ELSEWHERE).json
    assert added["unverified"] is True
    refused = act(workspace.admin, claim_id, "complete")
    assert (refused.status, refused.json["code"], "report" in refused.json["detail"]) == (
        422,
        "unverified_artifact",
        True,
    )
    assert "PUT /content" in refused.json["advice"]
    # The advice works: with the bytes here, the next version is verified, though it keeps its address.
    assert workspace.admin.put("/content", STORED).status in (200, 201)
    again = act(workspace.admin, claim_id, "artifacts", {**ELSEWHERE, "artifactId": added["artifactId"]}).json
    assert ("unverified" in again, again["version"]) == (False, 2)
    assert act(workspace.admin, claim_id, "complete").json["status"] == "completed"
    (shown,) = workspace.admin.get(f"/tasks/{task_id}").json["artifacts"]
    assert ("unverified" in shown, shown["uri"]) == (False, ELSEWHERE["uri"])
    assert "unverified" not in _wire(workspace, task_id, "task.complete")["payload"]


def test_where_the_policy_allows_it_wire_receipt_and_view_list_what_is_unverified(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    policy = f"/workspaces/{workspace.workspace_id}/policy"
    assert workspace.admin.get(policy).json["unverifiedOutputs"] == "refuse"
    changed = workspace.admin.patch(policy, {"unverifiedOutputs": "allow"})
    assert (changed.status, changed.json["unverifiedOutputs"]) == (200, "allow")
    assert workspace.admin.get(policy).json["unverifiedOutputs"] == "allow"
    task_id = create_task(workspace.admin, outputs=["summary", "report"])
    claim_id = won(workspace.admin, task_id, agent)
    act(workspace.admin, claim_id, "artifacts", {"name": "summary", "content": "words"})
    artifact_id = act(workspace.admin, claim_id, "artifacts", ELSEWHERE).json["artifactId"]
    assert act(workspace.admin, claim_id, "complete").json["status"] == "completed"
    payload = _wire(workspace, task_id, "task.complete")["payload"]
    assert [payload["artifact_ids"][place] for place in payload["unverified"]] == [artifact_id]
    assert _wire(workspace, task_id, "artifact.ready")["payload"]["unverified"] is True
    shown = {
        one["name"]: one.get("unverified", False) for one in workspace.admin.get(f"/tasks/{task_id}").json["artifacts"]
    }
    assert shown == {"summary": False, "report": True}


def test_an_unverified_artifact_that_is_not_required_is_marked_unverified(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    claim_id = won(workspace.admin, task_id, agent)
    act(workspace.admin, claim_id, "artifacts", ELSEWHERE)
    assert act(workspace.admin, claim_id, "complete").json["status"] == "completed"
    assert _wire(workspace, task_id, "task.complete")["payload"]["unverified"] == [0]


def test_nine_required_outputs_are_nine_named_by_a_manifest(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    names = [f"output-{number}" for number in range(9)]
    task_id = create_task(workspace.admin, outputs=names)
    claim_id = won(workspace.admin, task_id, agent)
    added = [act(workspace.admin, claim_id, "artifacts", {"name": name, "content": name}).json for name in names]
    assert act(workspace.admin, claim_id, "complete", {"artifactIds": [added[0]["artifactId"]]}).status == 200
    payload = _wire(workspace, task_id, "task.complete")["payload"]
    assert payload["artifact_ids"] == []
    manifest = workspace.admin.get(f"/content/{payload['manifest_ref']['sha256']}").json
    assert {one["name"]: one["artifact_id"] for one in manifest["artifacts"]} == {
        one["name"]: one["artifactId"] for one in added
    }
    assert [one["sha256"] for one in manifest["artifacts"]] == [
        hashlib.sha256(one["name"].encode()).hexdigest() for one in manifest["artifacts"]
    ]


def test_a_completion_names_required_outputs_that_the_caller_left_out(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin, outputs=["report"])
    claim_id = won(workspace.admin, task_id, agent)
    report, extra, _ = (
        act(workspace.admin, claim_id, "artifacts", {"name": name, "content": name}).json["artifactId"]
        for name in ("report", "extra", "other")
    )
    act(workspace.admin, claim_id, "complete", {"artifactIds": [extra]})
    assert _wire(workspace, task_id, "task.complete")["payload"]["artifact_ids"] == [extra, report]
