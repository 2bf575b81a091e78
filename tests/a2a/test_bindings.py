"""What a binding puts on the wire: the same task and the same errors on each, in the forms that the protocol names."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import grpc.aio
import httpx2
import pytest
from a2a.types import CancelTaskRequest, GetTaskRequest, SendMessageRequest, a2a_pb2_grpc
from a2a.utils import errors
from google.protobuf.json_format import ParseDict
from google.rpc import error_details_pb2, status_pb2

from redkey.a2a import errors as a2a_errors
from tests.a2a.requirements import NOWHERE
from tests.a2a.talk import TRANSPORTS, Worker, as_json, talking
from tests.harness.server import Server

SECONDS = 60.0
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z")
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
NOW = {"returnImmediately": True}


class Raw:
    """Calls without a client library, as the bindings describe them; each answer is (status, JSON)."""

    def __init__(self, server: Server) -> None:
        self._url = f"{server.url}/a2a"
        self.grpc = json.loads(next(server.data.parent.glob("*.ready")).read_text())["grpc"]
        self._headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0"}

    def rpc(self, method: str, params: dict[str, Any], request_id: str | int = 1, **more: str) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return httpx2.post(self._url, json=body, headers=self._with(more), timeout=SECONDS)

    def rest(self, method: str, path: str, body: Any = None, **more: str) -> httpx2.Response:
        return httpx2.request(method, self._url + path, json=body, headers=self._with(more), timeout=SECONDS)

    def begin(self) -> str:
        """A new task."""
        return str(self.rest("POST", "/message:send", _send()).json()["task"]["id"])

    def cancel(self, task_id: str) -> None:
        assert self.rest("POST", f"/tasks/{task_id}:cancel").status_code == 200

    def follow(self, task_id: str, binding: str, **more: str) -> Any:
        """The stream of a task."""
        headers = self._with(more)
        if binding == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": "s", "method": "SubscribeToTask", "params": {"id": task_id}}
            return httpx2.stream("POST", self._url, json=body, headers=headers, timeout=SECONDS)
        place = f"{self._url}/tasks/{task_id}:subscribe"
        return httpx2.stream("POST", place, headers=headers, timeout=SECONDS)

    def _with(self, more: dict[str, str]) -> dict[str, str]:
        return self._headers | {name.replace("_", "-"): value for name, value in more.items()}


@pytest.fixture
def raw(server: Server) -> Raw:
    return Raw(server)


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field of a JSON value, at any depth; what people wrote is below `data` and `metadata`."""
    if isinstance(value, list):
        for item in value:
            yield from fields(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name, item
            if name not in ("data", "metadata"):
                yield from fields(item)


@pytest.mark.parametrize("request_id", [7, 0, "seven"])
def test_json_rpc_answers_with_the_id_it_got(raw: Raw, request_id: str | int) -> None:
    for method, outcome in (("ListTasks", "result"), ("Fly", "error")):
        reply = raw.rpc(method, {"pageSize": 1}, request_id)
        found = reply.json()
        assert reply.headers["content-type"] == "application/json"
        assert (found["jsonrpc"], found["id"], sorted(found)) == ("2.0", request_id, sorted(["jsonrpc", "id", outcome]))


def test_every_binding_shows_the_same_task(server: Server, raw: Raw, worker: Worker) -> None:
    async def run() -> list[dict[str, Any]]:
        shown = []
        async with talking(server, "GRPC") as talk:
            task = await talk.send("Compare it")
            await asyncio.to_thread(worker.take, task.id)
            await asyncio.to_thread(worker.artifact, name="report", content="x")
            await asyncio.to_thread(worker.complete, output={"all": 1}, summary="Done.")
        for transport in TRANSPORTS:
            async with talking(server, transport) as talk:
                shown.append(as_json(await talk.get(task.id)))
        return shown

    first, *others = asyncio.run(run())
    assert others == [first, first]
    found = raw.rest("GET", f"/tasks/{first['id']}").json()
    assert raw.rpc("GetTask", {"id": first["id"]}).json()["result"] == found
    named = list(fields(found))
    assert all(re.fullmatch(r"[a-z][A-Za-z0-9]*", name) for name, _ in named), named
    times = [value for name, value in named if name == "timestamp"]
    assert times
    assert all(_TIME.fullmatch(time) for time in times), times
    assert found["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_streams_are_server_sent_events(raw: Raw, binding: str) -> None:
    task_id = raw.begin()
    with raw.follow(task_id, binding) as reply:
        assert (reply.status_code, reply.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        found: list[dict[str, Any]] = []
        ids: list[str] = []
        for line in reply.iter_lines():
            if line.startswith("id: "):
                ids.append(line[4:])
            elif line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if len(found) == 1:
                    raw.cancel(task_id)
    # A client that has the first event gets the same again.
    with raw.follow(task_id, binding, last_event_id=ids[0]) as reply:
        lines = list(reply.iter_lines())
    assert [line[4:] for line in lines if line.startswith("id: ")] == ids
    assert [json.loads(line[6:]) for line in lines if line.startswith("data: ")] == found
    assert len(set(ids)) == 2
    if binding == "JSONRPC":
        assert [(one.pop("jsonrpc"), one.pop("id")) for one in found] == [("2.0", "s")] * 2
        found = [one["result"] for one in found]
    assert [list(one) for one in found] == [["task"], ["statusUpdate"]]
    assert found[1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"


def _send(task_id: str = "", **part: str) -> dict[str, Any]:
    message = {**MESSAGE, "parts": [part or {"text": "x"}], **({"taskId": task_id} if task_id else {})}
    return {"message": message, "configuration": NOW}


# The error, and the call that is answered with it: operation, parameters for a task that was cancelled, version.
ERRORS: list[tuple[type[errors.A2AError], str, Callable[[str], dict[str, Any]], str]] = [
    (errors.TaskNotFoundError, "GetTask", lambda ended: {"id": NOWHERE}, "1.0"),
    (errors.TaskNotCancelableError, "CancelTask", lambda ended: {"id": ended}, "1.0"),
    (errors.UnsupportedOperationError, "SendMessage", _send, "1.0"),
    (errors.ContentTypeNotSupportedError, "SendMessage", lambda ended: _send(url="file:///etc/passwd"), "1.0"),
    (errors.VersionNotSupportedError, "GetTask", lambda ended: {"id": ended}, "2.0"),
    (errors.InvalidParamsError, "SendMessage", lambda ended: {"message": {**MESSAGE, "parts": []}}, "1.0"),
]
CALLS: dict[str, tuple[str, str, type[Any]]] = {
    "GetTask": ("GET", "/tasks/{id}", GetTaskRequest),
    "CancelTask": ("POST", "/tasks/{id}:cancel", CancelTaskRequest),
    "SendMessage": ("POST", "/message:send", SendMessageRequest),
}


@pytest.mark.parametrize(("kind", "operation", "given", "version"), ERRORS, ids=[row[0].__name__ for row in ERRORS])
def test_an_error_has_its_code_on_every_binding(
    server: Server,
    raw: Raw,
    kind: type[errors.A2AError],
    operation: str,
    given: Callable[[str], dict[str, Any]],
    version: str,
) -> None:
    ended = raw.begin()
    raw.cancel(ended)
    params, named = given(ended), errors.A2A_ERROR_MAPPING[kind]
    method, path, request = CALLS[operation]
    rpc = raw.rpc(operation, params, a2a_version=version).json()["error"]
    assert (rpc["code"], bool(rpc["message"])) == (errors.JSON_RPC_ERROR_CODE_MAP[kind], True)
    body = params if operation == "SendMessage" else None
    reply = raw.rest(method, path.format_map(params), body, a2a_version=version)
    rest = reply.json()["error"]
    assert (reply.status_code, rest["code"], rest["status"]) == (named.http_code, named.http_code, named.grpc_status)
    for told in (rpc["data"][0], rest["details"][0]):
        assert (told["reason"], told["domain"]) == (named.reason, "a2a-protocol.org")

    async def call() -> tuple[str, list[error_details_pb2.ErrorInfo]]:
        metadata = (("authorization", f"Bearer {server.key}"), ("a2a-version", version))
        async with grpc.aio.insecure_channel(raw.grpc) as channel:
            stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await getattr(stub, operation)(ParseDict(params, request()), metadata=metadata, timeout=SECONDS)
        trailing = dict(failed.value.trailing_metadata() or ())
        status = status_pb2.Status.FromString(trailing["grpc-status-details-bin"])
        found = []
        for detail in status.details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info):
                found.append(info)
        return str(failed.value.code().name), found

    code, (info,) = asyncio.run(call())
    assert (code, info.reason, info.domain) == (named.grpc_status, named.reason, "a2a-protocol.org")


def test_every_error_of_the_protocol_has_its_codes() -> None:
    known = {kind for kind in errors.A2A_ERROR_MAPPING if kind in errors.JSON_RPC_ERROR_CODE_MAP}
    assert len(known) >= 13
    for kind in known:
        named, own = errors.A2A_ERROR_MAPPING[kind], a2a_errors.refused(kind.__name__, "x").kind
        assert (own.rpc, own.http, own.grpc) == (
            errors.JSON_RPC_ERROR_CODE_MAP[kind],
            named.http_code,
            named.grpc_status,
        ), kind
        if kind in errors.A2A_ERROR_REASONS and own.rpc > -32100:
            assert own.reason == errors.A2A_ERROR_REASONS[kind]


def test_credentials_are_not_in_the_log(server: Server, raw: Raw) -> None:
    """Neither a key nor what a push notification config names is logged, however a request fails (13.4)."""
    task_id = raw.begin()
    config = {"url": "https://hooks.example.com/x", "token": "tok-secret-1"}
    config["authentication"] = {"scheme": "Bearer", "credentials": "cred-secret-1"}  # type: ignore[assignment]
    assert raw.rest("POST", f"/tasks/{task_id}/pushNotificationConfigs", config).status_code == 200
    wrong = {**config, "url": "https://localhost/x"}
    assert raw.rest("POST", f"/tasks/{task_id}/pushNotificationConfigs", wrong).status_code == 400
    assert raw.rest("GET", "/tasks", authorization=f"Bearer {server.key}x").status_code == 401
    assert not [secret for secret in (server.key, "tok-secret-1", "cred-secret-1") if secret in server.logs()]
