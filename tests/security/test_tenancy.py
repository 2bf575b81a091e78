"""Another workspace's id is answered byte for byte like a missing one, and writes nothing.

The cases are made from the OpenAPI document: every operation with an id in its path, its query or its body is
called by a stranger with the id of somebody else, and with one that nobody has.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, head, register
from tests.harness.client import Client, Reply, contract
from tests.harness.invariants import no_foreign_bytes
from tests.harness.person import Flow
from tests.harness.server import Server, serving

# What the ids of a workspace are called in paths and queries.
NAMES = (
    "workspaceId",
    "queueId",
    "roleId",
    "agentId",
    "taskId",
    "claimId",
    "eventId",
    "messageId",
    "keyId",
    "sha256",
    "sessionId",
    "personId",
    "projectId",
    "phaseId",
)
MISSING = {
    "workspaceId": "wk_00000000000000000000000000",
    "queueId": "queue_missing",
    "roleId": "role_missing",
    "agentId": "agt_00000000000000000000000000",
    "taskId": "task_00000000000000000000000000",
    "claimId": "clm_00000000000000000000000000",
    "eventId": "evt_00000000000000000000000000",
    "messageId": "msg_00000000000000000000000000",
    "keyId": "key_00000000000000000000000000",
    "sha256": "0" * 64,
    "artifactId": "art_00000000000000000000000000",
    "sessionId": "00000000000000000000000000",
    "personId": "key_00000000000000000000000000",
    "projectId": "vault-missing",
    "phaseId": "design-missing",
}
# The bus has sessions, agents and messages of its own.
BUS = "/api/"
BUS_MISSING = {
    "sessionId": "room-missing",
    "agentId": "talker-missing",
    "messageId": "00000000-0000-4000-8000-000000000000",
}
PREFIXES = {
    "wk_": "workspaceId",
    "queue_": "queueId",
    "role_": "roleId",
    "agt_": "agentId",
    "task_": "taskId",
    "clm_": "claimId",
    "msg_": "messageId",
    "art_": "artifactId",
}


class Tenant:
    """A workspace with one thing of every kind in it, and their ids."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace, self.admin = workspace, workspace.admin
        admin: Client = workspace.admin
        begin_queue(admin, f"queue_{name}")
        assert admin.post("/roles", {"id": f"role_{name}", "name": name}).status == 201
        agent = register(admin, f"Agent of {name}")["agentId"]
        held = claim(admin, create_task(admin, f"queue_{name}"), agent)
        artifact = admin.post(f"/claims/{held['claimId']}/artifacts", {"name": "notes", "content": "text"})
        assert artifact.status in (200, 201), artifact.text
        self.ids = {
            "workspaceId": workspace.workspace_id,
            "queueId": f"queue_{name}",
            "roleId": f"role_{name}",
            "agentId": agent,
            "taskId": held["taskId"],
            "claimId": held["claimId"],
            "eventId": held["eventId"],
            "messageId": admin.post("/inbox", {"to": "human", "subject": "s"}).json["messageId"],
            "keyId": workspace.key("read")["keyId"],
            "sha256": admin.put("/content", name.encode()).json["sha256"],
            "artifactId": artifact.json["artifactId"],
            **_log_in(workspace, f"{name}@example.com"),
            **_plan(admin, name),
        }
        self.bus_ids = _talk(admin, f"room-{name}", f"talker-{name}")

    def ids_in(self, path: str) -> dict[str, str]:
        """What ids are called in a path: the bus has sessions, agents and messages of its own."""
        return {**self.ids, **self.bus_ids} if path.startswith(BUS) else self.ids


def _talk(admin: Client, session: str, agent: str) -> dict[str, str]:
    """A session of the bus with an agent and a message that waits for it."""
    assert admin.post("/api/sessions", {"id": session, "name": session}).status == 201
    assert admin.post(f"/api/sessions/{session}/agents", {"id": agent, "name": agent}).status == 201
    said = admin.post(f"/api/sessions/{session}/messages", {"text": f"to {agent}", "agent_ids": [agent]})
    assert said.status == 202, said.text
    waiting = admin.get(f"/api/sessions/{session}/agents/{agent}/messages").json
    return {"sessionId": session, "agentId": agent, "messageId": waiting[0]["id"]}


def _log_in(workspace: Workspace, email: str) -> dict[str, str]:
    """A person who has logged in."""
    people = f"/workspaces/{workspace.workspace_id}/people"
    invited = workspace.admin.post(people, {"email": email}).json
    Flow(workspace.server.url).tokens(email, invited["loginCode"])
    [person] = workspace.admin.get(people).json["items"]
    return {"personId": person["personId"], "sessionId": person["sessions"][0]["sessionId"]}


def _plan(admin: Client, name: str) -> dict[str, str]:
    """A project with a phase."""
    project = admin.post("/projects", {"id": f"vault-{name}", "name": "Vault"}).json
    phase = admin.post(f"/projects/{project['projectId']}/phases", {"id": f"design-{name}", "name": "Design"}).json
    return {"projectId": project["projectId"], "phaseId": phase["phaseId"]}


