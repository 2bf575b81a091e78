"""The bus inside `redkey serve`: API keys, sessions of workspaces, and the bridge to the ledger in both directions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redkey.api.openapi import response_of
from tests.bus.test_backlog import read_little
from tests.harness.acts import begin_queue, claim, create_task, register, until
from tests.harness.client import Client
from tests.harness.secret_samples import with_checksum
from tests.harness.server import Server, serving
from tests.harness.weave import Link, join


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, serving(Path(folder)) as found:
        yield found


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[Client]:
    with server.client() as found:
        yield found


def bus(server: Server, key: str | None = None) -> Client:
    """A caller of the bus: its replies are not the API's."""
    return Client(server.url, key or server.key, checked=False)


@pytest.fixture
def admin(server: Server) -> Iterator[Client]:
    with bus(server) as found:
        yield found


@pytest.fixture
def session(admin: Client) -> str:
    return str(admin.post("/api/sessions", {"name": "talk"}).json["id"])


def key_of(api: Client, server: Server, *scopes: str, agent_id: str | None = None) -> str:
    body: dict[str, Any] = {"scopes": list(scopes), **({"agentId": agent_id} if agent_id else {})}
    reply = api.post(f"/workspaces/{server.workspace_id}/api-keys", body)
    assert reply.status == 201, reply.text
    return str(reply.json["apiKey"])


def test_requests_without_a_key_are_refused(server: Server, session: str) -> None:
    with Client(server.url, checked=False) as nobody, bus(server, "rk_nobody00_" + "x" * 40) as wrong:
        for caller in (nobody, wrong):
            for path in ("/api/sessions", f"/api/sessions/{session}"):
                assert (caller.get(path).status, caller.get(path).json["code"]) == (401, "unauthenticated")
            # That it answers is no secret.
            assert (caller.get("/api/health").status, caller.get("/api/health").json) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "evil.example"}, 403, "host_refused"),
        ({"origin": "http://evil.example"}, 403, "origin_refused"),
        ({"origin": "null"}, 403, "origin_refused"),
        ({"host": "localhost:1", "origin": "http://127.0.0.1:3000"}, 200, ""),
        ({"host": "192.0.2.7"}, 200, ""),
    ],
)
def test_only_hosts_of_this_server_are_accepted(admin: Client, headers: dict[str, str], status: int, code: str) -> None:
    reply = admin.get("/api/sessions", headers=headers)
    assert (reply.status, reply.json["code"] if code else "") == (status, code)
    assert admin.get("/api/health", headers=headers).status == status


def test_sessions_belong_to_a_workspace(server: Server, admin: Client, session: str) -> None:
    created = admin.post("/workspaces", {"name": "Other"}).json
    with bus(server, created["apiKey"]) as other:
        assert other.get("/api/sessions").json == []
        for path in ("", "/agents", "/events", "/events/stream"):
            assert other.get(f"/api/sessions/{session}{path}").status == 404
        assert other.post(f"/api/sessions/{session}/agents", {"id": "spy"}).status == 404
        # Ids belong to workspaces: another one may use the same, and gets a room of its own.
        assert other.post("/api/sessions", {"id": session}).status == 201
        mine = other.post("/api/sessions", {}).json["id"]
    assert mine not in [one["id"] for one in admin.get("/api/sessions").json]


def test_keys_do_what_their_scopes_allow(server: Server, api: Client, admin: Client, session: str) -> None:
    agent = register(api, "Bus Agent")["agentId"]
    with bus(server, key_of(api, server, "read")) as reader:
        assert reader.get(f"/api/sessions/{session}").status == 200
        assert reader.post(f"/api/sessions/{session}/agents", {"id": "x"}).json["code"] == "insufficient_scope"
    with bus(server, key_of(api, server, "agent", agent_id=agent)) as own:
        assert own.post(f"/api/sessions/{session}/agents", {}).json["id"] == agent
        assert own.post(f"/api/sessions/{session}/agents", {"id": "another"}).json["code"] == "agent_forbidden"
        admin.post(f"/api/sessions/{session}/agents", {"id": "bob"})
        body = {"text": "hi", "agent_ids": ["bob"]}
        assert own.post(f"/api/sessions/{session}/messages", {**body, "src": "bob"}).status == 403
        assert own.post(f"/api/sessions/{session}/messages", body).status == 202
        assert own.get(f"/api/sessions/{session}/agents/bob/messages").status == 403
    waiting = admin.get(f"/api/sessions/{session}/agents/bob/messages").json
    assert [one["src"] for one in waiting] == [agent]


