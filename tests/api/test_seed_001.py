"""Seed 001 over HTTP: lineage, extensions, streams of artifacts and projects, messages, one agent per card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from redkey.api.surface import routes
from redkey.shapes.fields import Identified
from redkey.wire.schema import compile_schema
from tests.api.conftest import Workspace
from tests.api.test_claims import act, agents, won
from tests.harness.acts import CARD, begin_queue, create_task, register

TRACE = {"com.example.trace": {"id": 7, "path": ["a", "b"]}}
SCHEMAS = "schemas/agent-wire/v1.1"
FIXTURES = Path(__file__).parents[2] / "fixtures/agent-wire/v1.1"
MESSAGE = {
    "message_id": "msg_01",
    "role": "human",
    "parts": [
        {"kind": "text", "text": "Please review the migration for auth regressions."},
        {"kind": "artifact_ref", "artifact_id": "art_01"},
    ],
    "metadata": {"skill": "code-review", "priority": 2},
}
PLAN = {
    "version": "1.0",
    "name": "small",
    "description": "One task.",
    "roles": {"writer": {"description": "Writes the text."}},
    "tasks": [
        {
            "id": "draft",
            "title": "Draft the text",
            "role": "writer",
            "dependsOn": [],
            "outputs": ["text"],
            "completionCriteria": ["The text has an introduction"],
        }
    ],
    "policies": {
        "maxParallelTasks": 1,
        "defaultLeaseSeconds": 60,
        "retry": {"maxAttempts": 1, "onFailure": "fail"},
    },
}


def _events(workspace: Workspace, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = workspace.admin.get(f"{path}/events").json["items"]
    return items


def _document(workspace: Workspace, event_id: str, field: str) -> dict[str, Any]:
    """Return the document of an event's wire, without the salt of its hash."""
    wire = json.loads(workspace.admin.get(f"/receipts/{event_id}").json["offline"]["wire"])
    document: dict[str, Any] = json.loads(workspace.admin.get(f"/content/{wire['payload'][field]['sha256']}").text)
    document.pop("nonce")
    return document


def test_what_a_holder_does_names_the_event_that_it_follows_from(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin, outputs=["report"])
    claim_id = won(workspace.admin, task_id, agent)
    act(workspace.admin, claim_id, "start")
    act(workspace.admin, claim_id, "artifacts", {"name": "report", "content": "Five facts."})
    act(workspace.admin, claim_id, "block", {"reason": "Which year?", "blockerType": "ambiguity"})
    workspace.admin.post(f"/tasks/{task_id}/unblock", {"answer": "This one."})
    act(workspace.admin, won(workspace.admin, task_id, agent), "complete")
    events = _events(workspace, f"/tasks/{task_id}")
    by_type = {event["type"]: event for event in events}
    first = {event["type"]: event["id"] for event in reversed(events)}
    assert by_type["task.started"]["causationId"] == first["task.claimed"]
    assert by_type["artifact.ready"]["causationId"] == first["task.started"]
    assert by_type["task.blocked"]["causationId"] == first["task.started"]
    assert by_type["task.unblocked"]["causationId"] == first["task.blocked"]
    assert by_type["task.complete"]["causationId"] == by_type["task.claimed"]["id"] != first["task.claimed"]


