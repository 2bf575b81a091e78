"""Bad requests: refused with a problem that says what is wrong and what to do, in bounded time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import head
from tests.harness.client import Client
from tests.harness.server import Server

JSON = {"content-type": "application/json"}
SECURITY = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def send(client: Client, body: bytes, headers: dict[str, str] | None = None, path: str = "/queues") -> Any:
    return client.request("POST", path, content=body, headers={**JSON, **(headers or {})})


def raw(server: Server, data: bytes) -> bytes:
    """Return everything that the server answers to bytes on a new connection."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as sock:
        sock.sendall(data)
        received = b""
        while chunk := sock.recv(65536):
            received += chunk
        return received


def test_a_problem_names_its_code_and_what_to_do(workspace: Workspace) -> None:
    reply = workspace.admin.get("/tasks/task_00000000000000000000000000")
    assert reply.media == "application/problem+json"
    assert reply.json == {
        "type": "/docs#404",
        "title": "Not Found",
        "status": 404,
        "code": "task_not_found",
        "detail": "There is no such task in this workspace.",
        "advice": "Check the id; it must be one of this workspace.",
        "errors": [],
    }


def test_every_answer_carries_the_security_headers(workspace: Workspace) -> None:
    for reply in (workspace.admin.get("/queues"), workspace.admin.get("/tasks/x"), workspace.admin.get("/healthz")):
        assert {name: reply.headers[name] for name in SECURITY} == SECURITY
        assert "server" not in reply.headers
        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "invalid"),
        (b"{", 400, "json_syntax"),
        (b"nonsense", 400, "json_syntax"),
        (b"[]", 422, "invalid"),
        (b'"text"', 422, "invalid"),
        (b"null", 422, "invalid"),
        (b'{"name": "a", "name": "b"}', 400, "json_duplicate_key"),
        (b'{"name": NaN}', 400, "json_number"),
        (b'{"name": 1e999}', 400, "json_number"),
        (b'{"name": 123456789012345678901234567890}', 400, "json_number"),
        (b'\xef\xbb\xbf{"name": "a"}', 400, "json_bom"),
        (b'{"name": "a\x00"}', 400, "json_nul"),
        (b'{"name": "\\u0000"}', 400, "json_nul"),
        (b'{"name": "\\ud800"}', 400, "json_surrogate"),
        (b'{"name": "\xff"}', 400, "json_utf8"),
        (b'{"name": ' + b"[" * 100 + b"]" * 100 + b"}", 400, "json_too_deep"),
        (b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "json_too_deep"),
    ],
)
def test_what_is_not_one_json_value_is_refused(workspace: Workspace, body: bytes, status: int, code: str) -> None:
    before = head(workspace.admin)
    begun = time.monotonic()
    reply = send(workspace.admin, body)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert time.monotonic() - begun < 20
    assert head(workspace.admin) == before


def test_every_error_is_reported_at_once_with_its_place(workspace: Workspace) -> None:
    reply = workspace.admin.post(
        f"/workspaces/{workspace.workspace_id}/api-keys", {"scopes": ["read", "everything", 3], "nme": 1, "name": ""}
    )
    assert reply.status == 422
    assert [one["pointer"] for one in reply.json["errors"]] == ["/name", "/nme", "/scopes/1", "/scopes/2"]


def test_ten_thousand_unknown_fields_are_refused_with_a_short_answer(workspace: Workspace) -> None:
    reply = workspace.admin.post("/queues", {f"field{number}": 1 for number in range(10_000)})
    assert reply.status == 422
    assert len(reply.json["errors"]) <= 50
    assert len(reply.content) < 20_000


@pytest.mark.parametrize("query", ["nonsense=1", "limit=0", "limit=501", "limit=x", "after=%00", "limit=1&limit=2"])
def test_parameters_are_as_strict_as_bodies(workspace: Workspace, query: str) -> None:
    reply = workspace.admin.get(f"/ledger/query?{query}")
    assert reply.status == 422
    assert reply.json["errors"][0]["pointer"] == "/" + query.partition("=")[0]


@pytest.mark.parametrize("query", ["%ff=1", "a=%ff", "&".join(f"p{n}=1" for n in range(100))])
def test_a_query_that_cannot_be_read_is_refused(workspace: Workspace, query: str) -> None:
    assert workspace.admin.get(f"/ledger/query?{query}").status == 400


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_only_json_is_taken(workspace: Workspace, media: str) -> None:
    reply = send(workspace.admin, b'{"name": "q"}', {"content-type": media})
    assert (reply.status, reply.json["code"]) == (415, "media_type_unsupported")