def test_an_agents_key_neither_closes_a_session_nor_reads_messages_of_others(
    server: Server, api: Client, admin: Client, session: str
) -> None:
    base, agent = f"/api/sessions/{session}", register(api, "Curious")["agentId"]
    for key in ("ann", "bob", agent):
        admin.post(f"{base}/agents", {"id": key})
    headers = {"prefer": "return=representation"}

    def send(src: str, dst: str, text: str) -> str:
        body = {"text": text, "agent_ids": [dst], "src": src}
        return str(admin.post(f"{base}/messages", body, headers=headers).json[0]["id"])

    secret, mine = send("ann", "bob", "between us"), send("ann", agent, "for you")
    admin.post(f"{base}/messages", {"text": "for all", "to": "agents", "src": "ann"})

    def texts(caller: Client) -> list[str]:
        events = caller.get(f"{base}/events").json
        messages = [one["payload"]["envelope"]["payload"] for one in events if one["type"] == "message.send"]
        followed = caller.get(f"{base}/events/stream?follow=false").text
        assert [text for text in ("between us", "for you", "for all") if text in followed] == [
            one["text"] for one in messages
        ]
        return [one["text"] for one in messages]

    with bus(server, key_of(api, server, "agent", agent_id=agent)) as own:
        assert texts(own) == ["for you", "for all"]
        assert own.get(f"{base}/messages/{mine}").status == 200
        assert own.get(f"{base}/messages/{secret}").json["code"] == "message_not_found"
        assert own.post(f"{base}/messages/{secret}/record", {}).json["code"] == "message_not_found"
        for refused in (
            own.post(f"{base}/close", {}),
            own.post(f"{base}/agents/order", {"agent_ids": [agent, "bob", "ann"]}),
            own.put(f"{base}/ledger", b""),
            own.delete(f"{base}/ledger"),
        ):
            assert (refused.status, refused.json["code"]) == (403, "insufficient_scope")
        # It cannot grant itself what an admin grants by making it a lead.
        assert own.patch(f"{base}/agents/{agent}", {"lead": True}).status == 403
        admin.patch(f"{base}/agents/{agent}", {"lead": True})
        assert texts(own) == ["between us", "for you", "for all"]
        assert own.post(f"{base}/close", {}).json["status"] == "closed"


def test_an_agents_key_does_not_read_the_actions_of_others(
    server: Server, api: Client, admin: Client, session: str
) -> None:
    base, agent = f"/api/sessions/{session}", register(api, "Curious")["agentId"]
    admin.post(f"{base}/agents", {"id": agent})
    path = server.data / "bus" / "coord.sock"
    with join(path, session, "ann") as ann, join(path, session, "bob"):
        for dst in ("bob", agent):
            action = {"type": "message", "dst": dst, "text": f"words for {dst}"}
            ann.ask("action.submit", "ann", v=1, session=session, payload={"group_id": dst, "actions": [action]})
        for dst in ("bob", agent):
            result = {"group_id": "g", "action_id": "a", "status": "completed", "detail": f"detail for {dst}"}
            ann.ask("action.result", "ann", v=1, session=session, dst=dst, payload=result)
        ann.ask("task.updated", "ann", v=1, session=session, payload={"task_id": "t", "status": "running"})
    with bus(server, key_of(api, server, "agent", agent_id=agent)) as own:
        for text in (own.get(f"{base}/events").text, own.get(f"{base}/events/stream?follow=false").text):
            assert (f"words for {agent}" in text, f"detail for {agent}" in text, "task.updated" in text) == (True,) * 3
            assert "for bob" not in text
    assert "words for bob" in admin.get(f"{base}/events").text


def test_the_bus_is_in_the_openapi_document(server: Server, api: Client) -> None:
    found = api.get("/openapi.json").json
    paths = {path: sorted(methods) for path, methods in found["paths"].items() if path.startswith("/api/")}
    assert paths["/api/sessions"] == ["get", "post"]
    assert paths["/api/sessions/{sessionId}/ledger"] == ["delete", "get", "put"]
    assert sum(len(methods) for methods in paths.values()) == 21
    refused = response_of(found, found["paths"]["/api/sessions"]["post"]["responses"]["422"])["content"]
    assert refused == {"application/json": {"schema": {"$ref": "#/components/schemas/BusError"}}}


def test_the_socket_of_the_data_directory_serves_the_first_workspace(server: Server, admin: Client) -> None:
    with Link(server.data / "bus" / "coord.sock") as link:
        made = link.ask("session.create", "codex-cli", payload={"name": "local"})["session"]
    assert made in [one["id"] for one in admin.get("/api/sessions").json]


def test_the_command_finds_the_bus_of_the_server_in_its_directory(
    server: Server, admin: Client, tmp_path: Path
) -> None:
    (tmp_path / ".redkey").symlink_to(server.data)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("REDKEY_", "WEAVE_"))}
    command = [sys.executable, "-m", "redkey", "bus", "sessions", "--create", "found", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] in [one["id"] for one in admin.get("/api/sessions").json]


