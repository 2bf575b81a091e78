"""`/mcp` of a server: streamable HTTP without sessions, with the key or token of each request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from redkey.client import RedKey
from tests.harness.server import Server
from tests.mcp.conftest import Agent, run

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def agent_key(rk: RedKey, name: str = "ada") -> str:
    card = {"name": name, "description": "Works by HTTP.", "version": "1"}
    agent = rk.agents.register(card=card)
    workspace = next(iter(rk.workspaces.list())).workspace_id
    return rk.keys.create(workspace, scopes=["agent", "produce"], agent_id=agent.agent_id).api_key


@asynccontextmanager
async def client(server: Server, key: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as connected,
    ):
        yield connected


def test_an_agent_works_a_task_over_http_with_its_key_or_a_token(server: Server, rk: RedKey) -> None:
    key = agent_key(rk)
    public_id, _, secret = key.rpartition("_")
    form = {"grant_type": "client_credentials", "client_id": public_id, "client_secret": secret}
    token = httpx2.post(f"{server.url}/oauth/token", data=form).json()["access_token"]

    async def test() -> None:
        for credential in (key, token):
            async with client(server, credential) as connected:
                one = Agent(connected)
                tools = {tool.name for tool in (await connected.list_tools()).tools}
                assert "wait_for_task" in tools
                assert "bus_send" not in tools, "the bus of a machine is for its own agents"
                made = (await one("create_task", title="T", outputs=["note"]))["task"]
                claim = (await one("wait_for_task"))["claim"]
                assert claim["task"]["task_id"] == made["task_id"]
                assert "cannot read your files" in await one.refusal("add_artifact", name="note", path="/etc/hostname")
                assert "cannot read your files" in await one.refusal("start_plan", path="/etc/hostname")
                await one("add_artifact", name="note", content="Done.")
                held = await one("list_tasks", held_by_me=True)
                assert [task["task_id"] for task in held["tasks"]] == [made["task_id"]]
                await one("complete_task", summary="Done.")
                assert "You hold no task" in await one.refusal("complete_task")

    run(test)


def test_every_call_renews_what_the_agent_holds(server: Server, rk: RedKey) -> None:
    rk.queues.create("default", lease_seconds=5)
    made = rk.tasks.create("default", title="T").task_id
    key = agent_key(rk)

    async def test() -> None:
        async with client(server, key) as connected:
            one = Agent(connected)
            assert (await one("wait_for_task"))["claim"]["outcome"] == "claimed"
            types: list[str] = []
            # Less than half of the lease must be left until a call extends it.
            while "task.lease_extended" not in types:
                await one("list_tasks")
                types = [event.type for event in rk.tasks.events(made)]
            await one("complete_task")

    run(test)


def test_a_key_of_no_agent_reads_and_produces_and_does_not_claim(server: Server, rk: RedKey) -> None:
    async def test() -> None:
        async with client(server, server.key) as connected:
            one = Agent(connected)
            await one("create_task", title="T")
            assert len((await one("list_tasks"))["tasks"]) == 1
            assert "belongs to no agent" in await one.refusal("wait_for_task")

    run(test)


def post(server: Server, **headers: str) -> httpx2.Response:
    return httpx2.post(f"{server.url}/mcp", json=INITIALIZE, headers={**ACCEPT, **headers}, timeout=60)


def test_who_calls_and_from_where_is_checked(server: Server) -> None:
    known = {"authorization": f"Bearer {server.key}"}
    answered = post(server, **known)
    assert answered.status_code == 200
    assert "redkey" in answered.text
    missing = post(server)
    assert (missing.status_code, missing.json()["code"]) == (401, "unauthenticated")
    assert "Bearer" in missing.headers["www-authenticate"]
    assert post(server, authorization="Bearer rk_wrong_key").status_code == 401
    rebound = post(server, **known, host="evil.example")
    assert (rebound.status_code, rebound.json()["code"]) == (403, "host_refused")
    page = post(server, **known, origin="https://evil.example")
    assert (page.status_code, page.json()["code"]) == (403, "origin_refused")
    assert post(server, **known, origin=server.url).status_code == 200
    # Nobody can say which agent they are.
    forged = post(server, **known, **{"x-redkey-agent": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"})
    assert forged.status_code == 200


def test_what_is_no_message_is_refused(server: Server) -> None:
    headers: dict[str, Any] = {**ACCEPT, "authorization": f"Bearer {server.key}"}
    for body in (b"", b"{", b"[]", b'{"jsonrpc":"2.0"}', json.dumps({"id": 1}).encode()):
        answered = httpx2.post(f"{server.url}/mcp", content=body, headers=headers, timeout=60)
        assert answered.status_code in (400, 202), body
