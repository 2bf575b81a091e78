"""What is wrong with a request is answered as the protocol says, on every transport, and nothing is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import httpx2
import pytest
from a2a.types import CancelTaskRequest, GetTaskRequest, Part, SubscribeToTaskRequest, a2a_pb2_grpc

from tests.a2a.talk import asked
from tests.harness import acts
from tests.harness.client import Client
from tests.harness.server import Server

MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
SEND = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": MESSAGE}}


@pytest.fixture
def recorded(owner: Client) -> Iterator[None]:
    """Nothing is recorded by the test."""
    before = acts.head(owner)
    yield
    assert acts.head(owner) == before


def sending(**part: str) -> dict[str, Any]:
    """The body of a message with one part."""
    return {"message": {**MESSAGE, "parts": [part]}}


def post(server: Server, path: str, body: Any, **headers: str) -> httpx2.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"authorization": f"Bearer {server.key}", "content-type": "application/json", "a2a-version": "1.0"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(server.url + path, content=data, headers={k: v for k, v in sent.items() if v}, timeout=60)


RPC: list[tuple[str, Any, dict[str, str], int]] = [
    ("not JSON", b"{", {}, -32700),
    ("a key twice", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}', {}, -32700),
    ("a batch", [SEND], {}, -32600),
    ("another JSON-RPC", {**SEND, "jsonrpc": "1.0"}, {}, -32600),
    ("an id that is an object", {**SEND, "id": {}}, {}, -32600),
    ("no method", {"jsonrpc": "2.0", "id": 1}, {}, -32600),
    ("an unknown method", {**SEND, "method": "Fly"}, {}, -32601),
    ("params that are a list", {**SEND, "params": []}, {}, -32602),
    ("no message", {**SEND, "params": {}}, {}, -32602),
    ("a role that is none", {**SEND, "params": {"message": {**MESSAGE, "role": "ROLE_KING"}}}, {}, -32602),
    ("a message of the agent", {**SEND, "params": {"message": {**MESSAGE, "role": "ROLE_AGENT"}}}, {}, -32602),
    ("two contents", {**SEND, "params": {"message": {**MESSAGE, "parts": [{"text": "x", "url": "y"}]}}}, {}, -32602),
    ("no content", {**SEND, "params": {"message": {**MESSAGE, "parts": [{"video": "x"}]}}}, {}, -32005),
    ("no base64", {**SEND, "params": {"message": {**MESSAGE, "parts": [{"raw": "%"}]}}}, {}, -32602),
    ("a content type", SEND, {"content_type": "text/plain"}, -32005),
    ("no content type", SEND, {"content_type": ""}, -32005),
    ("another version", SEND, {"a2a_version": "2.0"}, -32009),
    ("another minor version", SEND, {"a2a_version": "1.1"}, -32009),
    ("half a version", SEND, {"a2a_version": "1"}, -32009),
    ("no version at all", SEND, {"a2a_version": "1.0x"}, -32009),
    ("an unknown state", {**SEND, "method": "ListTasks", "params": {"status": "ASLEEP"}}, {}, -32602),
    ("an older state", {**SEND, "method": "ListTasks", "params": {"status": "working"}}, {}, -32602),
    (
        "a time that is not in UTC",
        {**SEND, "method": "ListTasks", "params": {"statusTimestampAfter": "2026-01-31T12:00:00+02:00"}},
        {},
        -32602,
    ),
    ("no version", SEND, {"a2a_version": ""}, -32009),
    ("too large", {**SEND, "params": {"message": {**MESSAGE, "parts": [{"text": "x" * 2_000_000}]}}}, {}, -32600),
    ("a context that is none", {**SEND, "params": {"message": {**MESSAGE, "contextId": "a b"}}}, {}, -32602),
    ("a workflow that is none", {**SEND, "params": {"message": {**MESSAGE, "contextId": "workflow:wf_1"}}}, {}, -32602),
    ("an idempotency key", SEND, {"idempotency_key": "x" * 300}, -32602),
]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("body", "headers", "code"), [row[1:] for row in RPC], ids=[row[0] for row in RPC])
def test_json_rpc_answers_with_its_code(server: Server, body: Any, headers: dict[str, str], code: int) -> None:
    reply = post(server, "/a2a", body, **headers)
    found = reply.json()
    assert (reply.status_code, found["jsonrpc"], found["error"]["code"]) == (200, "2.0", code), reply.text
    assert found["error"]["data"][0]["domain"] == "a2a-protocol.org"
    assert "result" not in found


def test_the_token_of_a_last_page_is_there_and_artifacts_are_not(server: Server) -> None:
    headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0"}
    rest = httpx2.get(f"{server.url}/a2a/tasks?contextId=nothing-here", headers=headers, timeout=60).json()
    rpc = post(server, "/a2a", {**SEND, "method": "ListTasks", "params": {"contextId": "nothing-here"}}).json()
    assert rest == rpc["result"] == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def test_a_patch_number_of_a_version_does_not_matter(server: Server) -> None:
    body = {**SEND, "method": "ListTasks", "params": {}}
    assert "result" in post(server, "/a2a", body, a2a_version="1.0.1").json()
    headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0.1"}
    assert "tasks" in httpx2.get(f"{server.url}/a2a/tasks", headers=headers, timeout=60).json()


def test_a_version_may_stand_in_the_query(server: Server) -> None:
    body = {**SEND, "params": {"message": MESSAGE, "configuration": {"returnImmediately": True}}}
    assert "task" in post(server, "/a2a?A2A-Version=1.0", body, a2a_version="").json()["result"]
    rest = post(server, "/a2a/message:send?A2A-Version=1.0", body["params"], a2a_version="")
    assert "task" in rest.json()


REST: list[tuple[str, str, str, Any, dict[str, str], int, str]] = [
    ("not JSON", "POST", "/message:send", b"{", {}, 400, "INVALID_ARGUMENT"),
    ("not an object", "POST", "/message:send", [], {}, 400, "INVALID_ARGUMENT"),
    ("no message", "POST", "/message:send", {}, {}, 400, "INVALID_ARGUMENT"),
    ("a content type", "POST", "/message:send", {}, {"content_type": "text/xml"}, 400, "INVALID_ARGUMENT"),
    ("another version", "POST", "/message:send", {}, {"a2a_version": "0.1"}, 400, "FAILED_PRECONDITION"),
    ("another minor version", "POST", "/message:send", {}, {"a2a_version": "1.7"}, 400, "FAILED_PRECONDITION"),
    ("no version", "GET", "/tasks", None, {"a2a_version": ""}, 400, "FAILED_PRECONDITION"),
    ("an unknown task", "GET", "/tasks/task_x", None, {}, 404, "NOT_FOUND"),
    ("an unknown place", "GET", "/a/b/c", None, {}, 404, "NOT_FOUND"),
    ("another method", "DELETE", "/tasks", None, {}, 405, "UNKNOWN"),
    ("a page that is none", "GET", "/tasks?pageSize=many", None, {}, 400, "INVALID_ARGUMENT"),
    ("a state that is none", "GET", "/tasks?status=ASLEEP", None, {}, 400, "INVALID_ARGUMENT"),
    ("a time that is none", "GET", "/tasks?statusTimestampAfter=now", None, {}, 400, "INVALID_ARGUMENT"),
    ("too large", "POST", "/message:send", sending(text="x" * 2_000_000), {}, 400, "INVALID_ARGUMENT"),
    ("a large stream", "POST", "/message:stream", sending(text="x" * 2_000_000), {}, 400, "INVALID_ARGUMENT"),
    ("no content", "POST", "/message:send", sending(video="x"), {}, 400, "INVALID_ARGUMENT"),
    ("no base64", "POST", "/message:send", sending(raw="%"), {}, 400, "INVALID_ARGUMENT"),
    ("a file of this machine", "POST", "/message:stream", sending(url="file:///x"), {}, 400, "INVALID_ARGUMENT"),
    ("no content type", "POST", "/message:send", sending(text="x"), {"content_type": ""}, 400, "INVALID_ARGUMENT"),
    ("a coding", "POST", "/message:send", sending(text="x"), {"content_encoding": "gzip"}, 400, "INVALID_ARGUMENT"),
    ("an unknown method", "POST", "/message:fly", sending(text="x"), {}, 404, "NOT_FOUND"),
    ("a task to cancel", "POST", "/tasks/task_x:cancel", {}, {}, 404, "NOT_FOUND"),
    ("an event id", "POST", "/message:stream", sending(text="x"), {"last_event_id": "x"}, 400, "INVALID_ARGUMENT"),
]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "name"), [row[1:] for row in REST], ids=[row[0] for row in REST]
)
def test_http_json_answers_with_its_status(
    server: Server, method: str, path: str, body: Any, headers: dict[str, str], status: int, name: str
) -> None:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    sent = {"authorization": f"Bearer {server.key}", "content-type": "application/a2a+json", "a2a-version": "1.0"}
    sent |= {key.replace("_", "-"): value for key, value in headers.items()}
    sent = {name: value for name, value in sent.items() if value}
    reply = httpx2.request(method, f"{server.url}/a2a{path}", content=data, headers=sent, timeout=60)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["status"]) == (status, status, name), reply.text
    assert reply.headers["content-type"] == "application/a2a+json"
    assert all(one["@type"] for one in error["details"])


@pytest.mark.parametrize("path", ["/a2a", "/a2a/message:send", "/a2a/tasks/x:cancel"])
def test_without_a_key_nothing_is_answered(server: Server, path: str) -> None:
    for header in ("", "Bearer rk_nobody_0", "Basic x"):
        reply = post(server, path, SEND, authorization=header)
        assert (reply.status_code, "www-authenticate" in reply.headers) == (401, True)


@pytest.fixture
def reader(server: Server, owner: Client) -> str:
    """A key that may read and nothing else."""
    made = owner.post(f"/workspaces/{server.workspace_id}/api-keys", {"scopes": ["read"]})
    return str(made.json["apiKey"])


def test_a_key_that_may_only_read_does_not_send(server: Server, reader: str, recorded: None) -> None:
    headers = {"authorization": f"Bearer {reader}", "a2a-version": "1.0"}
    assert post(server, "/a2a", SEND, authorization=headers["authorization"]).status_code == 403
    rest = post(server, "/a2a/message:send", {"message": MESSAGE}, authorization=headers["authorization"])
    assert (rest.status_code, rest.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert httpx2.get(f"{server.url}/a2a/tasks", headers=headers, timeout=60).status_code == 200


def test_grpc_has_a_status_for_each(server: Server, reader: str, recorded: None) -> None:
    address = json.loads(next(server.data.parent.glob("*.ready")).read_text())["grpc"]
    service = "/lf.a2a.v1.A2AService/"

    async def status(
        key: str = server.key, version: str = "1.0", call: str = "GetTask", request: Any = None, **more: str
    ) -> str:
        """The status of a call; of one in raw bytes if the request has them."""
        metadata = [("authorization", f"Bearer {key}"), ("a2a-version", version)]
        metadata += [(name.replace("_", "-"), value) for name, value in more.items()]
        async with grpc.aio.insecure_channel(address) as channel:
            stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)
            work: Any = channel.unary_unary(service + call) if isinstance(request, bytes) else getattr(stub, call)
            called = work(request if request is not None else GetTaskRequest(id="x"), metadata=metadata, timeout=60)
            try:
                if call in ("SendStreamingMessage", "SubscribeToTask"):
                    await anext(aiter(called))
                else:
                    await called
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)
            return "OK"

    async def run() -> None:
        assert await status("rk_nobody_0") == "UNAUTHENTICATED"
        assert await status() == "NOT_FOUND"
        for version in ("2.0", "1.1", "1", "", "0.3"):
            assert await status(version=version) == "FAILED_PRECONDITION", version
        assert await status(version="1.0.1") == "NOT_FOUND"
        # The name of a call and its bytes.
        assert await status(call="Fly", request=b"") == "UNIMPLEMENTED"
        assert await status(call="SendMessage", request=b"\xff\xff\xff") != "OK"
        for call in ("SendMessage", "SendStreamingMessage"):
            assert await status(reader, call=call, request=asked()) == "PERMISSION_DENIED", call
            empty = asked()
            del empty.message.parts[:]
            for wrong in (empty, asked(parts=[Part(media_type="text/plain")]), asked(parts=[Part(url="file:///x")])):
                assert await status(call=call, request=wrong) == "INVALID_ARGUMENT", wrong
            assert await status(call=call, request=asked("x" * 2_000_000)) == "RESOURCE_EXHAUSTED", call
        assert await status(call="SendMessage", request=asked(), idempotency_key="x" * 300) == "INVALID_ARGUMENT"
        assert await status(call="CancelTask", request=CancelTaskRequest(id="x")) == "NOT_FOUND"
        assert await status(call="SubscribeToTask", request=SubscribeToTaskRequest(id="x")) == "NOT_FOUND"

    asyncio.run(run())
