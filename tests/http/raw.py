"""A client that sends raw bytes and reads complete answers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.harness.server import Server


class Answer(NamedTuple):
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def connect(server: Server, seconds: float = 30) -> socket.socket:
    """Open a connection without Nagle's algorithm, so that small segments are sent at once."""
    address = urlsplit(server.url)
    sock = socket.create_connection((address.hostname or "", address.port or 0), timeout=seconds)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def exchange(server: Server, segments: Sequence[bytes]) -> list[Answer]:
    """Send segments, close the sending side, and return every answer until the server closes."""
    with connect(server) as sock:
        try:
            for segment in segments:
                sock.sendall(segment)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            # It closed before everything was sent; what it said counts.
            pass
        received = b""
        try:
            while chunk := sock.recv(65536):
                received += chunk
        except ConnectionResetError:
            pass
    return parse(received)


def parse(data: bytes) -> list[Answer]:
    """Return the answers in a byte stream, without interim ones."""
    answers = []
    while data:
        head, found, data = data.partition(b"\r\n\r\n")
        assert found, f"an answer without an end: {head[:200]!r}"
        first, *lines = head.decode().split("\r\n")
        status = int(first.split(" ")[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if status == 100:
            continue
        length = int(headers.get("content-length", "0"))
        assert len(data) >= length, "an answer that is shorter than it says"
        answers.append(Answer(status, headers, data[:length]))
        data = data[length:]
    return answers