def test_packed_bodies_are_refused(workspace: Workspace) -> None:
    reply = send(workspace.admin, b"\x1f\x8b\x08", {"content-encoding": "gzip"})
    assert (reply.status, reply.json["code"]) == (415, "content_encoding_unsupported")


def test_a_huge_body_is_refused_whether_it_says_so_or_not(workspace: Workspace) -> None:
    body = b'{"name": "' + b"x" * (1024 * 1024) + b'"}'
    assert send(workspace.admin, body).json["code"] == "body_too_large"

    def pieces() -> Any:
        for start in range(0, len(body), 4096):
            yield body[start : start + 4096]

    chunked = workspace.admin.request("POST", "/queues", content=pieces(), headers=JSON)
    assert (chunked.status, chunked.json["code"]) == (413, "body_too_large")


def test_a_slow_body_and_slow_headers_are_cut_off(start: Callable[..., Server]) -> None:
    # Three seconds for the head: on a busy machine a request that is sent in one piece needs some time too.
    server = start(config="[limits]\nbody_seconds = 0.3\nheader_seconds = 3\n")
    head_lines = b"POST /queues HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    authorization = f"authorization: Bearer {server.key}\r\n".encode()
    slow = raw(server, head_lines + authorization + b"content-length: 50\r\n\r\n" + b'{"na')
    assert b"HTTP/1.1 408" in slow
    assert b"body_too_slow" in slow
    slow_heads = (b"", b"GET /queues HT", b"GET /queues HTTP/1.1\r\nhost: x\r\n")
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(raw, repeat(server), slow_heads))
    assert [b"headers_too_slow" in answer for answer in answers] == [True] * 3
    with server.client() as client:
        assert client.get("/queues").status == 200


def test_what_is_not_http_gets_a_problem_too(server: Server) -> None:
    for data in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"):
        answer = raw(server, data)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"http_malformed" in answer


def test_headers_without_end_are_refused(server: Server) -> None:
    begun = b"POST /queues HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n"
    large = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(50))
    many = b"".join(b"x-%d: y\r\n" % number for number in range(100))
    for headers in (large, many + b"\r\nabcde"):
        answer = raw(server, begun + headers)
        assert answer.startswith(b"HTTP/1.1 431")
        assert b"headers_too_large" in answer


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "BREW"])
def test_methods_that_a_path_has_not_are_refused_with_those_that_it_has(server: Server, method: str) -> None:
    with Client(server.url, server.key, checked=False) as client:
        reply = client.request(method, "/queues")
    assert reply.status in (400, 405)
    if reply.status == 405:
        assert reply.headers["allow"] == "GET, POST"
        assert reply.json["code"] == "method_not_allowed"


def test_head_is_get_without_its_body(workspace: Workspace) -> None:
    whole, bare = workspace.admin.get("/queues"), workspace.admin.request("HEAD", "/queues")
    assert (bare.status, bare.content) == (200, b"")
    assert bare.headers["content-length"] == str(len(whole.content))


def test_cross_origin_requests_are_not_invited(server: Server) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    with Client(server.url, checked=False) as client:
        reply = client.request("OPTIONS", "/queues", headers=headers)
    assert reply.status == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/nothing", "/queues/", "/queues//tasks", "/tasks/%2e%2e/queues"])
def test_paths_that_are_not_there_are_not_there(server: Server, path: str) -> None:
    with Client(server.url, server.key, checked=False) as client:
        reply = client.get(path)
    assert reply.status == 404


@pytest.mark.parametrize("name", ["%00", "%ff", "a" * 2000, "%F0%9F%94%91", "'; DROP TABLE record; --", "{}"])
def test_strange_ids_are_missing_ids(workspace: Workspace, name: str) -> None:
    reply = workspace.admin.get(f"/tasks/{name}")
    assert (reply.status, reply.json["code"]) == (404, "task_not_found")


def test_an_upgrade_to_websockets_is_declined(server: Server) -> None:
    lines = b"GET /stream HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n"
    answer = raw(server, lines + b"sec-websocket-version: 13\r\nsec-websocket-key: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 401")


def test_an_internal_error_reveals_no_details(workspace: Workspace) -> None:
    """No reply in this module contains a traceback, and no problem contains words of one."""
    reply = workspace.admin.get("/tasks/x")
    assert "Traceback" not in json.dumps(reply.json)
