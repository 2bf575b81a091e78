"""People: invited by address, logged in by OAuth code with PKCE, and removed by admins."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.conftest import Workspace
from tests.harness.client import Client
from tests.harness.person import REDIRECT, Flow, answer_of
from tests.harness.server import Server, serving


@pytest.fixture
def invited(workspace: Workspace) -> dict[str, Any]:
    """A person with a code."""
    return invite(workspace)


def invite(workspace: Workspace, email: str = "ada@example.com", *scopes: str) -> dict[str, Any]:
    body = {"email": email, "scopes": list(scopes or ("produce",)), "name": "Ada Lovelace"}
    reply = workspace.admin.post(f"/workspaces/{workspace.workspace_id}/people", body)
    assert reply.status == 201, reply.text
    found: dict[str, Any] = reply.json
    return found


@pytest.fixture
def flow(server: Server) -> Flow:
    return Flow(server.url)


def test_an_invited_person_logs_in_and_the_ledger_shows_who_acted(
    workspace: Workspace, invited: dict[str, Any], flow: Flow
) -> None:
    page = flow.page()
    assert page.status_code == 200
    assert "RedKey command line" in page.text
    assert "<script" not in page.text
    tokens = flow.tokens(" Ada@Example.com ", invited["loginCode"].lower().replace("-", " "))
    assert tokens["scope"] == "produce"
    with workspace.server.client(tokens["access_token"]) as ada:
        created = ada.post("/queues", {"name": "Research"})
        assert created.status == 201
        event = ada.get(f"/events/{created.json['eventId']}").json
    assert event["actor"] == {"type": "human", "id": invited["personId"]}
    [person] = workspace.admin.get(f"/workspaces/{workspace.workspace_id}/people").json["items"]
    assert (person["email"], person["name"]) == ("ada@example.com", "Ada Lovelace")
    assert (person["id"], person["sessions"][0]["id"]) == (invited["personId"], person["sessions"][0]["sessionId"])
    assert [one["clientName"] for one in person["sessions"]] == ["RedKey command line"]
    # Texts are content: the records have neither name nor address.
    records = workspace.admin.get("/ledger/query?limit=100").text
    assert invited["personId"] in records
    # Three letters of hexadecimal alone may be in any hash.
    assert not [word for word in ("ada@", "ada ", '"ada"', "lovelace", "example.com") if word in records.lower()]


def test_a_code_of_a_person_is_good_once(invited: dict[str, Any], flow: Flow) -> None:
    assert "code" in flow.log_in("ada@example.com", invited["loginCode"])
    again = flow.send(flow.page(), email="ada@example.com", code=invited["loginCode"], action="allow")
    assert again.status_code == 401
    assert "do not match" in again.text


def test_a_wrong_code_and_an_unknown_address_are_answered_alike(invited: dict[str, Any], flow: Flow) -> None:
    page = flow.page()
    replies = [
        flow.send(page, email=email, code="0000-0000-0000", action="allow")
        for email in ("ada@example.com", "bob@example.com")
    ]
    assert [one.status_code for one in replies] == [401, 401]
    assert replies[0].text.replace("ada@", "bob@") == replies[1].text


def test_a_new_code_ends_the_one_before(workspace: Workspace, invited: dict[str, Any], flow: Flow) -> None:
    path = f"/workspaces/{workspace.workspace_id}/people/{invited['personId']}/codes"
    newer = workspace.admin.post(path, {}).json
    assert newer["loginCode"] != invited["loginCode"]
    old = flow.send(flow.page(), email="ada@example.com", code=invited["loginCode"], action="allow")
    assert old.status_code == 401
    assert "code" in flow.log_in("ada@example.com", newer["loginCode"])


def test_an_invitation_that_is_repeated_gives_the_same_code(workspace: Workspace) -> None:
    path, body = f"/workspaces/{workspace.workspace_id}/people", {"email": "eve@example.com"}
    first, second = (workspace.admin.post(path, body, key="once") for _ in range(2))
    assert first.status == 201, first.text
    assert first.content == second.content
    # A person without a name is listed among the keys by the address.
    keys = workspace.admin.get(f"/workspaces/{workspace.workspace_id}/api-keys").json["items"]
    assert "eve@example.com" in [one["name"] for one in keys]
    taken = workspace.admin.post(path, body)
    assert (taken.status, taken.json["code"]) == (409, "person_exists")


def test_one_address_may_be_in_two_workspaces(workspace: Workspace, other: Workspace, server: Server) -> None:
    codes = [invite(one, "two@example.com")["loginCode"] for one in (workspace, other)]
    seen = []
    for code in codes:
        flow = Flow(server.url)
        with server.client(flow.tokens("two@example.com", code)["access_token"]) as caller:
            seen.append(caller.get("/workspaces").json["items"][0]["workspaceId"])
    assert seen == [workspace.workspace_id, other.workspace_id]


@pytest.mark.parametrize(
    ("email", "code"),
    [("nobody", "address_invalid"), ("a@b@c.example", "address_invalid"), ("a b@c.example", "address_invalid")],
)
def test_what_is_no_address_is_refused(workspace: Workspace, email: str, code: str) -> None:
    reply = workspace.admin.post(f"/workspaces/{workspace.workspace_id}/people", {"email": email})
    assert (reply.status, reply.json["code"]) == (422, code)


def test_only_admins_invite_and_only_operators_invite_operators(workspace: Workspace, other: Workspace) -> None:
    path = f"/workspaces/{workspace.workspace_id}/people"
    producer = workspace.caller("produce")
    assert producer.post(path, {"email": "x@example.com"}).status == 403
    assert producer.get(path).status == 403
    assert other.admin.post(path, {"email": "x@example.com"}).status == 404
    assert workspace.admin.post(path, {"email": "x@example.com", "scopes": ["operator"]}).status == 403


# Ends.


def test_a_person_who_is_removed_is_out_at_once(workspace: Workspace, invited: dict[str, Any], flow: Flow) -> None:
    tokens = flow.tokens("ada@example.com", invited["loginCode"])
    path = f"/workspaces/{workspace.workspace_id}/people/{invited['personId']}"
    with workspace.server.client(tokens["access_token"]) as ada:
        assert ada.get("/queues").status == 200
        removed = workspace.admin.delete(path)
        assert (removed.status, removed.json["status"]) == (200, "removed")
        assert ada.get("/queues").status == 401
    assert flow.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert workspace.admin.post(f"{path}/codes", {}).status == 404
    assert workspace.admin.delete(path).status == 404


@pytest.mark.parametrize("how", ["admin", "refresh_token", "access_token"])
def test_a_session_that_is_ended_ends_its_tokens_and_streams(
    workspace: Workspace, invited: dict[str, Any], flow: Flow, how: str
) -> None:
    tokens = flow.tokens("ada@example.com", invited["loginCode"])
    headers = {"authorization": f"Bearer {tokens['access_token']}"}
    opened, ended = threading.Event(), threading.Event()

    def follow() -> None:
        with httpx2.stream("GET", f"{flow.url}/stream", headers=headers, timeout=60) as stream:
            opened.set()
            for _ in stream.iter_raw():
                pass
        ended.set()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    assert opened.wait(60)
    path = f"/workspaces/{workspace.workspace_id}/people"
    if how == "admin":
        [person] = workspace.admin.get(path).json["items"]
        session_id = person["sessions"][0]["sessionId"]
        assert workspace.admin.delete(f"{path}/{invited['personId']}/sessions/{session_id}").status == 200
        assert workspace.admin.delete(f"{path}/{invited['personId']}/sessions/{session_id}").status == 404
    else:
        assert flow.http.post(f"{flow.url}/oauth/revoke", data={"token": tokens[how]}).status_code == 200
    assert ended.wait(60)
    follower.join()
    with workspace.server.client(tokens["access_token"]) as ada:
        assert ada.get("/queues").status == 401
    assert flow.refresh(tokens["refresh_token"]).status_code == 400
    [person] = workspace.admin.get(path).json["items"]
    assert person.get("sessions", []) == []


def test_a_person_is_no_way_back_in(workspace: Workspace) -> None:
    invite(workspace, "boss@example.com", "admin")
    [key] = [
        one
        for one in workspace.admin.get(f"/workspaces/{workspace.workspace_id}/api-keys").json["items"]
        if "admin" in one["scopes"] and one["name"] is None
    ]
    refused = workspace.admin.delete(f"/workspaces/{workspace.workspace_id}/api-keys/{key['keyId']}")
    assert (refused.status, refused.json["code"]) == (409, "last_admin_key")


def test_the_key_of_a_person_gives_no_access_without_a_login(server: Server, invited: dict[str, Any]) -> None:
    # Its public id is on the ledger; no secret of it was ever shown.
    public = invited["personId"][-16:]
    form = {"grant_type": "client_credentials", "client_id": public, "client_secret": "0" * 48}
    assert httpx2.post(f"{server.url}/oauth/token", data=form, timeout=60).status_code == 401


# Codes, verifiers, refresh tokens.


@pytest.mark.parametrize(
    "changed",
    [
        {"code_verifier": "x" * 43},
        {"code_verifier": ""},
        {"redirect_uri": "http://127.0.0.1:49153/callback"},
        {"client_id": "redkey-studio"},
        {"client_id": ""},
    ],
)
def test_a_code_is_bound_to_its_client_and_verifier(
    invited: dict[str, Any], flow: Flow, changed: dict[str, str]
) -> None:
    code = flow.log_in("ada@example.com", invited["loginCode"])["code"]
    refused = flow.exchange(code, **changed)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert flow.exchange(code).status_code == 200


def test_a_code_that_is_exchanged_twice_ends_the_session(server: Server, invited: dict[str, Any], flow: Flow) -> None:
    code = flow.log_in("ada@example.com", invited["loginCode"])["code"]
    tokens = flow.exchange(code).json()
    assert flow.exchange(code).json()["error"] == "invalid_grant"
    assert flow.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    with server.client(tokens["access_token"]) as ada:
        assert ada.get("/queues").status == 401


def test_refresh_tokens_are_rotated_and_an_old_one_ends_the_session(
    server: Server, invited: dict[str, Any], flow: Flow
) -> None:
    first = flow.tokens("ada@example.com", invited["loginCode"])
    second = flow.refresh(first["refresh_token"]).json()
    # The answer was lost: the same refresh again gives the same refresh token, and no second chain.
    assert flow.refresh(first["refresh_token"]).json()["refresh_token"] == second["refresh_token"]
    third = flow.refresh(second["refresh_token"], scope="read").json()
    assert third["scope"] == "read"
    assert flow.refresh(third["refresh_token"], scope="admin").json()["error"] == "invalid_scope"
    assert flow.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert flow.refresh(third["refresh_token"]).json()["error"] == "invalid_grant"
    with server.client(third["access_token"]) as ada:
        assert ada.get("/queues").status == 401


def test_a_token_of_another_client_or_a_forged_one_is_refused(invited: dict[str, Any], flow: Flow) -> None:
    token = flow.tokens("ada@example.com", invited["loginCode"])["refresh_token"]
    assert flow.refresh(token, client_id="redkey-studio").json()["error"] == "invalid_grant"
    forged = token[:-1] + ("0" if token[-1] != "0" else "1")
    assert flow.refresh(forged).json()["error"] == "invalid_grant"
    assert flow.exchange(token).json()["error"] == "invalid_grant"
    assert flow.refresh(token).status_code == 200


# Requests of clients.


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "unknown"},
        {"client_id": "rkd_e30.00000000000000000000000000000000"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1:49152/other"},
        {"redirect_uri": "http://127.0.0.1:49152@evil.example/callback"},
        {"redirect_uri": "http://127.0.0.1:49152\\@evil.example/callback"},
        {"redirect_uri": "http://evil.example:49152/callback"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "http://127.0.0.1:49152/callback#x"},
        {"redirect_uri": ""},
    ],
)
def test_an_answer_goes_only_where_the_client_registered_it(flow: Flow, changed: dict[str, str]) -> None:
    refused = flow.page(**changed)
    assert refused.status_code == 400
    assert "location" not in refused.headers
    assert "cannot log you in" in refused.text


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"resource": "https://other.example"}, "invalid_target"),
    ],
)
def test_a_known_client_learns_what_is_wrong(flow: Flow, changed: dict[str, str], error: str) -> None:
    answer = answer_of(flow.page(**changed))
    assert (answer["error"], answer["state"], answer["iss"]) == (error, "some state", flow.url)


def test_a_person_may_refuse_and_may_give_less(workspace: Workspace, invited: dict[str, Any], server: Server) -> None:
    flow = Flow(server.url, scope="admin read")
    assert answer_of(flow.send(flow.page(), email="", code="", action="deny"))["error"] == "access_denied"
    assert flow.tokens("ada@example.com", invited["loginCode"])["scope"] == "read"
    reader = invite(workspace, "reader@example.com", "read")
    beyond = Flow(server.url, scope="admin")
    assert beyond.log_in("reader@example.com", reader["loginCode"])["error"] == "invalid_scope"


def test_the_page_is_closed_to_scripts_frames_and_other_sites(flow: Flow) -> None:
    page = flow.page(client_id="redkey-cli")
    policy = page.headers["content-security-policy"]
    for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert f"form-action 'self' {REDIRECT.removesuffix('/callback')}" in policy
    assert page.headers["cache-control"] == "no-store"
    foreign = flow.http.post(f"{flow.url}/oauth/authorize", data=flow.asked, headers={"sec-fetch-site": "cross-site"})
    assert foreign.status_code == 403


def test_a_client_registers_itself_and_its_text_is_shown_as_text(
    workspace: Workspace, invited: dict[str, Any], server: Server
) -> None:
    with Client(server.url) as client:
        body = {"client_name": "<b>Editor</b>", "redirect_uris": [REDIRECT, "cursor://x/callback"], "logo_uri": "x"}
        made = client.post("/oauth/register", body)
        assert made.status == 201, made.text
        for uri in ("http://evil.example/", "javascript:alert(1)", "https://a.example/#x", "https://u@a.example/", "x"):
            refused = client.post("/oauth/register", {"redirect_uris": [uri]})
            assert (refused.status, refused.json["error"]) == (400, "invalid_redirect_uri"), uri
        secret = client.post("/oauth/register", {**body, "token_endpoint_auth_method": "client_secret_post"})
        assert secret.json["error"] == "invalid_client_metadata"
    flow = Flow(server.url, made.json["client_id"])
    page = flow.page()
    assert "&lt;b&gt;Editor&lt;/b&gt;" in page.text
    assert flow.tokens("ada@example.com", invited["loginCode"])["access_token"]
    assert flow.page(redirect_uri="https://evil.example/").status_code == 400


def test_clients_find_out_where_people_log_in(server: Server) -> None:
    with Client(server.url) as client:
        found = client.get("/.well-known/oauth-protected-resource/mcp").json
        assert found["resource"] == f"{server.url}/mcp"
        assert found["authorization_servers"] == [server.url]
        assert client.get("/.well-known/oauth-protected-resource").json["resource"] == server.url
        metadata = client.get("/.well-known/oauth-authorization-server").json
    assert metadata["issuer"] == server.url
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert {"authorization_code", "refresh_token", "client_credentials"} == {*metadata["grant_types_supported"]}
    refused = httpx2.post(f"{server.url}/mcp", json={}, timeout=60)
    assert refused.status_code == 401
    place = f'resource_metadata="{server.url}/.well-known/oauth-protected-resource/mcp"'
    assert place in refused.headers["www-authenticate"]


# Failures, mail, signup: a server with settings of its own.

one_server = pytest.mark.xdist_group("people")


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server that limits wrong codes, writes mail to a folder, and allows signup."""
    folder = tmp_path_factory.mktemp("configured")
    program = folder / "mail"
    program.write_text(f"#!/bin/sh\ncat > {folder}/part.$$ && mv {folder}/part.$$ {folder}/sent.$$\n")
    program.chmod(0o755)
    config = (
        "[logins]\nper_second = 0.01\nburst = 2\n"
        f'[login]\nmail_command = "{program}"\nmail_from = "Keys <keys@example.com>"\n'
        "[signup]\nenabled = true\ncredits = 50\nper_hour = 3\n"
    )
    with serving(folder, config=config) as server:
        yield server, folder


