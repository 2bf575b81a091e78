"""Definitions over HTTP: validated, drafted, changed, published; what is published never changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from redkey.cli import main
from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue
from tests.harness.runs import plan_of, step
from tests.harness.server import Server

PLAN = plan_of(step("a", outputs=["text"]), step("b", "a", outputs=["more"]))
BROKEN = plan_of(step("a", "a"))


def create(workspace: Workspace, plan: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    reply = workspace.admin.post("/workflow-definitions", {"plan": plan or PLAN}, **more)
    assert reply.status == 201, reply.text
    made: dict[str, Any] = reply.json
    return made


@pytest.mark.parametrize("plan", [PLAN, BROKEN, {}, {"tasks": 7}])
def test_validation_is_always_200_and_writes_nothing(workspace: Workspace, plan: dict[str, Any]) -> None:
    before = workspace.admin.get("/ledger/query").json
    reply = workspace.admin.post("/workflow-definitions/validate", {"plan": plan})
    assert reply.status == 200
    assert reply.json["valid"] == (plan is PLAN)
    assert reply.json.keys() == {"valid", "errors", "warnings"}
    assert workspace.admin.get("/ledger/query").json == before


def test_a_draft_is_saved_whether_or_not_it_is_valid(workspace: Workspace) -> None:
    made = create(workspace, BROKEN)
    assert (made["version"], made["status"], made["revision"], made["validation"]["valid"]) == (1, "draft", 1, False)
    shown = workspace.admin.get(f"/workflow-definitions/{made['definitionId']}").json
    assert (shown["plan"], shown["status"], shown["draftVersion"]) == (BROKEN, "draft", 1)
    refused = workspace.admin.post(f"/workflow-definitions/{made['definitionId']}/publish")
    assert (refused.status, refused.json["code"]) == (422, "plan_invalid")
    assert refused.json["validation"]["errors"][0]["code"] == "dependency_cycle"


def test_a_repeated_creation_is_one_definition(workspace: Workspace) -> None:
    first, second = (create(workspace, key="d1") for _ in range(2))
    assert first == second
    other = workspace.admin.post("/workflow-definitions", {"plan": BROKEN}, key="d1")
    assert (other.status, other.json["code"]) == (422, "idempotency_key_reused")
    assert len(workspace.admin.get("/workflow-definitions").json["items"]) == 1


def test_a_draft_is_changed_by_a_merge_patch_at_the_revision_that_was_read(workspace: Workspace) -> None:
    key = create(workspace)["definitionId"]
    change = {"plan": {"name": "renamed", "description": None, "policies": {"maxParallelTasks": 2}}, "revision": 1}
    changed = workspace.admin.patch(f"/workflow-definitions/{key}", change)
    assert (changed.status, changed.json["revision"], changed.json["name"]) == (200, 2, "renamed")
    shown = workspace.admin.get(f"/workflow-definitions/{key}").json["plan"]
    assert shown["policies"] == PLAN["policies"] | {"maxParallelTasks": 2}
    assert shown["tasks"] == PLAN["tasks"]
    late = workspace.admin.patch(f"/workflow-definitions/{key}", change)
    assert (late.status, late.json["code"]) == (409, "draft_changed")


def test_a_change_names_the_revision_that_it_is_for(workspace: Workspace) -> None:
    key = create(workspace)["definitionId"]
    refused = workspace.admin.patch(f"/workflow-definitions/{key}", {"plan": {"tasks": []}})
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, "/revision"), refused.text
    assert workspace.admin.get(f"/workflow-definitions/{key}").json["plan"] == PLAN


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/workflow-definitions"),
        ("POST", "/workflow-definitions/simulate"),
        ("POST", "/workflows"),
        ("PATCH", "/workflow-definitions/def_x"),
    ],
)
def test_a_bare_plan_is_told_how_it_is_sent(workspace: Workspace, method: str, path: str) -> None:
    refused = workspace.admin.request(method, path, json=PLAN)
    assert (refused.status, refused.json["errors"][0]["code"]) == (422, "plan_bare")
    assert '{"plan": {...}}' in refused.json["errors"][0]["message"]
    wrong = workspace.admin.request(method, path, json={"plan": 7})
    assert "plan_bare" not in [one["code"] for one in wrong.json["errors"]]


def test_versions_are_published_one_after_the_other_and_never_change(workspace: Workspace) -> None:
    key = create(workspace)["definitionId"]
    path = f"/workflow-definitions/{key}"
    published = workspace.admin.post(f"{path}/publish", key="p1")
    assert (published.json["version"], published.json["status"]) == (1, "published")
    assert workspace.admin.post(f"{path}/publish", key="p1").content == published.content
    for refused in (
        workspace.admin.patch(path, {"plan": {"name": "x"}, "revision": 1}),
        workspace.admin.post(f"{path}/publish"),
    ):
        assert (refused.status, refused.json["code"]) == (409, "no_draft")
    draft = workspace.admin.post(f"{path}/versions")
    assert (draft.status, draft.json["version"]) == (201, 2)
    assert workspace.admin.post(f"{path}/versions").json["code"] == "draft_exists"
    workspace.admin.patch(path, {"plan": {"name": "second"}, "revision": 1})
    assert workspace.admin.post(f"{path}/publish").json["version"] == 2
    shown = workspace.admin.get(path).json
    assert [one["version"] for one in shown["versions"]] == [1, 2]
    assert (shown["plan"]["name"], shown["version"]) == ("second", 2)
    assert workspace.admin.get(f"{path}?version=1").json["plan"] == PLAN
    event = workspace.admin.get(f"/events/{published.json['eventId']}").json
    assert (event["type"], event["data"]["version"]) == ("definition.published", 1)


def test_a_new_version_may_begin_from_another_plan(workspace: Workspace) -> None:
    key = create(workspace)["definitionId"]
    workspace.admin.post(f"/workflow-definitions/{key}/publish")
    other = plan_of(step("z", outputs=["zed"]))
    workspace.admin.post(f"/workflow-definitions/{key}/versions", {"plan": other})
    assert workspace.admin.get(f"/workflow-definitions/{key}").json["plan"] == other
    assert workspace.admin.get(f"/workflow-definitions/{key}?version=1").json["plan"] == PLAN


def test_definitions_are_listed_in_pages(workspace: Workspace) -> None:
    keys = [create(workspace)["definitionId"] for _ in range(5)]
    workspace.admin.post(f"/workflow-definitions/{keys[2]}/publish")
    found: list[str] = []
    after = ""
    while True:
        page = workspace.admin.get(f"/workflow-definitions?limit=2{after}").json
        found += [one["definitionId"] for one in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert sorted(found) == sorted(keys)
    assert len(found) == len(set(found))


def test_another_workspaces_definition_is_not_found(workspace: Workspace, other: Workspace) -> None:
    key = create(workspace)["definitionId"]
    path, nothing = f"/workflow-definitions/{key}", "/workflow-definitions/def_01JTMX9A2B3C4D5E6F7G8H9JKM"
    for verb in ("", "/publish", "/versions"):
        call = other.admin.get if not verb else other.admin.post
        assert call(path + verb).content == call(nothing + verb).content
        assert call(path + verb).status == 404
    assert other.admin.patch(path, {"plan": {}, "revision": 1}).status == 404
    assert other.admin.get("/workflow-definitions").json["items"] == []


def test_a_plan_with_a_secret_is_not_kept(workspace: Workspace) -> None:
    plan = plan_of(step("a", input={"note": f"use {workspace.admin.key} for it"}))
    reply = workspace.admin.post("/workflow-definitions", {"plan": plan})
    assert (reply.status, reply.json["code"]) == (422, "secret_detected")
    assert reply.json["errors"][0]["pointer"] == "/plan/tasks/0/input/note"
    assert workspace.admin.get("/workflow-definitions").json["items"] == []


def test_readers_look_and_do_not_write(workspace: Workspace) -> None:
    key = create(workspace)["definitionId"]
    reader = workspace.caller("read")
    assert reader.get(f"/workflow-definitions/{key}").status == 200
    assert reader.post("/workflow-definitions/validate", {"plan": PLAN}).status == 200
    assert reader.post("/workflow-definitions", {"plan": PLAN}).status == 403
    assert reader.post(f"/workflow-definitions/{key}/publish").status == 403


def test_drafts_and_runs_leave_a_data_directory_that_fsck_finds_whole(start: Callable[..., Server]) -> None:
    server = start()
    with server.client() as admin:
        begin_queue(admin, "queue_work")
        key = admin.post("/workflow-definitions", {"plan": PLAN}).json["definitionId"]
        admin.post(f"/workflow-definitions/{key}/publish")
        admin.post(f"/workflow-definitions/{key}/versions", {"plan": BROKEN})
        assert admin.post("/workflows", {"queueId": "work", "definitionId": key}).status == 201
    assert server.stop() == 0
    found = CliRunner().invoke(main, ["fsck", str(server.data)])
    assert found.exit_code == 0, found.output
