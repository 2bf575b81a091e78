"""Authentication: keys, scopes, tokens, and what happens when they end."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import httpx2
import jwt
import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, create_task, register
from tests.harness.client import Client
from tests.harness.server import Server


def token_for(server: Server, key: str, **form: str) -> httpx2.Response:
    prefix, _, secret = key.rpartition("_")
    return httpx2.post(
        f"{server.url}/oauth/token",
        data={"grant_type": "client_credentials", **form},
        auth=(prefix.removeprefix("rk_"), secret),
        timeout=60,
    )


# Keys.


def test_a_key_is_shown_once_and_listed_by_its_prefix(workspace: Workspace) -> None:
    made = workspace.key("produce", "read")
    listed = workspace.admin.get(f"/workspaces/{workspace.workspace_id}/api-keys").json["items"]
    found = next(one for one in listed if one["keyId"] == made["keyId"])
    assert made["apiKey"].startswith(found["prefix"] + "_")
    assert found["scopes"] == ["produce", "read"]
    assert made["apiKey"].rpartition("_")[2] not in json.dumps(listed)


def test_a_repeated_request_for_a_key_gives_the_same_key(workspace: Workspace) -> None:
    path, body = f"/workspaces/{workspace.workspace_id}/api-keys", {"scopes": ["read"], "name": "mine"}
    first, second = (workspace.admin.post(path, body, key="once") for _ in range(2))
    assert first.content == second.content
    with workspace.server.client(first.json["apiKey"]) as reader:
        assert reader.get("/queues").status == 200
    assert len(workspace.admin.get(path).json["items"]) == 2


def test_a_secret_in_a_name_is_refused_and_stored_nowhere(workspace: Workspace, operator: Client) -> None:
    secret = workspace.key("read")["apiKey"]
    path = f"/workspaces/{workspace.workspace_id}/api-keys"
    refused = workspace.admin.post(path, {"scopes": ["read"], "name": f"the key {secret}"})
    assert (refused.status, refused.json["code"]) == (422, "secret_detected")
    assert refused.json["errors"][0]["pointer"] == "/name"
    assert operator.post("/workspaces", {"name": secret}).json["code"] == "secret_detected"
    files = [path for path in workspace.server.data.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.rpartition("_")[2].encode() in path.read_bytes()]


def test_a_revoked_key_and_its_tokens_end_at_once(workspace: Workspace) -> None:
    made = workspace.key("read")
    token = token_for(workspace.server, made["apiKey"]).json()["access_token"]
    callers = [workspace.server.client(made["apiKey"]), workspace.server.client(token)]
    assert [caller.get("/queues").status for caller in callers] == [200, 200]
    revoked = workspace.admin.delete(f"/workspaces/{workspace.workspace_id}/api-keys/{made['keyId']}")
    assert (revoked.status, revoked.json["status"]) == (200, "revoked")
    assert [caller.get("/queues").status for caller in callers] == [401, 401]
    assert token_for(workspace.server, made["apiKey"]).status_code == 401
    again = workspace.admin.delete(f"/workspaces/{workspace.workspace_id}/api-keys/{made['keyId']}")
    assert again.status == 404
    for caller in callers:
        caller.close()


def test_a_key_revoked_by_another_process_is_refused(start: Any) -> None:
    first, second = start(), start(name="second")
    with first.client() as one:
        path = f"/workspaces/{first.workspace_id}/api-keys"
        made = one.post(path, {"scopes": ["produce"]}).json
        with second.client(made["apiKey"]) as caller:
            assert caller.post("/queues", {"name": "a"}).status == 201
            one.delete(f"{path}/{made['keyId']}")
            # What writes is refused exactly; what only reads, within a second.
            assert caller.post("/queues", {"name": "b"}).status == 401
            time.sleep(1.1)
            assert caller.get("/queues").status == 401


@pytest.mark.parametrize(
    "credential",
    [
        "",
        "Bearer",
        "Basic cms6eA==",
        "Bearer rk_",
        "Bearer rk__",
        "Bearer rk_AAAAAAAAAAAAAAAA_" + "A" * 48,
        "Bearer not.a.token",
        "Bearer " + "x" * 5000,
        "Bearer é",
    ],
)
def test_without_a_valid_key_nothing_is_revealed(server: Server, credential: str) -> None:
    headers = {"authorization": credential.encode("latin-1")} if credential else {}
    with Client(server.url) as client:
        reply = client.get("/queues", headers=headers)
    assert reply.status == 401
    assert reply.json["code"] in ("unauthenticated", "invalid_token")
    assert reply.headers["www-authenticate"].startswith('Bearer realm="redkey"')


def test_a_wrong_secret_and_an_unknown_key_are_answered_alike(server: Server) -> None:
    wrong = server.key[:-1] + ("0" if server.key[-1] != "0" else "1")
    unknown = "rk_0000000000000000_" + "0" * 48
    replies = []
    for key in (wrong, unknown):
        with server.client(key) as client:
            replies.append(client.get("/queues"))
    assert replies[0].content == replies[1].content


def test_a_key_in_the_address_is_not_taken(server: Server) -> None:
    with Client(server.url) as client:
        assert client.get(f"/queues?api_key={server.key}").status == 401
        assert client.get(f"/queues?access_token={server.key}").status == 401


# Scopes.


@pytest.mark.parametrize(
    ("scopes", "status"), [(("read",), 403), (("produce",), 201), (("runner",), 403), (("admin",), 201)]
)
def test_only_those_who_produce_create_queues(workspace: Workspace, scopes: tuple[str, ...], status: int) -> None:
    reply = workspace.caller(*scopes).post("/queues", {"name": "q"})
    assert reply.status == status
    if status == 403:
        assert reply.json["code"] == "insufficient_scope"
        assert "produce" in reply.json["detail"]


def test_only_an_operator_grants_operator_scopes(workspace: Workspace) -> None:
    path = f"/workspaces/{workspace.workspace_id}/api-keys"
    assert workspace.admin.post(path, {"scopes": ["operator"]}).status == 403
    assert workspace.admin.post("/workspaces", {}).status == 403
    assert workspace.admin.post("/billing/credits", {"amount": 5}).status == 403
    assert workspace.caller("produce").post(path, {"scopes": ["admin"]}).status == 403


def test_an_agents_key_names_its_agent_and_has_no_other_scope(workspace: Workspace) -> None:
    agent_id = register(workspace.admin)["agentId"]
    path = f"/workspaces/{workspace.workspace_id}/api-keys"
    codes = {
        "agent_id_mismatch": [{"scopes": ["agent"]}, {"scopes": ["read"], "agentId": agent_id}],
        "agent_scope_alone": [
            {"scopes": ["agent", other], "agentId": agent_id} for other in ("read", "runner", "admin")
        ],
        "scope_repeated": [{"scopes": ["read", "read"]}],
        "agent_not_found": [{"scopes": ["agent"], "agentId": "agt_0000000000000000000000000"}],
    }
    for code, bodies in codes.items():
        assert [workspace.admin.post(path, body).json["code"] for body in bodies] == [code] * len(bodies)


def test_an_agent_that_may_produce_creates_work_under_its_own_name(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent_id = register(workspace.admin, "Mine")["agentId"]
    task_id = create_task(workspace.caller("agent", "produce", agent_id=agent_id))
    created = workspace.admin.get(f"/tasks/{task_id}/events?type=task.created").json["items"][0]
    assert created["actor"] == {"type": "agent", "id": "mine"}


def test_an_agents_key_acts_only_as_its_agent(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    mine, theirs = (register(workspace.admin, name)["agentId"] for name in ("Mine", "Theirs"))
    agent = workspace.caller("agent", agent_id=mine)
    task_id = create_task(workspace.admin)
    refused = agent.post(f"/tasks/{task_id}/claim", {"agentId": theirs})
    missing = agent.post(f"/tasks/{task_id}/claim", {"agentId": "agt_00000000000000000000000000"})
    assert (refused.status, refused.content) == (404, missing.content)
    assert agent.post(f"/tasks/{task_id}/claim", {"agentId": mine}).json["status"] == "claimed"


# Tokens.


def test_a_token_represents_its_key_and_anyone_can_verify_it(workspace: Workspace) -> None:
    made, url = workspace.key("produce", "read"), workspace.server.url
    reply = token_for(workspace.server, made["apiKey"], scope="read")
    assert reply.headers["cache-control"] == "no-store"
    body = reply.json()
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 900, "read")
    metadata = httpx2.get(f"{url}/.well-known/oauth-authorization-server", timeout=60).json()
    assert metadata["token_endpoint"] == f"{url}/oauth/token"
    keys = jwt.PyJWKSet.from_dict(httpx2.get(metadata["jwks_uri"], timeout=60).json())
    key = keys[jwt.get_unverified_header(body["access_token"])["kid"]]
    claims = jwt.decode(body["access_token"], key.key, algorithms=["EdDSA"], options={"verify_aud": False})
    assert (claims["iss"], claims["sub"], claims["scope"]) == (url, made["keyId"], "read")
    with workspace.server.client(body["access_token"]) as caller:
        assert caller.get("/queues").status == 200
        assert caller.post("/queues", {"name": "q"}).status == 403


def test_client_credentials_may_come_in_the_body(workspace: Workspace) -> None:
    prefix, _, secret = workspace.key("read")["apiKey"].rpartition("_")
    form = {"grant_type": "client_credentials", "client_id": prefix.removeprefix("rk_"), "client_secret": secret}
    assert httpx2.post(f"{workspace.server.url}/oauth/token", data=form, timeout=60).json()["scope"] == "read"


def test_errors_are_those_of_rfc_6749(workspace: Workspace) -> None:
    url, made = f"{workspace.server.url}/oauth/token", workspace.key("read")["apiKey"]
    prefix, _, secret = made.rpartition("_")
    good: dict[str, Any] = {"grant_type": "client_credentials"}
    auth = (prefix.removeprefix("rk_"), secret)
    cases: list[tuple[int, str, dict[str, Any]]] = [
        (400, "invalid_request", {"data": {}, "auth": auth}),
        (400, "invalid_request", {"json": good, "auth": auth}),
        (400, "invalid_request", {"data": {**good, "client_id": "x", "client_secret": "y"}, "auth": auth}),
        (400, "invalid_request", {"content": b"grant_type=a&grant_type=b", "auth": auth, "headers": _FORM}),
        (400, "unsupported_grant_type", {"data": {"grant_type": "password"}, "auth": auth}),
        (400, "invalid_scope", {"data": {**good, "scope": "admin"}, "auth": auth}),
        (400, "invalid_scope", {"data": {**good, "scope": ""}, "auth": auth}),
        (401, "invalid_client", {"data": good, "auth": (auth[0], "wrong")}),
        (401, "invalid_client", {"data": good, "auth": ("nobody", secret)}),
        (401, "invalid_client", {"data": good}),
        (401, "invalid_client", {"data": good, "headers": {"authorization": "Basic !!"}}),
        (401, "invalid_client", {"data": good, "headers": {"authorization": f"Bearer {made}"}}),
    ]
    for status, error, request in cases:
        reply = httpx2.post(url, timeout=60, **request)
        assert (reply.status_code, reply.json()["error"]) == (status, error), request
        assert ("www-authenticate" in reply.headers) == ("authorization" in reply.request.headers and status == 401)


_FORM = {"content-type": "application/x-www-form-urlencoded"}


def _forged(token: str, header: dict[str, Any] | None = None, **claims: Any) -> str:
    head, body, signature = token.split(".")
    told = {**json.loads(base64.urlsafe_b64decode(body + "==")), **claims}
    if header is not None:
        head = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    return f"{head}.{base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b'=').decode()}.{signature}"


def test_a_token_may_have_any_scope_that_its_key_includes(workspace: Workspace) -> None:
    server = workspace.server
    admin_key = str(workspace.admin.key)
    for scope, writes, manages in (("read", 403, 403), ("produce", 201, 403), ("produce read", 201, 403)):
        reply = token_for(server, admin_key, scope=scope)
        assert (reply.status_code, reply.json()["scope"]) == (200, scope)
        with server.client(reply.json()["access_token"]) as narrowed:
            assert narrowed.get("/queues").status == 200
            assert narrowed.post("/queues", {"name": f"q{len(scope)}"}).status == writes
            assert narrowed.get(f"/workspaces/{workspace.workspace_id}/api-keys").status == manages
    # The first key is operator and admin: a token of it may be neither.
    with server.client(token_for(server, server.key, scope="read").json()["access_token"]) as reader:
        assert reader.get("/queues").status == 200
        assert reader.post("/workspaces", {}).status == 403
    for key, scope in (
        (admin_key, "operator"),
        # To act as one agent, a caller needs a key that names it.
        (admin_key, "agent"),
        (workspace.key("produce")["apiKey"], "runner"),
        (workspace.key("read")["apiKey"], "produce"),
        (workspace.key("runner")["apiKey"], "admin"),
    ):
        refused = token_for(server, key, scope=scope)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope"), scope


def test_a_token_that_was_changed_is_worth_nothing(workspace: Workspace) -> None:
    token = token_for(workspace.server, workspace.key("read")["apiKey"]).json()["access_token"]
    key_set = httpx2.get(f"{workspace.server.url}/.well-known/jwks.json", timeout=60).json()["keys"][0]
    public = base64.urlsafe_b64decode(key_set["x"] + "==")
    forged = [
        _forged(token, scope="admin"),
        _forged(token, exp=2**40),
        _forged(token, header={"alg": "none"}) + "",
        ".".join(token.split(".")[:2]) + ".",
        jwt.encode({"sub": "x"}, public, algorithm="HS256", headers={"kid": key_set["kid"]}),
        token[:-4] + "AAAA",
        token + ".x",
    ]
    for one in forged:
        with workspace.server.client(one) as caller:
            assert caller.get("/queues").status == 401, one


def test_a_token_ends(start: Any) -> None:
    server = start(config="token_seconds = 60\n")
    issued = token_for(server, server.key).json()
    assert issued["expires_in"] == 60
    claims = json.loads(base64.urlsafe_b64decode(issued["access_token"].split(".")[1] + "=="))
    assert claims["exp"] - claims["iat"] == 60
