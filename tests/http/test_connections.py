"""Unusual connections: half-closed, pipelined without pause, with announced bodies that are never sent."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, create_task, gauge, register, until
from tests.harness.client import Client
from tests.harness.server import Server
from tests.http.raw import connect, parse

STALL_SECONDS = 0.4
ROUNDS = 5


def received(sock: socket.socket) -> bytes:
    """Return all bytes until the server closes."""
    data = b""
    while chunk := sock.recv(65536):
        data += chunk
    return data


def request(workspace: Workspace, line: bytes, body: bytes = b"", *more: bytes) -> bytes:
    return keyed(workspace.admin.key or "", line, body, *more)


def keyed(key: str, line: bytes, body: bytes = b"", *more: bytes) -> bytes:
    head = line + b" HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + key.encode() + b"\r\n"
    lines = (b"content-type: application/json", b"content-length: %d" % len(body), *more)
    return head + b"".join(one + b"\r\n" for one in lines) + b"\r\n" + body


def test_a_request_after_a_waiting_one_is_answered_after_a_half_close(workspace: Workspace) -> None:
    """The waiting request counts as disconnected; the request after it is answered, and the connection ends."""
    queue = begin_queue(workspace.admin)
    agent = register(workspace.admin)["agentId"]
    wait = b'{"agentId":"%b","wait":50}' % agent.encode()
    asked = request(workspace, f"POST /queues/{queue}/claim-next".encode(), wait) + request(workspace, b"GET /queues")
    url = workspace.server.url
    with connect(workspace.server, seconds=20) as sock:
        sock.sendall(asked)
        until(lambda: gauge(url, "redkey_waiting") >= 1)
        sock.shutdown(socket.SHUT_WR)
        assert [answer.status for answer in parse(received(sock))] == [200]
    until(lambda: gauge(url, "redkey_waiting") == 0)


def test_a_request_that_begins_during_a_long_poll_is_refused_after_the_answer_before_it(
    start: Callable[..., Server],
) -> None:
    """The first byte of the next request does not become the answer to the request that waits."""
    server = start(config="[limits]\nheader_seconds = 1\n")
    with server.client() as admin, connect(server, seconds=60) as sock:
        sock.sendall(waiting_claim(admin, register(admin)["agentId"], begin_queue(admin), seconds=2) + b"G")
        waited, refused = parse(received(sock))
        assert (waited.status, json.loads(waited.body)["status"], refused.status) == (200, "no_tasks", 408)
        assert admin.get("/ledger/query?type=task.claimed").json["items"] == []


def test_the_time_of_a_request_begins_after_the_answer_before_it(start: Callable[..., Server]) -> None:
    server = start(config="[limits]\nheader_seconds = 2\n")
    with server.client() as admin, connect(server, seconds=60) as sock:
        queue = begin_queue(admin)
        sock.sendall(waiting_claim(admin, register(admin)["agentId"], queue, seconds=50) + b"G")
        until(lambda: gauge(server.url, "redkey_waiting") >= 1)
        # Longer than the limit.
        assert not select.select([sock], [], [], 2.5)[0]
        made = create_task(admin, queue)
        sock.sendall(b"ET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        waited, healthy = parse(received(sock))
        claimed = json.loads(waited.body)
        assert (waited.status, claimed["status"], healthy.status) == (200, "claimed", 200)
        assert admin.get(f"/tasks/{made}").json["claim"]["claimId"] == claimed["claimId"]


def waiting_claim(admin: Client, agent: str, queue: str, *, seconds: int) -> bytes:
    body = json.dumps({"agentId": agent, "wait": seconds}).encode()
    return keyed(admin.key or "", f"POST /queues/{queue}/claim-next".encode(), body)


def test_a_refused_body_that_was_never_sent_is_not_read_from_the_next_request(server: Server) -> None:
    """A client that expects 100 Continue may omit the body after a refusal."""
    asked = b"POST /queues HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 60\r\n\r\n"
    with connect(server, seconds=20) as sock:
        sock.sendall(asked)
        (answer,) = parse(received(sock))
    assert (answer.status, answer.headers["connection"]) == (401, "close")


def test_a_caller_that_pipelines_without_pause_is_not_too_slow(start: Callable[..., Server]) -> None:
    server = start(config="[limits]\nheader_seconds = 3\n")
    health = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    with connect(server) as sock:
        # Every segment ends inside the next head.
        sock.sendall(health[:10])
        deadline = time.monotonic() + 7
        while time.monotonic() < deadline:
            sock.sendall(health[10:] + health[:10])
            assert sock.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_body_in_chunks_of_one_byte_does_not_delay_other_callers(workspace: Workspace) -> None:
    """Other processes delay an answer now and then; a delay by the server appears in every round."""
    told: list[float] = []
    while not told or told[-1] >= STALL_SECONDS:
        assert len(told) < ROUNDS, f"/healthz took {told} s"
        told.append(slowest_health_beside_small_chunks(workspace))
    print(f"slowest /healthz beside chunks of one byte: {told} s")


def slowest_health_beside_small_chunks(workspace: Workspace) -> float:
    size = 200_000
    body = b"1\r\nx\r\n" * size + b"0\r\n\r\n"
    head = request(workspace, b"PUT /content").replace(b"content-length: 0", b"transfer-encoding: chunked")
    with connect(workspace.server) as sock, connect(workspace.server) as other:
        sock.sendall(head)
        slowest, place = 0.0, 0
        while place < len(body):
            sock.sendall(body[place : place + 65536])
            place += 65536
            asked = time.monotonic()
            other.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert other.recv(4096).startswith(b"HTTP/1.1 200")
            slowest = max(slowest, time.monotonic() - asked)
        sock.shutdown(socket.SHUT_WR)
        (answer,) = parse(received(sock))
        # The same bytes once more are there already.
        assert answer.status in (200, 201)
        assert b'"bytes":%d' % size in answer.body
    return slowest
