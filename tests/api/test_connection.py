"""HTTP/1.1 connections: pipelined requests, chunked bodies, 100 Continue, closed connections."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.harness.server import Server


class Caller:
    """A connection that sends bytes and reads complete answers."""

    def __init__(self, server: Server) -> None:
        address = urlsplit(server.url)
        self.sock = socket.create_connection((address.hostname or "", address.port or 0), timeout=30)
        self._read = self.sock.makefile("rb")
        self.key = f"authorization: Bearer {server.key}\r\n".encode()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._read.close()
        self.sock.close()

    def send(self, *lines: bytes, body: bytes = b"") -> None:
        self.sock.sendall(b"\r\n".join(lines) + b"\r\nhost: x\r\n" + self.key + b"\r\n" + body)

    def answer(self, *, bodiless: bool = False) -> tuple[int, dict[str, str], bytes]:
        """Return the status, headers and body of the next answer."""
        status = int(self._read.readline().split()[1])
        headers: dict[str, str] = {}
        while (line := self._read.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name] = value
        return status, headers, b"" if bodiless else self._read.read(int(headers.get("content-length", "0")))

    def ended(self) -> bool:
        return self._read.read(1) == b""


@pytest.fixture
def caller(server: Server) -> Caller:
    return Caller(server)


def test_requests_sent_together_are_answered_in_their_order(caller: Caller) -> None:
    with caller:
        paths = [b"/healthz", b"/nothing", b"/queues", b"/healthz"] * 5
        lines = [b"GET " + path + b" HTTP/1.1\r\nhost: x\r\n" + caller.key + b"\r\n" for path in paths]
        caller.sock.sendall(b"".join(lines))
        assert [caller.answer()[0] for _ in paths] == [200, 404, 200, 200] * 5


def test_a_body_in_pieces_is_read_like_one_that_is_whole(caller: Caller) -> None:
    body = json.dumps({"name": "pieces", "id": "queue_in_pieces"}).encode()
    pieces = b"".join(b"%x\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body))) + b"0\r\n\r\n"
    with caller:
        asked = (b"POST /queues HTTP/1.1", b"content-type: application/json", b"transfer-encoding: chunked")
        caller.send(*asked, body=pieces)
        assert caller.answer()[0] == 201
        caller.send(b"GET /queues/queue_in_pieces HTTP/1.1")
        assert caller.answer()[0] == 200


def test_a_caller_that_expects_100_continue_gets_it(caller: Caller) -> None:
    body = json.dumps({"name": "asked", "id": "queue_asked"}).encode()
    asked = (b"POST /queues HTTP/1.1", b"content-type: application/json", b"expect: 100-continue")
    with caller:
        caller.send(*asked, b"content-length: %d" % len(body))
        assert caller.answer(bodiless=True)[0] == 100
        caller.sock.sendall(body)
        assert caller.answer()[0] == 201


def test_who_may_not_send_is_refused_before_it_does(caller: Caller) -> None:
    caller.key = b""
    with caller:
        caller.send(b"POST /queues HTTP/1.1", b"expect: 100-continue", b"content-length: 100000")
        assert caller.answer()[0] == 401


def test_a_body_larger_than_the_buffer_is_received(caller: Caller) -> None:
    body = json.dumps({"title": "Large", "input": "x" * 200_000}).encode()
    with caller:
        asked = (b"POST /queues", b"content-type: application/json")
        queue = json.dumps({"name": "large", "id": "queue_large"}).encode()
        caller.send(asked[0] + b" HTTP/1.1", asked[1], b"content-length: %d" % len(queue), body=queue)
        assert caller.answer()[0] in (201, 409)
        for _ in range(2):
            first = b"POST /queues/queue_large/tasks HTTP/1.1"
            caller.send(first, asked[1], b"content-length: %d" % len(body), body=body)
            assert caller.answer()[0] == 201


@pytest.mark.parametrize("lines", [(b"GET /healthz HTTP/1.0",), (b"GET /healthz HTTP/1.1", b"connection: close")])
def test_a_connection_ends_when_its_caller_wants_no_more(caller: Caller, lines: tuple[bytes, ...]) -> None:
    with caller:
        caller.send(*lines)
        status, headers, _ = caller.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert caller.ended()


def test_an_offer_to_upgrade_is_ignored_and_the_body_is_read(caller: Caller) -> None:
    """Java's HTTP client offers h2c with its first request, of any kind."""
    body = json.dumps({"name": "upgraded", "id": "queue_upgraded"}).encode()
    upgrade = (b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABk")
    with caller:
        length = b"content-length: %d" % len(body)
        caller.send(b"POST /queues HTTP/1.1", b"content-type: application/json", length, *upgrade, body=body)
        assert caller.answer()[0] == 201
        caller.send(b"GET /healthz HTTP/1.1", *upgrade)
        assert caller.answer()[0] == 200


def test_the_whole_target_may_be_given(caller: Caller) -> None:
    with caller:
        caller.send(b"GET http://x/healthz?a=b HTTP/1.1")
        status, headers, _ = caller.answer()
        assert status in (200, 422)
        assert "date" in headers


def test_the_answer_to_head_has_the_content_length_of_get(caller: Caller) -> None:
    with caller:
        caller.send(b"HEAD /queues HTTP/1.1")
        _, headers, _ = caller.answer(bodiless=True)
        caller.send(b"GET /queues HTTP/1.1")
        assert caller.answer()[1]["content-length"] == headers["content-length"]