def test_an_agent_that_was_away_gets_the_messages_of_the_bridge_in_small_pages(
    server: Server, api: Client, admin: Client, session: str
) -> None:
    path, queue = server.data / "bus" / "coord.sock", begin_queue(api, "queue_away")
    join(path, session, "slow").close()
    admin.put(f"/api/sessions/{session}/ledger", b"")
    for start in range(0, 400, 100):
        tasks = [{"title": f"{number:03} ".ljust(500, "x")} for number in range(start, start + 100)]
        assert api.post(f"/queues/{queue}/tasks/batch", {"tasks": tasks}).status == 200
    records: list[dict[str, Any]] = []

    def all_told() -> bool:
        after = records[-1]["payload"]["seq"] if records else 0
        records.extend(admin.get(f"/api/sessions/{session}/events?after={after}&limit=500").json)
        return any("399 x" in one["payload"]["envelope"]["payload"].get("text", "") for one in records[-3:])

    until(all_told)
    count = sum(one["type"] == "message.send" for one in records)
    texts = read_little(path, session, "slow", count, 60)
    created = [int(text.split('"')[1][:3]) for text in texts if text.startswith("task.created")]
    assert created == list(range(400))


def told(link: Link, agent: str, kind: str) -> dict[str, Any]:
    """The next message about an event of a type."""
    while True:
        payload = link.receive(agent)["payload"]
        if payload["redkey"]["event"]["type"] == kind:
            found: dict[str, Any] = payload
            return found


def test_a_bound_session_gets_task_events_missed_claims_and_mail(
    server: Server, api: Client, admin: Client, session: str
) -> None:
    path = server.data / "bus" / "coord.sock"
    queue = begin_queue(api, "queue_bridge")
    winner, loser = (register(api, name)["agentId"] for name in ("Winner", "Loser"))
    with join(path, session, winner) as first, join(path, session, loser) as second:
        assert admin.put(f"/api/sessions/{session}/ledger", b"").json["bound"] is True
        task = create_task(api, queue)
        created = told(first, winner, "task.created")
        assert created["redkey"]["event"]["data"]["taskId"] == task
        title = api.get(f"/tasks/{task}").json["title"]
        assert created["redkey"]["task"] == {"id": task, "title": title}
        assert f'"{title}"' in created["text"]
        claim(api, task, winner)
        assert claim(api, task, loser)["status"] == "missed"
        missed = told(second, loser, "task.claim_missed")
        assert missed["codex"] == {"sender_name": "RedKey", "kind": "system"}
        assert missed["redkey"]["event"]["data"]["taskId"] == task
        api.post("/inbox", {"to": loser, "subject": "Come back", "body": "There is more."})
        mail = told(second, loser, "inbox.sent")
        assert mail["redkey"]["message"] == {"subject": "Come back", "body": "There is more."}
        assert mail["text"].endswith("Come back")
        first.ask("agent.list", winner, session=session)
        events = [one["payload"]["redkey"]["event"]["type"] for one in first.heard if one["type"] == "message.send"]
        assert "task.claim_missed" not in events
        assert "inbox.sent" not in events
        assert admin.delete(f"/api/sessions/{session}/ledger").json["bound"] is False


def test_a_message_is_recorded_with_its_text_in_content(
    server: Server, api: Client, admin: Client, session: str
) -> None:
    agent = register(api, "Recorder")["agentId"]
    base = f"/api/sessions/{session}"
    admin.post(f"{base}/agents", {"id": agent})
    words = "Ship it on Friday.\nThe customer agreed by phone."
    sent = admin.post(
        f"{base}/messages", {"text": words, "agent_ids": [agent]}, headers={"prefer": "return=representation"}
    ).json[0]
    before = api.get("/ledger/query?order=desc&limit=1").json["items"][0]["sequence"]
    first = admin.post(f"{base}/messages/{sent['id']}/record", {"priority": 2, "extensions": {"redkey.test": [1]}})
    assert first.status == 201
    again = admin.post(f"{base}/messages/{sent['id']}/record", {"priority": 2})
    assert (again.status, again.json["message_id"]) == (200, first.json["message_id"])
    events = api.get(f"/ledger/query?after={before}").json["items"]
    assert [one["type"] for one in events] == ["inbox.sent"]
    assert "Friday" not in str(events)
    assert events[0]["extensions"]["redkey.test"] == [1]
    box = api.get(f"/agents/{agent}/inbox").json["items"]
    assert (box[0]["subject"], box[0]["body"], box[0]["priority"]) == ("Ship it on Friday.", words, 2)
    human = admin.post(f"{base}/messages/{sent['id']}/record", {"to": "human"})
    assert human.json["to"] == "human"


