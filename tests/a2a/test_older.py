"""Clients of A2A 0.3: the official client in its older mode, and errors for what that version does not have."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx2
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2, a2a_v0_3_pb2_grpc
from a2a.types import CancelTaskRequest, GetTaskRequest
from a2a.utils import errors

from tests.a2a.requirements import NOWHERE
from tests.a2a.scene import refused
from tests.a2a.talk import TRANSPORTS, Worker, asked, state, talking
from tests.harness.server import Server, serving


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_older_client_creates_gets_and_cancels_a_task(server: Server, worker: Worker, transport: str) -> None:
    async def run() -> None:
        async with talking(server, transport, version="0.3") as talk:
            task = await talk.send("From an older client")
            assert state(task) == "SUBMITTED"
            assert task.history[0].parts[0].text == "From an older client"
            await asyncio.to_thread(worker.take, task.id)
            assert state(await talk.get(task.id)) == "WORKING"
            cancelled = await talk.client.cancel_task(CancelTaskRequest(id=task.id), context=talk.context())
            assert state(cancelled) == "CANCELED"
            assert state(await talk.get(task.id)) == "CANCELED"

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_older_client_streams(server: Server, worker: Worker, transport: str) -> None:
    async def run() -> None:
        async with talking(server, transport, version="0.3", streaming=True) as talk:
            stream = aiter(talk.client.send_message(asked("Stream it"), context=talk.context()))
            first = await anext(stream)
            await asyncio.to_thread(worker.take, first.task.id)
            await asyncio.to_thread(worker.artifact, name="report", content="x")
            await asyncio.to_thread(worker.complete, summary="Done.")
            rest = [one async for one in stream]
        kinds = [one.WhichOneof("payload") for one in rest]
        assert kinds == ["status_update", "artifact_update", "status_update"]
        assert state(rest[-1].status_update) == "COMPLETED"

    asyncio.run(run())


@pytest.mark.parametrize("transport", ["JSONRPC", "HTTP+JSON"])
def test_an_older_client_gets_the_errors_of_its_version(server: Server, transport: str) -> None:
    async def run() -> None:
        async with talking(server, transport, version="0.3") as talk:
            call = talk.client.get_task(GetTaskRequest(id=NOWHERE), context=talk.context())
            await refused(errors.TaskNotFoundError, call)
            task = await talk.send()
            wanted = CancelTaskRequest(id=task.id)
            await talk.client.cancel_task(wanted, context=talk.context())
            await refused(errors.TaskNotCancelableError, talk.client.cancel_task(wanted, context=talk.context()))

    asyncio.run(run())


def _post(server: Server, path: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
    sent = {"authorization": f"Bearer {server.key}", "content-type": "application/json", **headers}
    return httpx2.post(server.url + path, content=json.dumps(body), headers=sent, timeout=60)


@pytest.mark.parametrize(
    ("method", "version", "code"),
    [
        ("tasks/list", "0.3", -32601),
        ("message/fly", "", -32601),
        # The official translation names parameters that are missing so.
        ("tasks/get", "0.3", -32600),
        ("tasks/get", "0.3.0", -32600),
        ("message/send", "0.2", -32009),
        ("SendMessage", "0.3", -32009),
        ("message/send", "1.0", -32601),
    ],
)
def test_what_an_older_version_does_not_have_is_refused(server: Server, method: str, version: str, code: int) -> None:
    body = {"jsonrpc": "2.0", "id": 4, "method": method, "params": {}}
    reply = _post(server, "/a2a", body, **({"a2a-version": version} if version else {})).json()
    assert (reply["id"], reply["error"]["code"]) == (4, code), reply


NAMED = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]}}
SEND = "/a2a/v1/message:send"


@pytest.mark.parametrize(
    ("method", "path", "body", "version", "status", "reason"),
    [
        ("POST", "/a2a/message:send", NAMED, "", 400, "VERSION_NOT_SUPPORTED"),
        ("POST", "/a2a/message:send", NAMED, "0.3", 400, "VERSION_NOT_SUPPORTED"),
        ("POST", SEND, NAMED, "0.2", 400, "VERSION_NOT_SUPPORTED"),
        # A path of 1.0 begins with the tenant.
        ("POST", SEND, {"message": {**NAMED["message"], "parts": [{"text": "x"}]}}, "1.0", 400, "INVALID_PARAMS"),
        ("POST", SEND, {"message": 3}, "", 400, "INVALID_PARAMS"),
        ("POST", SEND, {}, "0.3.0", 400, "INVALID_PARAMS"),
        ("POST", f"/a2a/v1/tasks/{NOWHERE}:cancel", {}, "", 404, "TASK_NOT_FOUND"),
        ("POST", f"/a2a/v1/tasks/{NOWHERE}:subscribe", {}, "", 404, "TASK_NOT_FOUND"),
        ("GET", f"/a2a/v1/tasks/{NOWHERE}", None, "0.3", 404, "TASK_NOT_FOUND"),
        ("GET", f"/a2a/v1/tasks/{NOWHERE}?historyLength=x", None, "0.3", 400, "INVALID_PARAMS"),
        ("GET", f"/a2a/v1/tasks/{NOWHERE}/pushNotificationConfigs", None, "0.3", 404, "TASK_NOT_FOUND"),
        ("GET", "/a2a/v1/tasks", None, "0.3", 404, "METHOD_NOT_FOUND"),
    ],
)
def test_older_http_json_has_its_paths_and_errors(
    server: Server, method: str, path: str, body: Any, version: str, status: int, reason: str
) -> None:
    headers = {"authorization": f"Bearer {server.key}", **({"a2a-version": version} if version else {})}
    reply = httpx2.request(method, server.url + path, json=body, headers=headers, timeout=60)
    error = reply.json()["error"]
    assert (reply.status_code, error["details"][0]["reason"]) == (status, reason), reply.text


def test_older_http_json_needs_a_key_and_shows_the_card(server: Server) -> None:
    for path in (SEND, "/a2a/v1/card"):
        method = "GET" if path.endswith("card") else "POST"
        reply = httpx2.request(method, server.url + path, json=NAMED if method == "POST" else None, timeout=60)
        assert (reply.status_code, "www-authenticate" in reply.headers) == (401, True)
    headers = {"authorization": f"Bearer {server.key}"}
    card = httpx2.get(f"{server.url}/a2a/v1/card", headers=headers, timeout=60).json()
    assert (card["name"], card["protocolVersion"][:3]) == ("RedKey", "0.3")


def test_without_the_extra_the_card_names_no_older_version(tmp_path: Path) -> None:
    hidden = "import sys\nfor name in ('a2a', 'starlette', 'sse_starlette'): sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    with serving(tmp_path, environment={"PYTHONPATH": str(tmp_path)}) as server:
        card = httpx2.get(f"{server.url}/.well-known/agent-card.json", timeout=60).json()
        assert {one["protocolVersion"] for one in card["supportedInterfaces"]} == {"1.0"}
        body = {"jsonrpc": "2.0", "id": 4, "method": "tasks/get", "params": {"id": NOWHERE}}
        assert _post(server, "/a2a", body).json()["error"]["code"] == -32009
        assert _post(server, SEND, NAMED).status_code == 400
        newer = {"jsonrpc": "2.0", "id": 4, "method": "ListTasks"}
        assert "result" in _post(server, "/a2a", newer, **{"a2a-version": "1.0"}).json()


def test_grpc_has_a_status_for_an_older_client_too(server: Server) -> None:
    address = json.loads(next(server.data.parent.glob("*.ready")).read_text())["grpc"]

    async def status(key: str, name: str, version: str = "") -> str:
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = a2a_v0_3_pb2_grpc.A2AServiceStub(channel)
            try:
                metadata = (("authorization", f"Bearer {key}"), ("a2a-version", version))
                await stub.GetTask(a2a_v0_3_pb2.GetTaskRequest(name=name), metadata=metadata)
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            return "OK"

    assert asyncio.run(status("rk_none_0", f"tasks/{NOWHERE}")) == "UNAUTHENTICATED"
    assert asyncio.run(status(server.key, f"tasks/{NOWHERE}")) == "NOT_FOUND"
    assert asyncio.run(status(server.key, f"tasks/{NOWHERE}", "0.3")) == "NOT_FOUND"
    # The service of 0.3 speaks no other version.
    assert asyncio.run(status(server.key, f"tasks/{NOWHERE}", "1.0")) == "FAILED_PRECONDITION"
