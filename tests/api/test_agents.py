"""Agents over HTTP: registered by their cards, changed, seen by heartbeats, deactivated, listed with their claims."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from redkey.wire import files
from tests.api.conftest import Workspace
from tests.harness.acts import CARD, begin_queue, claim, create_task, head, register
from tests.harness.server import serving

QUINN: dict[str, Any] = files.load("definitions/cards/quinn.json")
RESEARCHER = {
    **CARD,
    "skills": [{"id": "web_search", "name": "Web search", "tags": ["Source Review"]}],
    "capabilities": {"streaming": True},
    "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
}


def test_a_card_is_normalised_as_the_seed_lists(workspace: Workspace) -> None:
    body = {
        "workspaceId": workspace.workspace_id,
        "agentCard": RESEARCHER,
        "framework": "openclaw",
        "eligibleRoles": ["researcher", "role_researcher", "roles.writer"],
    }
    reply = workspace.admin.post("/agents/register-card", body)
    assert reply.status == 201
    agent = reply.json
    assert agent["agentId"].startswith("agt_")
    assert agent["eventId"].startswith("evt_")
    assert (agent["slug"], agent["name"]) == ("research-agent", "Research Agent")
    assert agent["endpoint"] == "https://agent.example.com/a2a"
    assert agent["framework"] == "openclaw"
    assert agent["capabilities"] == ["web_search", "source_review"]
    assert [skill["id"] for skill in agent["skills"]] == ["web_search"]
    assert agent["authRequirements"] == [{"name": "bearer", "type": "http"}]
    assert agent["verification"] == {"status": "unverified"}
    assert agent["eligibleRoles"] == ["role_researcher", "role_writer"]
    # What a registration says makes nobody eligible.
    assert agent["roles"] == []
    shown = workspace.admin.get(f"/agents/{agent['agentId']}").json
    assert shown["card"] == RESEARCHER
    assert {name: shown[name] for name in agent.keys() & shown.keys()} == {
        name: agent[name] for name in agent.keys() & shown.keys()
    }


def test_registration_is_one_metered_event(workspace: Workspace) -> None:
    agent = register(workspace.admin)
    event = workspace.admin.get(f"/events/{agent['eventId']}").json
    assert (event["type"], event["subject"]) == ("agent.registered", {"type": "agent", "id": agent["agentId"]})
    usage = workspace.admin.get("/usage?by=type").json
    assert any(item.get("type") == "agent.registered" and item["events"] == 1 for item in usage["items"])


def test_names_may_repeat_and_slugs_do_not(workspace: Workspace) -> None:
    slugs = [register(workspace.admin, slot=slot)["slug"] for slot in ("", "two", "three")]
    assert slugs == ["research-agent", "research-agent-2", "research-agent-3"]
    found = workspace.admin.get("/agents?slug=research-agent-2").json["items"]
    assert [agent["slug"] for agent in found] == ["research-agent-2"]
    assert workspace.admin.get("/agents?slug=nobody").json["items"] == []


def test_a_redkey_card_keeps_its_slug_and_its_warnings_are_returned(workspace: Workspace) -> None:
    reply = workspace.admin.post("/agents/register-card", {"agentCard": QUINN})
    assert reply.status == 201
    assert (reply.json["slug"], reply.json["cardFormat"]) == ("quinn", "redkey/1.0")
    assert {warning["code"] for warning in reply.json["warnings"]} == {"reports_to_unknown", "route_unknown"}
    again = workspace.admin.post("/agents/register-card", {"agentCard": QUINN})
    assert (again.status, again.json["agentId"]) == (201, reply.json["agentId"])
    # Another agent may not have the slug that the card names.
    taken = workspace.admin.post("/agents/register-card", {"agentCard": QUINN, "slot": "two"})
    assert (taken.status, taken.json["code"]) == (409, "slug_taken")
    broken = {**QUINN, "scope": "One. Two.", "constraints": ["Avoid main"]}
    refused = workspace.admin.post("/agents/register-card", {"agentCard": broken})
    assert refused.status == 422
    assert {error["pointer"] for error in refused.json["errors"]} == {"/agentCard/scope", "/agentCard/constraints/0"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/agentCard"),
        ({"agentCard": CARD, "agentCardUrl": "https://a.example/"}, "/agentCard"),
        ({"agentCard": {"name": 7}}, "/agentCard/name"),
        ({"agentCard": {**CARD, "url": "javascript:alert(1)"}}, "/agentCard/url"),
        ({"agentCard": CARD, "eligibleRoles": ["!"]}, "/eligibleRoles/0"),
        ({"agentCard": CARD, "owner": "me"}, "/owner"),
        ({"agentCardUrl": "http://agent.example.com/card"}, "/agentCardUrl"),
        ({"agentCardUrl": "https://127.0.0.1/card"}, "/agentCardUrl"),
        ({"agentCardUrl": "https://169.254.169.254/latest/meta-data"}, "/agentCardUrl"),
        ({"agentCardUrl": "https://2130706433/"}, "/agentCardUrl"),
        ({"agentCardUrl": "file:///etc/passwd"}, "/agentCardUrl"),
    ],
)
def test_what_is_no_card_is_refused_and_writes_nothing(workspace: Workspace, body: Any, pointer: str) -> None:
    before = head(workspace.admin)
    reply = workspace.admin.post("/agents/register-card", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}
    assert head(workspace.admin) == before


def test_the_workspace_of_a_registration_is_the_callers(workspace: Workspace, other: Workspace) -> None:
    for workspace_id in (other.workspace_id, "wk_nobody"):
        reply = workspace.admin.post("/agents/register-card", {"workspaceId": workspace_id, "agentCard": CARD})
        assert (reply.status, reply.json["code"]) == (404, "workspace_not_found")
    assert other.admin.get("/agents").json["items"] == []


def test_an_issued_key_acts_as_its_agent_alone_and_is_shown_once(workspace: Workspace) -> None:
    agent = register(workspace.admin, issueKey=True)
    assert agent["apiKey"].startswith("rk_")
    assert "apiKey" not in workspace.admin.get(f"/agents/{agent['agentId']}").json
    stranger = register(workspace.admin, "Stranger")
    with workspace.server.client(agent["apiKey"]) as caller:
        assert caller.post(f"/agents/{agent['agentId']}/heartbeat").json["status"] == "alive"
        for path in ("heartbeat", "deactivate"):
            reply = caller.post(f"/agents/{stranger['agentId']}/{path}")
            assert (reply.status, reply.json["code"]) == (404, "agent_not_found")
        assert caller.patch(f"/agents/{agent['agentId']}", {"verification": "verified"}).status == 403
        assert caller.post("/agents/register-card", {"agentCard": CARD}).status == 403
        assert caller.post("/roles", {"name": "R"}).status == 403


def test_a_repeated_registration_gets_the_same_bytes_and_the_same_key(workspace: Workspace) -> None:
    body = {"agentCard": RESEARCHER, "issueKey": True}
    replies = [workspace.admin.post("/agents/register-card", body, key="register-1") for _ in range(3)]
    assert len({reply.content for reply in replies}) == 1
    agent_id = replies[0].json["agentId"]
    workspace.admin.patch(f"/agents/{agent_id}", {"slug": "renamed", "active": False})
    assert workspace.admin.post("/agents/register-card", body, key="register-1").content == replies[0].content
    assert len(workspace.admin.get("/agents").json["items"]) == 1


def test_an_agent_is_changed_by_admins(workspace: Workspace) -> None:
    agent = register(workspace.admin)
    path = f"/agents/{agent['agentId']}"
    assert workspace.admin.patch(path, {"slug": "finder"}).json["slug"] == "finder"
    assert workspace.admin.patch(path, {"verification": "verified"}).json["verification"]["status"] == "verified"
    shown = workspace.admin.patch(path, {"framework": "langgraph", "eligibleRoles": ["writer"]}).json
    assert (shown["framework"], shown["eligibleRoles"]) == ("langgraph", ["role_writer"])
    shown = workspace.admin.patch(path, {"agentCard": RESEARCHER}).json
    assert shown["capabilities"] == ["web_search", "source_review"]
    # The new card is unverified, even if the old one was verified.
    assert (shown["verification"]["status"], shown["framework"]) == ("unverified", "langgraph")
    assert workspace.admin.patch(path, {"active": False}).json["active"] is False
    assert workspace.admin.patch(path, {}).json["code"] == "nothing_to_change"
    other = register(workspace.admin, "Other")
    taken = workspace.admin.patch(f"/agents/{other['agentId']}", {"slug": "finder"})
    assert (taken.status, taken.json["code"]) == (409, "slug_taken")
    assert workspace.admin.patch("/agents/agt_nobody", {"slug": "x"}).status == 404


def test_many_capabilities_take_several_wires_and_one_reply(workspace: Workspace) -> None:
    skills = [{"id": f"skill_{number}"} for number in range(30)]
    agent = workspace.admin.post("/agents/register-card", {"agentCard": {**CARD, "skills": skills}}).json
    assert agent["capabilities"] == [skill["id"] for skill in skills]
    assert workspace.admin.get(f"/agents/{agent['agentId']}").json["capabilities"] == agent["capabilities"]


def test_heartbeats_are_recorded_when_something_changed_and_coalesced_otherwise(workspace: Workspace) -> None:
    agent = register(workspace.admin)
    path = f"/agents/{agent['agentId']}/heartbeat"
    assert "eventId" in workspace.admin.post(path, {"capacity": 4, "inUse": 1}).json
    before = head(workspace.admin)
    for _ in range(20):
        assert "eventId" not in workspace.admin.post(path, {"capacity": 4, "inUse": 1}).json
    assert head(workspace.admin) == before
    shown = workspace.admin.get(f"/agents/{agent['agentId']}").json
    assert (shown["capacity"], shown["inUse"]) == (4, 1)
    assert workspace.admin.post(path, {"capacity": -1}).status == 422
    assert workspace.admin.post("/agents/agt_nobody/heartbeat").status == 404


def test_a_deactivated_agent_claims_nothing_and_learns_it(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = register(workspace.admin)
    task_id = create_task(workspace.admin)
    path = f"/agents/{agent['agentId']}"
    ended = workspace.admin.post(f"{path}/deactivate").json
    assert (ended["status"], ended["eventId"][:4]) == ("deactivated", "evt_")
    again = workspace.admin.post(f"{path}/deactivate")
    assert (again.status, again.json) == (200, {"agentId": agent["agentId"], "status": "deactivated"})
    assert workspace.admin.post(f"{path}/heartbeat").json["code"] == "inactive_agent"
    rejected = claim(workspace.admin, task_id, agent["agentId"])
    assert (rejected["status"], rejected["reason"]) == ("rejected", "inactive_agent")
    assert rejected["next"]["action"] == "ask_for_activation"
    assert [one["agentId"] for one in workspace.admin.get("/agents?active=false").json["items"]] == [agent["agentId"]]
    workspace.admin.patch(path, {"active": True})
    assert claim(workspace.admin, task_id, agent["agentId"])["status"] == "claimed"


def test_agents_are_listed_in_pages_and_by_role(workspace: Workspace) -> None:
    ids = sorted(register(workspace.admin, f"Agent {number}")["agentId"] for number in range(5))
    workspace.admin.post("/roles", {"name": "Writer"})
    workspace.admin.post(f"/roles/writer/agents/{ids[3]}")
    seen: list[str] = []
    after = ""
    while True:
        page = workspace.admin.get(f"/agents?limit=2&after={after}").json
        seen += [agent["agentId"] for agent in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == ids
    found = workspace.admin.get("/agents?role=roles.writer").json["items"]
    assert [agent["agentId"] for agent in found] == [ids[3]]
    assert workspace.admin.get("/agents?after=nonsense").json["errors"][0]["pointer"] == "/after"


def test_claim_history_lists_every_outcome_newest_first(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    workspace.admin.post("/roles", {"name": "Writer"})
    first, second = register(workspace.admin, "First"), register(workspace.admin, "Second")
    open_task, closed_task = create_task(workspace.admin), create_task(workspace.admin, requiredRoles=["writer"])
    won = claim(workspace.admin, open_task, first["agentId"])
    missed = claim(workspace.admin, open_task, second["agentId"])
    rejected = claim(workspace.admin, closed_task, second["agentId"])
    history = workspace.admin.get(f"/agents/{second['agentId']}/claim-history").json["items"]
    assert [item["eventId"] for item in history] == [rejected["eventId"], missed["eventId"]]
    assert [item["status"] for item in history] == ["rejected", "missed"]
    assert history[1]["winningAgentId"] == first["agentId"]
    assert history[1]["winningClaimId"] == won["claimId"]
    own = workspace.admin.get(f"/agents/{first['agentId']}/claim-history").json["items"]
    assert [(item["status"], item["claimId"]) for item in own] == [("claimed", won["claimId"])]
    page = workspace.admin.get(f"/agents/{second['agentId']}/claim-history?limit=1").json
    assert [item["status"] for item in page["items"]] == ["rejected"]
    rest = workspace.admin.get(f"/agents/{second['agentId']}/claim-history?after={page['next']}").json
    assert [item["status"] for item in rest["items"]] == ["missed"]
    polled = workspace.admin.get(f"/agents/{second['agentId']}/events?type=task.claim_missed").json["items"]
    assert [event["eventId"] for event in polled] == [missed["eventId"]]


class _Site(BaseHTTPRequestHandler):
    """A web server with a card, which configuration may allow."""

    def do_GET(self) -> None:
        if self.path == "/.well-known/agent.json":
            data = json.dumps({**CARD, "name": "Fetched Agent"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        else:
            self.send_error(404)

    def log_message(self, *_: Any) -> None:
        """Suppress the request log."""


def test_a_card_is_fetched_from_allowed_hosts_and_the_answer_repeats_after_it_is_gone(tmp_path: Path) -> None:
    site = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = Thread(target=site.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{site.server_address[1]}"
    try:
        with serving(tmp_path, config="[cards]\nallow_private = true\n") as server, server.client() as client:
            body = {"agentCardUrl": url}
            reply = client.post("/agents/register-card", body, key="fetch-1")
            assert reply.status == 201
            assert (reply.json["slug"], reply.json["cardUrl"]) == ("fetched-agent", f"{url}/.well-known/agent.json")
            missing = client.post("/agents/register-card", {"agentCardUrl": f"{url}/nothing.json"})
            assert (missing.status, missing.json["code"]) == (422, "fetch_failed")
            site.shutdown()
            site.server_close()
            assert client.post("/agents/register-card", body, key="fetch-1").content == reply.content
            closed = client.post("/agents/register-card", {"agentCardUrl": f"{url}/nothing.json"})
            assert closed.content == missing.content
    finally:
        site.shutdown()
        site.server_close()
        thread.join()