def missing_in(path: str) -> dict[str, str]:
    return {**MISSING, **BUS_MISSING} if path.startswith(BUS) else MISSING


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("tenancy")) as started:
        yield started


@pytest.fixture(scope="module")
def tenants(server: Server) -> Iterator[tuple[Tenant, Tenant]]:
    """Somebody whose ids are known to a stranger."""
    with server.client() as operator:
        made = [Workspace(server, operator.post("/workspaces", {}).json) for _ in range(2)]
    yield Tenant(made[0], "owner"), Tenant(made[1], "stranger")
    for one in made:
        one.close()


def operations(server: Server) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in contract(server.url).document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def call(client: Client, method: str, path: str, query: dict[str, str], body: Any) -> Reply:
    options: dict[str, Any] = {"params": query}
    if body is not None:
        options["json"] = body
    return client.request(method, path, **options)


def required(operation: dict[str, Any]) -> dict[str, str]:
    """The query without which an operation is not tried at all."""
    needed = [one for one in operation["parameters"] if one["in"] == "query" and one["required"]]
    return {one["name"]: one["schema"]["enum"][0] for one in needed}


def example(operation: dict[str, Any], ids: dict[str, str]) -> Any:
    """The example body of an operation, with a tenant's own ids in it."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    return _replaced(copy.deepcopy(content.get("example", {})), ids)


def _replaced(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, ids) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, ids) for item in value]
    return ids[_kind(value)] if _kind(value) else value


def _kind(value: Any) -> str:
    """What kind of id a string is; empty when it is none."""
    if not isinstance(value, str):
        return ""
    return next((kind for prefix, kind in PREFIXES.items() if value.startswith(prefix)), "")


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where ids stand in a body."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, (*place, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*place, index))
    elif _kind(value):
        yield place


def _at(value: Any, place: tuple[Any, ...], new: str) -> Any:
    changed = copy.deepcopy(value)
    inside = changed
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = new
    return changed


def _read(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def alike(one: Reply, other: Reply, *ids: str) -> bool:
    """Whether two replies say the same, whatever the id is called."""
    texts = []
    for reply in (one, other):
        headers = {name: value for name, value in reply.headers.items() if name not in ("date", "content-length")}
        text = json.dumps([reply.status, headers, reply.text])
        for name in ids:
            text = text.replace(name, "ID")
        texts.append(text)
    return texts[0] == texts[1]


def test_ids_in_paths(server: Server, tenants: tuple[Tenant, Tenant]) -> None:
    owner, stranger = tenants
    tried = 0
    for method, path, operation in operations(server):
        names = re.findall(r"\{(\w+)\}", path)
        if not set(names) & set(NAMES):
            continue
        body = example(operation, stranger.ids)
        for foreign in names:
            if foreign not in NAMES:
                continue
            others = {**stranger.ids_in(path), "contextId": "queue:queue_stranger"}
            before = head(owner.admin), head(stranger.admin)
            replies = [
                call(
                    stranger.admin,
                    method,
                    path.format_map({**others, foreign: ids[foreign]}),
                    required(operation),
                    body,
                )
                for ids in (owner.ids_in(path), missing_in(path))
            ]
            told = f"{method} {path} with another's {foreign}: {[reply.text for reply in replies]}"
            assert [reply.status for reply in replies] == [404, 404], told
            assert replies[0].content == replies[1].content, told
            assert alike(*replies), told
            assert (head(owner.admin), head(stranger.admin)) == before, told
            tried += 1
    assert tried > 60


def test_what_a_stranger_may_see_holds_nothing_of_another(server: Server, tenants: tuple[Tenant, Tenant]) -> None:
    """Every operation that looks, with the stranger's own ids: lists, views, streams of the past, figures, pages."""
    owner, stranger = tenants
    # The hash of known bytes tells nothing; all other ids and names are the owner's alone.
    canaries = [value.encode() for name, value in owner.ids.items() if name != "sha256"] + [b"Agent of owner"]
    canaries += [value.encode() for value in owner.bus_ids.values()]
    looked = 0
    for method, path, operation in operations(server):
        if method != "GET" or path == "/stream":
            continue
        ours = {**MISSING, **stranger.ids_in(path), "contextId": f"queue:{stranger.ids['queueId']}"}
        called = path.format_map(_Any(ours))
        # Streams of the bus end when everything that is there was told.
        query = {**required(operation), **({"follow": "false"} if path.startswith(BUS) and "stream" in path else {})}
        reply = call(stranger.admin, method, called, query, None)
        no_foreign_bytes(reply.content + str(reply.headers).encode(), canaries)
        looked += reply.status == 200
    assert looked > 30
    for item in ("order=asc", "order=desc", f"queueId={owner.ids['queueId']}", f"agentId={owner.ids['agentId']}"):
        no_foreign_bytes(stranger.admin.get(f"/ledger/query?limit=500&{item}").content, canaries)


class _Any(dict[str, str]):
    """An id of whatever is asked for: one that nobody has."""

    def __missing__(self, name: str) -> str:
        return "0" * 26