@one_server
def test_wrong_codes_are_bounded(configured: tuple[Server, Path]) -> None:
    server, _ = configured
    flow = Flow(server.url)
    page = flow.page()
    replies = [flow.send(page, email="a@example.com", code="x", action="allow") for _ in range(3)]
    assert [one.status_code for one in replies] == [401, 401, 429]
    assert int(replies[-1].headers["retry-after"]) > 0


@one_server
def test_codes_are_mailed_by_the_program_that_the_operator_names(configured: tuple[Server, Path]) -> None:
    server, folder = configured
    with server.client() as admin:
        path = f"/workspaces/{server.workspace_id}/people"
        made = admin.post(path, {"email": "ada@example.com"}).json
        assert made["delivery"] == "by_mail"
        assert made["loginCode"] in _message(folder, 1)
        flow = Flow(server.url)
        assert "code" in flow.log_in("ada@example.com", made["loginCode"])
        page = flow.page()
        known = flow.send(page, email="ada@example.com", action="send")
        unknown = flow.send(page, email="bob@example.com", action="send")
        assert known.text.replace("ada@", "bob@") == unknown.text
        message = _message(folder, 2)
        assert "To: ada@example.com" in message
        code = next(line.strip() for line in message.splitlines() if line.count("-") == 2 and len(line.strip()) == 14)
        assert "code" in flow.log_in("ada@example.com", code)
        limited = [flow.send(page, email="ada@example.com", action="send").status_code for _ in range(10)]
        assert limited[-1] == 429
    assert made["loginCode"] not in server.logs()


