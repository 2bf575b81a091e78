"""Clients without a key: endless input or unread output takes limited memory and delays no other client."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

import pytest

from redkey.http.limits import Strangers
from tests.harness.server import Server, serving
from tests.http.raw import connect, exchange

CONNECTIONS = 16
# What each connection of a stranger sends at most.
SENT_BYTES = (64 if os.environ.get("REDKEY_TEST_LONG") else 4) * 1024 * 1024
GROWTH_BYTES = 40 * 1024 * 1024
BLOCK = 64 * 1024
STRANGERS = 64
# Other processes of the machine make an answer late now and then; what the server does late is late every time.
ROUNDS = 5
CONFIG = """
[limits]
stalled_seconds = 1
header_seconds = 3
body_seconds = 3
"""

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
POST = b"POST /queues HTTP/1.1\r\nhost: x\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
ENDLESS = {
    "a first line": (b"GET /", b"a" * BLOCK),
    "empty lines": (b"", b"\r\n" * (BLOCK // 2)),
    "a header": (POST + b"a: ", b"b" * BLOCK),
    "white space": (POST + b"a:", b" " * BLOCK),
    "headers": (POST, b"a: b\r\n" * (BLOCK // 6)),
    "chunks": (CHUNKED, b"1\r\nx\r\n" * (BLOCK // 6)),
    "a chunk extension": (CHUNKED + b"1;", b"a" * BLOCK),
    "a trailer": (CHUNKED + b"0\r\na: ", b"b" * BLOCK),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * (BLOCK // 6)),
    "a body": (POST + b"content-length: 1000000000\r\n\r\n", b"x" * BLOCK),
    "requests": (b"", b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 1000),
    "garbage": (b"", bytes(range(256)) * (BLOCK // 256)),
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("strangers"), config=CONFIG) as server:
        # So that what is made once is there before anything is measured.
        assert exchange(server, [b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"])[0].status == 200
        yield server


def memory(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def health_seconds(server: Server) -> float:
    begun = time.monotonic()
    assert exchange(server, [b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"])[0].status == 200
    return time.monotonic() - begun


def flood(server: Server, first: bytes, block: bytes, look: Callable[[], None]) -> None:
    """Send without reading on several connections, until all are closed or have sent their part."""
    pending: dict[socket.socket, Iterator[bytes]] = {}
    for _ in range(CONNECTIONS):
        sock = connect(server)
        sock.sendall(first)
        sock.setblocking(False)
        pending[sock] = repeat(block, SENT_BYTES // len(block))
    everybody = list(pending)
    try:
        deadline = time.monotonic() + 20
        while pending and time.monotonic() < deadline:
            for sock in select.select([], list(pending), [], 0.2)[1]:
                try:
                    piece = next(pending[sock], None)
                    if piece is None or sock.send(piece) == 0:
                        del pending[sock]
                except OSError:
                    # The server has closed it.
                    del pending[sock]
            look()
            if not select.select([], list(pending), [], 0)[1]:
                # Nobody takes anything any more: the server holds what it will hold.
                break
        look()
    finally:
        for sock in everybody:
            sock.close()


@pytest.mark.parametrize("part", ENDLESS)
def test_an_endless_part_of_a_request_costs_bounded_memory(target: Server, part: str) -> None:
    before, told = memory(target), []
    for _ in range(ROUNDS):
        quiet = max(health_seconds(target) for _ in range(20))
        most, slowest = 0, 0.0

        def look() -> None:
            nonlocal most, slowest
            most, slowest = max(most, memory(target)), max(slowest, health_seconds(target))

        flood(target, *ENDLESS[part], look)
        told.append(f"{(most - before) / 1e6:.1f} MB more, /healthz at most {slowest * 1e3:.0f} ms ({quiet * 1e3:.0f})")
        assert most - before < GROWTH_BYTES, told
        if slowest < max(0.5, 20 * quiet):
            break
    else:
        raise AssertionError(f"every round had a late answer: {told}")
    print(f"{part}:", *told, sep="\n")


def test_answers_that_are_not_read_are_dropped(target: Server) -> None:
    asked = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 200
    with connect(target, seconds=60) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(asked)
        # Readable means that answers wait; after the cut, the connection is at its end behind them.
        poll = select.poll()
        poll.register(sock, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
        assert poll.poll(60_000), "a caller that reads nothing keeps its connection"


def test_a_slow_reader_gets_its_whole_answer(target: Server) -> None:
    with connect(target) as sock:
        sock.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        received = b""
        while piece := sock.recv(2048):
            received += piece
    length = int(received.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    assert len(received.partition(b"\r\n\r\n")[2]) == length


def test_the_connections_of_an_address_are_limited_until_it_sends_a_valid_key(start: Callable[..., Server]) -> None:
    # A server of its own: it has no connections of other tests, and leaves those who say nothing in peace for long.
    target = start(config=f"[limits]\nheader_seconds = 60\nstrangers = {STRANGERS}\n")
    with ExitStack() as stack:
        known = [stack.enter_context(connect(target)) for _ in range(10)]
        for sock in known:
            sock.sendall(f"GET /queues HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {target.key}\r\n\r\n".encode())
            assert sock.recv(12) == b"HTTP/1.1 200"
        strangers = [stack.enter_context(connect(target)) for _ in range(STRANGERS + 8)]
        # Those beyond the bound are refused at once; the others are left in peace.
        assert all(b"too_many_connections" in sock.recv(4096) for sock in strangers[STRANGERS:])
        assert not select.select(strangers[:STRANGERS], [], [], 0)[0]
        # Connections with a key are not counted, and go on.
        assert exchange_on(known[0], target).startswith(b"HTTP/1.1 200")
    assert health_seconds(target) < 30


@pytest.mark.parametrize(
    "asked",
    [
        b"GET /api/sessions/stream HTTP/1.1\r\nhost: localhost\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n" % len(PING),
    ],
    ids=["bus", "mcp"],
)
def test_callers_of_the_bus_and_of_mcp_are_no_strangers(start: Callable[..., Server], asked: bytes) -> None:
    target = start(config="[limits]\nheader_seconds = 60\nstrangers = 2\n")
    body = PING if asked.startswith(b"POST") else b""
    key = f"authorization: Bearer {target.key}\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(4):
            sock = stack.enter_context(connect(target, seconds=60))
            sock.sendall(asked + key + body)
            assert sock.recv(12) == b"HTTP/1.1 200"
        health_seconds(target)


def test_an_ipv6_network_counts_as_one_stranger() -> None:
    strangers = Strangers()
    counts = [strangers.add(one) for one in ("2001:db8::1", "2001:db8::2", "2001:db8:0:0:f::", "2001:db8:0:1::1")]
    assert counts == [1, 2, 3, 1]
    assert [strangers.add(one) for one in ("192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "")] == [1, 1, 2, 1]
    strangers.remove("2001:db8::9")
    assert strangers.add("2001:db8::1") == 3


def exchange_on(sock: socket.socket, server: Server) -> bytes:
    """Return the answer on a connection that was used before."""
    while select.select([sock], [], [], 0)[0]:
        sock.recv(65536)
    sock.sendall(f"GET /queues HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\n\r\n".encode())
    return sock.recv(65536)