def test_ids_in_bodies(server: Server, tenants: tuple[Tenant, Tenant]) -> None:
    owner, stranger = tenants
    tried = 0
    for method, path, operation in operations(server):
        body = example(operation, stranger.ids)
        for place in _places(body):
            if place == ("id",):
                # The name of what is about to be made, which may be the same in every workspace.
                continue
            kind = _kind(_read(body, place))
            replies = []
            before = head(owner.admin)
            for ids in (owner.ids, MISSING):
                ours = _fresh(stranger)
                called = path.format_map({**ours, "contextId": "queue:queue_stranger"})
                changed = _at(example(operation, ours), place, ids[kind])
                at = head(stranger.admin)
                reply = call(stranger.admin, method, called, {}, changed)
                replies.append(reply)
                if reply.status >= 400:
                    assert head(stranger.admin) == at, f"{method} {path}: {reply.text}"
            told = f"{method} {path} with another's {kind} at {place}: {[reply.text for reply in replies]}"
            assert replies[0].status == replies[1].status, told
            if replies[0].status >= 400:
                assert alike(*replies, owner.ids[kind], MISSING[kind]), told
            assert head(owner.admin) == before, told
            tried += 1
    assert tried >= 8


def _fresh(tenant: Tenant) -> dict[str, str]:
    """The tenant's ids, with a claim that is held now: the call before may have ended the last one."""
    task_id = create_task(tenant.admin, tenant.ids["queueId"])
    held = claim(tenant.admin, task_id, tenant.ids["agentId"])
    artifact = tenant.admin.post(f"/claims/{held['claimId']}/artifacts", {"name": "notes", "content": "text"}).json
    return {**tenant.ids, "taskId": task_id, "claimId": held["claimId"], "artifactId": artifact["artifactId"]}


def test_ids_in_queries(server: Server, tenants: tuple[Tenant, Tenant]) -> None:
    owner, stranger = tenants
    tried = 0
    for method, path, operation in operations(server):
        if path == "/stream":
            continue
        for parameter in operation["parameters"]:
            if parameter["in"] != "query" or parameter["name"] not in owner.ids:
                continue
            name = parameter["name"]
            called = path.format_map({**stranger.ids_in(path), "contextId": "queue:queue_stranger"})
            replies = [
                call(stranger.admin, method, called, {**required(operation), name: ids[name]}, None)
                for ids in (owner.ids, MISSING)
            ]
            assert alike(*replies, owner.ids[name], MISSING[name]), f"{method} {path}?{name}"
            tried += 1
    assert tried >= 5


def test_an_admin_of_one_workspace_lists_no_other(tenants: tuple[Tenant, Tenant]) -> None:
    owner, stranger = tenants
    listed = [one["workspaceId"] for one in stranger.admin.get("/workspaces").json["items"]]
    assert listed == [stranger.ids["workspaceId"]]
    for path in ("/queues", "/agents", "/roles", "/ledger/query", "/usage", "/billing/credits"):
        text = stranger.admin.get(path).text
        assert not [value for value in owner.ids.values() if value in text], path


def test_a_session_id_of_another_workspace_is_as_free_as_any(tenants: tuple[Tenant, Tenant]) -> None:
    """Else whoever tries ids learns which are in use, and could take those that others will want."""
    owner, stranger = tenants
    taken, free = "room-shared", "room-free"
    _talk(owner.admin, taken, "talker-shared")
    before = owner.admin.get(f"/api/sessions/{taken}").content
    replies = [stranger.admin.post("/api/sessions", {"id": name, "name": "mine"}) for name in (taken, free)]
    assert [reply.status for reply in replies] == [201, 201]
    assert [reply.json["id"] for reply in replies] == [taken, free]
    # Two rooms of one name, and nothing of either is in the other.
    assert owner.admin.get(f"/api/sessions/{taken}").content == before
    assert stranger.admin.get(f"/api/sessions/{taken}/agents").json == []
    assert stranger.admin.post(f"/api/sessions/{taken}/agents", {"id": "listener"}).status == 201
    assert stranger.admin.post(f"/api/sessions/{taken}/messages", {"text": "psst", "to": "agents"}).status == 202
    heard = owner.admin.get(f"/api/sessions/{taken}/events").text
    assert "psst" not in heard
    assert "listener" not in heard
    told = stranger.admin.get(f"/api/sessions/{taken}/events").text
    assert "psst" in told
    # What a workspace sees of its rooms is the id that it gave them.
    assert stranger.workspace.workspace_id not in told
    listed = [one["id"] for one in stranger.admin.get("/api/sessions").json]
    assert listed == sorted([taken, free, stranger.bus_ids["sessionId"]])
    page = stranger.admin.get("/api/sessions?limit=2").json
    rest = stranger.admin.get(f"/api/sessions?after={page[-1]['id']}").json
    assert [one["id"] for one in (*page, *rest)] == listed
    assert stranger.admin.post(f"/api/sessions/{taken}/close").status == 200
    assert owner.admin.get(f"/api/sessions/{taken}").json["status"] == "open"