def test_a_repeated_request_returns_only_its_own_records(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    body = {"agentId": agent, "idempotencyKey": "claim-1"}
    claimed = workspace.admin.post(f"/tasks/{task_id}/claim", body)
    act(workspace.admin, claimed.json["claimId"], "start")
    act(workspace.admin, claimed.json["claimId"], "complete")
    assert workspace.admin.post(f"/tasks/{task_id}/claim", body).text == claimed.text


def test_more_references_than_a_wire_names_go_by_a_ref_and_are_kept_by_a_retry(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    prior = [create_task(workspace.admin) for _ in range(6)]
    body = {"referenceTaskIds": prior, "parentTaskId": prior[0], "correlationId": "client:acme", "extensions": TRACE}
    task_id = create_task(workspace.admin, **body)
    act(workspace.admin, won(workspace.admin, task_id, agent), "fail", {"reason": "No luck."})
    assert workspace.admin.post(f"/tasks/{task_id}/retry", {}).status == 200
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    kept = ("attempt", "referenceTaskIds", "parentTaskId", "correlationId", "extensions")
    assert [shown[name] for name in kept] == [2, prior, prior[0], "client:acme", TRACE]
    assert {event.get("correlationId") for event in _events(workspace, f"/tasks/{task_id}")} == {"client:acme"}


def test_extensions_that_fill_a_wire_do_not_stop_its_retry(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    for size in range(700, 0, -1):
        body = {"title": "T", "retry": {"maxAttempts": 2}, "extensions": {"redkey.room": "x" * size}}
        reply = workspace.admin.post("/queues/queue_q/tasks", body)
        if reply.status == 201:
            break
        assert reply.json["code"] == "wire_too_large"
    task_id = reply.json["taskId"]
    act(workspace.admin, won(workspace.admin, task_id, agent), "fail", {"reason": "No luck."})
    shown = workspace.admin.get(f"/tasks/{task_id}").json
    assert (shown["attempt"], shown["state"], len(shown["extensions"]["redkey.room"])) == (2, "available", size)


def test_every_act_takes_extensions_and_its_event_gives_them_back(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin, extensions=TRACE)
    reply = workspace.admin.post(
        f"/tasks/{task_id}/claim", {"agentId": agent, "withTask": True, "extensions": {"a2a.turn": 1}}
    ).json
    assert reply["task"]["extensions"] == TRACE
    artifact = {"name": "report", "content": "Facts.", "extensions": {"redkey.part": 1}}
    act(workspace.admin, reply["claimId"], "start", {"extensions": {"redkey.start": True}})
    act(workspace.admin, reply["claimId"], "complete", {"artifacts": [artifact], "extensions": {"redkey.end": [1]}})
    found = {one["type"]: one.get("extensions") for one in _events(workspace, f"/tasks/{task_id}")}
    assert found["task.created"] == TRACE
    assert found["task.claim_attempted"] == {"a2a.turn": 1}
    assert found["task.claimed"] is None
    assert found["task.started"] == {"redkey.start": True}
    assert found["artifact.ready"] == {"redkey.part": 1}
    assert found["task.complete"] == {"redkey.end": [1]}
    batch = {"tasks": [{"title": "A", "extensions": {"redkey.n": 1}}, {"title": "B", "extensions": {"redkey.n": 2}}]}
    made = workspace.admin.post("/queues/queue_q/tasks/batch", batch).json["items"]
    shown = [workspace.admin.get(f"/tasks/{one['task']['taskId']}").json["extensions"] for one in made]
    assert shown == [{"redkey.n": 1}, {"redkey.n": 2}]


@pytest.mark.parametrize(
    ("extensions", "code", "pointer"),
    [
        ({"trace": 1}, "schema_propertyNames", "/extensions/trace"),
        ({"redkey.trace": None}, "schema_type", "/extensions/redkey.trace"),
        ({"redkey.trace": "x" * 900}, "wire_too_large", "/extensions"),
        ({"redkey.trace": "x" * 100_000}, "wire_too_large", "/extensions"),
        ({"redkey.trace": "AKIA" + "ABCDEFGHIJKLMNOP"}, "secret_detected", "/extensions/redkey.trace"),
    ],
)
def test_extensions_that_cannot_be_recorded_are_refused(
    workspace: Workspace, extensions: dict[str, Any], code: str, pointer: str
) -> None:
    begin_queue(workspace.admin)
    refused = workspace.admin.post("/queues/queue_q/tasks", {"title": "T", "extensions": extensions})
    assert (refused.status, refused.json["code"], refused.json["errors"][0]["pointer"]) == (422, code, pointer)


def test_an_artifact_carries_its_uri_and_its_stream_its_versions_and_what_replaces_it(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    elsewhere = {"name": "report", "sha256": "0" * 64, "bytes": 5}
    short, long = "https://example.com/report.pdf", "https://example.com/" + "r" * 200
    first = act(workspace.admin, claim_id, "artifacts", {**elsewhere, "uri": short}).json
    second = act(workspace.admin, claim_id, "artifacts", {**elsewhere, "uri": long, "artifactId": first["artifactId"]})
    assert second.json["version"] == 2
    act(workspace.admin, claim_id, "complete")
    ready = [one for one in _events(workspace, f"/claims/{claim_id}") if one["type"] == "artifact.ready"]
    assert [one["data"].get("uri") for one in ready] == [short, None]
    assert _document(workspace, ready[1]["eventId"], "content_ref")["uri"] == long
    # A correction of a task that has ended.
    again = won(workspace.admin, create_task(workspace.admin), agent)
    new = {"name": "report", "content": "Corrected.", "supersedes": first["artifactId"]}
    by = act(workspace.admin, again, "artifacts", new).json["artifactId"]
    refused = act(workspace.admin, again, "artifacts", new)
    assert (refused.status, refused.json["code"], by in refused.json["detail"]) == (409, "already_superseded", True)
    unknown = act(workspace.admin, again, "artifacts", {**new, "supersedes": "art_" + "0" * 26})
    assert (unknown.status, unknown.json["code"]) == (422, "unknown_artifact")
    told = workspace.admin.get("/ledger/query?type=artifact.superseded").json["items"]
    assert [(one["subject"]["id"], one["data"]["version"], one["data"].get("byArtifactId")) for one in told] == [
        (first["artifactId"], 1, None),
        (first["artifactId"], 2, by),
    ]


@pytest.mark.parametrize(
    ("end", "is_on_the_wire"),
    [("r" * 180, True), ("r" * 181, False), ("a%20b.pdf?x=1#2", True)],
)
def test_a_uri_is_on_the_wire_up_to_200_bytes_of_ascii_and_else_in_the_document(
    workspace: Workspace, end: str, is_on_the_wire: bool
) -> None:
    uri = f"https://example.com/{end}"
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    added = act(workspace.admin, claim_id, "artifacts", {"name": "a", "sha256": "0" * 64, "bytes": 5, "uri": uri})
    assert added.status == 201
    (ready,) = [one for one in _events(workspace, f"/claims/{claim_id}") if one["type"] == "artifact.ready"]
    assert ready["data"].get("uri") == (uri if is_on_the_wire else None)
    assert _document(workspace, ready["eventId"], "content_ref")["uri"] == uri


@pytest.mark.parametrize("uri", ["https://example.com/\u00fc.pdf", "https://example.com/a b.pdf", "no uri"])
def test_what_is_no_uri_is_refused(workspace: Workspace, uri: str) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    refused = act(workspace.admin, claim_id, "artifacts", {"name": "a", "sha256": "0" * 64, "bytes": 5, "uri": uri})
    assert refused.status == 422
    assert refused.json["errors"][0]["pointer"] == "/uri", refused.text


def test_a_uri_with_a_secret_reaches_no_wire(workspace: Workspace) -> None:
    """By the call for artifacts, and inside a completion."""
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    uri = "https://user:hunter2hunter2@example.com/report.pdf"
    artifact = {"name": "a", "sha256": "0" * 64, "bytes": 5, "uri": uri}
    for verb, body, pointer in (
        ("artifacts", artifact, "/uri"),
        ("complete", {"artifacts": [artifact]}, "/artifacts/0/uri"),
    ):
        refused = act(workspace.admin, claim_id, verb, body)
        assert (refused.status, refused.json["code"]) == (422, "secret_detected"), verb
        assert refused.json["errors"][0]["pointer"] == pointer
    assert "hunter2" not in json.dumps(_wires_of(workspace))


def _wires_of(workspace: Workspace) -> list[object]:
    """Everything that the ledger tells."""
    items: list[object] = workspace.admin.get("/ledger/query?limit=500").json["items"]
    return items


def test_a_workflow_belongs_to_a_phase_and_a_phase_to_a_project(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    post = workspace.admin.post
    assert post("/projects", {"id": "vault", "name": "Knowledge Vault"}).json["status"] == "active"
    assert post("/projects", {"id": "vault", "name": "Another"}).json["code"] == "project_exists"
    assert post("/projects/none/phases", {"name": "Design"}).json["code"] == "project_not_found"
    assert post("/projects/vault/phases", {"name": "Design"}).json["phaseId"] == "design"
    held = workspace.admin.patch("/phases/design", {"status": "on_hold", "description": "Later."}).json
    assert (held["status"], workspace.admin.get("/phases/design").json["description"]) == ("on_hold", "Later.")
    refused = post("/workflows", {"queueId": "queue_q", "plan": PLAN, "phaseId": "build"})
    assert (refused.status, refused.json["code"]) == (422, "unknown_phase")
    run = post("/workflows", {"queueId": "queue_q", "plan": PLAN, "phaseId": "design"}).json["workflowId"]
    shown = workspace.admin.get(f"/workflows/{run}").json
    assert (shown["phaseId"], shown["projectId"]) == ("design", "vault")
    of_run = [one for one in _events(workspace, f"/workflows/{run}") if one["type"] != "role.created"]
    assert {one["correlationId"] for one in of_run} == {"project:vault"}
    states = ("running", "paused")
    listed = [len(workspace.admin.get(f"/workflows?state={state}").json["items"]) for state in states]
    assert listed == [1, 0]
    assert workspace.admin.get("/projects/vault").json["phases"][0]["liveWorkflows"] == [run]
    assert [post(path, {}).json["code"] for path in ("/phases/design/complete", "/projects/vault/complete")] == [
        "runs_open",
        "phases_open",
    ]
    post(f"/workflows/{run}/cancel", {})
    assert post("/phases/design/complete", {}).json["status"] == "completed"
    late = post("/workflows", {"queueId": "queue_q", "plan": PLAN, "phaseId": "design"})
    assert (late.status, late.json["code"]) == (409, "phase_completed")
    assert post("/projects/vault/complete", {}).json["status"] == "completed"
    assert post("/projects/vault/phases", {"name": "Build"}).json["code"] == "project_completed"
    assert workspace.admin.patch("/projects/vault", {"name": "V"}).json["code"] == "project_completed"
    types = [one["type"] for one in _events(workspace, "/phases/design")]
    assert types == ["phase.created", "phase.updated", "workflow.started", "phase.completed"]
    types = [one["type"] for one in _events(workspace, "/projects/vault")]
    assert types == ["project.created", "phase.created", "project.completed"]


def test_messages_and_artifacts_are_taken_and_kept_as_their_schemas_spell_them(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    added = workspace.admin.post(f"/tasks/{task_id}/messages", MESSAGE)
    assert added.status == 201, added.text
    assert _document(workspace, added.json["eventId"], "parts_ref") == MESSAGE
    (shown,) = workspace.admin.get(f"/tasks/{task_id}/messages").json["items"]
    assert (shown["parts"], shown["metadata"], shown["role"]) == (MESSAGE["parts"], MESSAGE["metadata"], "human")
    wrong = workspace.admin.post(f"/tasks/{task_id}/messages", {**MESSAGE, "role": "agent"})
    assert (wrong.status, wrong.json["code"]) == (422, "role_mismatch")
    claim_id = won(workspace.admin, task_id, agent)
    made = act(workspace.admin, claim_id, "artifacts", {"name": "report", "content": "Five facts."}).json
    document = _document(workspace, made["eventId"], "content_ref")
    assert compile_schema(f"{SCHEMAS}/artifact.schema.json").findings(document) == []
    assert (document["artifact_id"], document["lineage"]["task_id"]) == (made["artifactId"], task_id)
    message = compile_schema(f"{SCHEMAS}/message.schema.json")
    assert message.findings(MESSAGE) == []


@pytest.mark.parametrize(
    "file",
    [file for kind in ("part", "message") for file in sorted(FIXTURES.glob(f"{kind}.*.json"))],
    ids=lambda file: file.name,
)
def test_the_api_takes_what_the_schemas_of_messages_take(file: Path, workspace: Workspace) -> None:
    fixture = json.loads(file.read_text())
    body = {"parts": [fixture]} if file.name.startswith("part.") else fixture
    begin_queue(workspace.admin)
    task_id = create_task(workspace.admin)
    added = workspace.admin.post(
        f"/tasks/{task_id}/messages", {**body, **({"role": "human"} if "role" in body else {})}
    )
    if ".invalid-" in file.name and file.name != "message.invalid-role-unknown.json":
        assert (added.status, added.json["code"]) == (422, "invalid"), added.text
        return
    assert added.status == 201, added.text
    document = _document(workspace, added.json["eventId"], "parts_ref")
    assert compile_schema(f"{SCHEMAS}/message.schema.json").findings(document) == []
    (shown,) = workspace.admin.get(f"/tasks/{task_id}/messages").json["items"]
    assert shown["parts"] == document["parts"] == body["parts"]


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"metadata": {"note": "x" * 1025}}, "/metadata/note"),
        ({"metadata": {"n" * 65: 1}}, "/metadata/" + "n" * 65),
        ({"parts": [{"kind": "data", "data": list(range(4097))}]}, "/parts/0/data"),
        ({"parts": [{"kind": "text", "text": "a", "media_type": "text/plain\n"}]}, "/parts/0/media_type"),
        ({"parts": [{"kind": "text", "text": "a", "mediaType": "text/plain"}]}, "/parts/0"),
    ],
)
def test_a_message_that_the_schema_refuses_is_not_kept(
    wrong: dict[str, Any], pointer: str, workspace: Workspace
) -> None:
    begin_queue(workspace.admin)
    task_id = create_task(workspace.admin)
    refused = workspace.admin.post(f"/tasks/{task_id}/messages", {"parts": [{"kind": "text", "text": "a"}], **wrong})
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, pointer)
    assert [one["type"] for one in _events(workspace, f"/tasks/{task_id}")] == ["task.created", "task.available"]


def test_a_media_type_with_parameters_is_kept_as_it_is(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    task_id = create_task(workspace.admin)
    body = {"name": "patch", "content": "x", "mediaType": "text/x-diff; charset=utf-8"}
    made = act(workspace.admin, won(workspace.admin, task_id, agent), "artifacts", body).json
    document = _document(workspace, made["eventId"], "content_ref")
    assert compile_schema(f"{SCHEMAS}/artifact.schema.json").findings(document) == []
    (shown,) = workspace.admin.get(f"/tasks/{task_id}").json["artifacts"]
    assert document["media_type"] == shown["mediaType"] == "text/x-diff; charset=utf-8"


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [({"mediaType": "text/plain\n"}, "/mediaType"), ({"uri": "https://a/\n", "sha256": "0" * 64, "bytes": 1}, "/uri")],
)
def test_an_artifact_that_its_schema_refuses_is_not_kept(
    wrong: dict[str, Any], pointer: str, workspace: Workspace
) -> None:
    (agent,) = agents(workspace, 1)
    claim_id = won(workspace.admin, create_task(workspace.admin), agent)
    body = {"name": "report", **wrong} if "uri" in wrong else {"name": "report", "content": "x", **wrong}
    for path, sent in (("artifacts", body), ("complete", {"artifacts": [body]})):
        refused = act(workspace.admin, claim_id, path, sent)
        place = pointer if path == "artifacts" else f"/artifacts/0{pointer}"
        assert (refused.status, refused.json["errors"][0]["pointer"]) == (422, place)
    assert [one["type"] for one in _events(workspace, f"/claims/{claim_id}")].count("artifact.ready") == 0


def test_the_same_card_is_the_same_agent(workspace: Workspace) -> None:
    first = register(workspace.admin, "Dea")
    workspace.admin.post("/roles", {"id": "role_r", "name": "R"})
    workspace.admin.post(f"/roles/role_r/agents/{first['agentId']}", {})
    again = register(workspace.admin, "Dea")
    assert (again["agentId"], again["eventId"], again["roles"]) == (first["agentId"], first["eventId"], ["role_r"])
    others = [register(workspace.admin, "Dea", slot="two"), register(workspace.admin, "Dia")]
    changed = {"agentCard": {**CARD, "name": "Dea", "version": "2.0.0"}}
    others.append(workspace.admin.post("/agents/register-card", changed).json)
    assert len({first["agentId"], *(one["agentId"] for one in others)}) == 4
    assert (first["skills"], first["authRequirements"], first["eligibleRoles"]) == ([], [], [])


def test_a_task_at_its_gate_awaits_approval_in_every_view(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    workspace.admin.patch(f"/workspaces/{workspace.workspace_id}/policy", {"selfApproval": True})
    task_id = create_task(workspace.admin, approvalGate=True)
    done = act(workspace.admin, won(workspace.admin, task_id, agent), "complete").json

    def views() -> list[Any]:
        listed = [
            [one["id"] for one in workspace.admin.get(f"/queues/queue_q/tasks?state={state}").json["items"]]
            for state in ("awaiting_approval", "completed")
        ]
        paths = (f"/tasks/{task_id}", f"/tasks/{task_id}/explain")
        context = workspace.admin.get("/contexts/queue:queue_q/state").json["tasks"]
        return [*listed, *(workspace.admin.get(path).json["state"] for path in paths), [*context]]

    waiting = "awaiting_approval"
    assert views() == [[task_id], [], waiting, waiting, [waiting]]
    assert workspace.admin.post(f"/gates/{done['gateId']}/approve", {}).status == 200
    assert views() == [[], [task_id], "completed", "completed", ["completed"]]


def test_every_item_of_a_list_has_its_id_under_id_too(workspace: Workspace) -> None:
    (agent,) = agents(workspace, 1)
    workspace.admin.post("/projects", {"name": "Vault"})
    won(workspace.admin, create_task(workspace.admin), agent)
    workspace.admin.post("/roles", {"id": "role_r", "name": "R"})
    specific = {
        "/agents": "agentId",
        "/queues": "queueId",
        "/roles": "roleId",
        "/projects": "projectId",
        "/workspaces": "workspaceId",
        "/ledger/query": "eventId",
        "/queues/queue_q/tasks?state=claimed": "taskId",
        f"/agents/{agent}/claim-history": "claimId",
        f"/workspaces/{workspace.workspace_id}/api-keys": "keyId",
    }
    for path, name in specific.items():
        items = workspace.admin.get(path).json["items"]
        assert items, path
        assert [item["id"] for item in items] == [item[name] for item in items]


# Replies with a specific id and without `id`, and why.
SEED_KEYS = "The seed states exactly these keys."
ACT = "It acknowledges an act on a thing that the caller named, and shows no thing."
WITHOUT_ID = {
    "Claimed": SEED_KEYS,
    "Missed": SEED_KEYS,
    "Rejected": SEED_KEYS,
    "NoTasks": SEED_KEYS,
    "ClaimChanged": SEED_KEYS,
    "ClaimEnded": SEED_KEYS,
    "ClaimSpending": SEED_KEYS,
    "ProgressReported": SEED_KEYS,
    "Heartbeat": SEED_KEYS,
    "ContextState": SEED_KEYS,
    "Receipt": "It is a proof of an event, with the keys that verifiers read.",
    "RegisteredClient": "OAuth states its keys (RFC 7591).",
    "SentMessages": "It is about several messages, and each of them has its id.",
    **dict.fromkeys(
        (
            "AgentHeard",
            "CreditsGranted",
            "DeactivatedAgent",
            "EndedSession",
            "ErasedContent",
            "MessageRead",
            "PolicyChange",
            "PricesSet",
            "RaisedRules",
            "RemovedPerson",
            "RevokedKey",
            "RoleGrant",
            "WebhookChanged",
        ),
        ACT,
    ),
}


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """The structs that a reply is or may be, and the items of its pages."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for part in get_args(kind):
        yield from _structs(part)


def test_every_reply_about_one_thing_has_its_id_under_id_too() -> None:
    """Whatever an operation may reply with: the thing itself, what was created, and each item of a list."""
    replies = {one for route in routes() for one in _structs(route.operation.reply)}
    specific = {one for one in replies if any(field.name.endswith("_id") for field in msgspec.structs.fields(one))}
    assert len(specific) > 50
    missing = {one.__name__ for one in specific if "id" not in one.__struct_fields__}
    assert missing == set(WITHOUT_ID)
    for one in replies:
        if issubclass(one, Identified):
            assert one.SPECIFIC in one.__struct_fields__, f"{one.__name__} names no field of its own"


def test_what_was_created_has_its_id_under_id_too(workspace: Workspace) -> None:
    admin = workspace.admin
    for path, body, name in (
        ("/queues", {"name": "second"}, "queueId"),
        (f"/workspaces/{workspace.workspace_id}/api-keys", {"scopes": ["read"]}, "keyId"),
    ):
        created = admin.post(path, body).json
        assert created["id"] == created[name]