def _message(folder: Path, count: int) -> str:
    """Return the newest message after `count` messages have arrived."""
    until = time.monotonic() + 60
    while len(found := sorted(folder.glob("sent.[0-9]*"), key=lambda one: one.stat().st_mtime_ns)) < count:
        assert time.monotonic() < until
        time.sleep(0.02)
    return found[-1].read_text()


def test_signup_is_off_unless_the_operator_allows_it(server: Server) -> None:
    with Client(server.url) as client:
        refused = client.post("/signup", {})
    assert (refused.status, refused.json["code"]) == (403, "signup_disabled")


@one_server
def test_signup_creates_a_workspace_with_an_admin_key_and_credits(configured: tuple[Server, Path]) -> None:
    server, _ = configured
    with Client(server.url) as client:
        made = client.post("/signup", {"name": "Podcast"})
        assert (made.status, made.json["credits"]) == (201, 50)
        secret = client.post("/signup", {"name": f"my key {made.json['apiKey']}"})
        assert (secret.status, secret.json["code"]) == (422, "secret_detected")
        assert client.post("/signup", {}).json["workspaceId"] != made.json["workspaceId"]
        limited = client.post("/signup", {})
        assert (limited.status, limited.json["code"]) == (429, "signups_limited")
        assert int(limited.headers["retry-after"]) > 0
    with server.client(made.json["apiKey"]) as admin:
        assert [one["name"] for one in admin.get("/workspaces").json["items"]] == ["Podcast"]
        assert admin.get("/billing/credits").json["granted"] == 50
        assert admin.post("/queues", {"name": "a"}).status == 201
        assert admin.post("/workspaces", {}).status == 403
        types = [one["type"] for one in admin.get("/ledger/query?limit=10").json["items"]]
    assert {"workspace.created", "key.created", "credits.granted"} <= {*types}