def test_unrecorded_messages_never_reach_the_ledger(api: Client, admin: Client, session: str) -> None:
    before = api.get("/ledger/query?order=desc&limit=1").json["items"][0]["sequence"]
    base = f"/api/sessions/{session}"
    for key in ("ann", "bob"):
        admin.post(f"{base}/agents", {"id": key})
    for number in range(10):
        admin.post(f"{base}/messages", {"text": f"chatter {number}", "agent_ids": ["bob"], "src": "ann"})
    assert api.get("/ledger/query?order=desc&limit=1").json["items"][0]["sequence"] == before


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"to": "nobody"}, "recipient_unknown"),
        ({"priority": 9}, "body_invalid"),
        ({"extensions": {"redkey.test": "x" * 2000}}, "wire_too_large"),
        ({"extensions": {"nobodys": 1}}, "schema_propertyNames"),
    ],
)
def test_an_invalid_recording_is_refused(admin: Client, session: str, body: dict[str, Any], code: str) -> None:
    base = f"/api/sessions/{session}"
    admin.post(f"{base}/agents", {"id": "bob"})
    headers = {"prefer": "return=representation"}
    sent = admin.post(f"{base}/messages", {"text": "x", "agent_ids": ["bob"]}, headers=headers).json[0]
    assert admin.post(f"{base}/messages/{sent['id']}/record", body).json["code"] == code
    assert admin.post(f"{base}/messages/none/record", {}).json["code"] == "message_not_found"


def say(admin: Client, session: str, dst: str, text: str) -> str:
    """Send a message to an agent, and return the path that records it."""
    base, headers = f"/api/sessions/{session}", {"prefer": "return=representation"}
    admin.post(f"{base}/agents", {"id": dst})
    sent = admin.post(f"{base}/messages", {"text": text, "agent_ids": [dst]}, headers=headers).json[0]
    return f"{base}/messages/{sent['id']}/record"


def test_a_recording_is_refused_by_the_rules_of_the_inbox(
    server: Server, api: Client, admin: Client, session: str
) -> None:
    """The same rules for recipients, secrets and scopes apply to both ways."""
    secret = f"the key is {with_checksum('ghp_')}"
    plain, secretly = (say(admin, session, "bob", text) for text in ("hello", secret))
    operator = key_of(api, server, "operator")
    with bus(server, operator) as bus_operator, Client(server.url, operator) as api_operator:
        for recorded, sent in (
            (admin.post(plain, {"to": "nobody"}), api.post("/inbox", {"to": "nobody", "subject": "hello"})),
            (admin.post(secretly, {}), api.post("/inbox", {"to": "human", "subject": secret, "body": secret})),
            (bus_operator.post(plain, {}), api_operator.post("/inbox", {"to": "human", "subject": "hello"})),
        ):
            problem = sent.json
            assert recorded.status == sent.status == problem["status"]
            assert recorded.json == {"error": problem["detail"], "code": problem["code"]}


def test_a_recording_without_a_recipient_goes_to_the_receiver_on_the_bus(
    api: Client, admin: Client, session: str
) -> None:
    """By the rule of the inbox: an agent, else a role, else the human inbox."""
    agent = register(api, "Told by Slug")
    api.post("/roles", {"name": "Told by Role"})
    for name, to in (
        (agent["slug"], f"agent:{agent['agentId']}"),
        ("told_by_role", "role:role_told_by_role"),
        ("stranger", "human"),
    ):
        reply = admin.post(say(admin, session, name, f"to {name}"), {})
        assert (reply.status, reply.json["to"]) == (201, to)


def test_events_recorded_before_a_crash_are_sent_once_after_it() -> None:
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder:
        with serving(Path(folder)) as server, server.client() as api, bus(server) as admin:
            session = admin.post("/api/sessions", {}).json["id"]
            admin.post(f"/api/sessions/{session}/agents", {"id": "ann"})
            admin.put(f"/api/sessions/{session}/ledger", b"")
            queue = begin_queue(api)
            tasks = [create_task(api, queue) for _ in range(20)]
            server.process.kill()
            server.process.wait()
        with serving(Path(folder), name="again") as server, bus(server) as admin:
            seen: list[str] = []

            def all_told() -> bool:
                waiting = admin.get(f"/api/sessions/{session}/events?limit=1000").json
                messages = [one["payload"]["envelope"] for one in waiting if one["type"] == "message.send"]
                events = [one["payload"]["redkey"]["event"] for one in messages]
                seen[:] = [one["data"]["taskId"] for one in events if one["type"] == "task.created"]
                return len(seen) >= len(tasks)

            until(all_told)
            assert seen == tasks


def test_a_second_server_on_the_same_data_does_not_run_the_bus(server: Server) -> None:
    with serving(server.data.parent, name="second") as second, bus(second) as caller:
        reply = caller.get("/api/sessions")
        assert (reply.status, reply.json["code"]) == (503, "bus_elsewhere")
        assert caller.get("/workspaces").status == 200
