"""Clients of A2A 0.3: the official client in its older mode, and errors for what that version does not have."""

from __future__ import annotations

import asyncio
import json
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
from tests.a2a.talk import Worker, asked, state, talking
from tests.harness.server import Server

OLDER = ("JSONRPC", "GRPC")


@pytest.mark.parametrize("transport", OLDER)
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


@pytest.mark.parametrize("transport", OLDER)
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


def test_an_older_client_gets_the_errors_of_its_version(server: Server) -> None:
    async def run() -> None:
        async with talking(server, "JSONRPC", version="0.3") as talk:
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


def test_http_json_has_no_older_version(server: Server) -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]}
    for path in ("/a2a/v1/message:send", "/a2a/message:send"):
        reply = _post(server, path, {"message": message})
        error = reply.json()["error"]
        assert (reply.status_code, error["status"]) == (400, "FAILED_PRECONDITION"), reply.text
        assert error["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


def test_grpc_has_a_status_for_an_older_client_too(server: Server) -> None:
    address = json.loads(next(server.data.parent.glob("*.ready")).read_text())["grpc"]

    async def status(key: str, name: str) -> str:
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = a2a_v0_3_pb2_grpc.A2AServiceStub(channel)
            try:
                metadata = (("authorization", f"Bearer {key}"),)
                await stub.GetTask(a2a_v0_3_pb2.GetTaskRequest(name=name), metadata=metadata)
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            return "OK"

    assert asyncio.run(status("rk_none_0", f"tasks/{NOWHERE}")) == "UNAUTHENTICATED"
    assert asyncio.run(status(server.key, f"tasks/{NOWHERE}")) == "NOT_FOUND"
