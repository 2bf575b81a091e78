"""A tiny real server that answers as it was told: refusals, cut replies, silence. One script step for each request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Heard:
    """One request that came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """The server: where it is, and what it heard."""

    url: str
    heard: list[Heard] = field(default_factory=list)

    def header(self, name: str) -> list[str]:
        return [request.headers.get(name, "") for request in self.heard]


def answer(status: int, body: bytes = b"{}", **headers: str) -> bytes:
    """A whole reply."""
    named = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


def cut(reply: bytes) -> bytes:
    """A reply whose end never comes: more is promised than sent."""
    return reply[:-1]


def events(*blocks: str) -> bytes:
    """A stream that ends after these blocks."""
    return b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + "".join(blocks).encode()


def block(sequence: int) -> str:
    """One event as the server sends it."""
    event = (
        f'{{"eventId":"evt_{sequence}","type":"task.available","sequence":{sequence},"timestamp":"","data":{{}},'
        f'"actor":{{"type":"agent","id":"a"}},"subject":{{"type":"task","id":"task_{sequence}"}}}}'
    )
    return f"id: {sequence}\ndata: {event}\n\n"


SILENCE = b""
KEY = "rk_0000000000000000_secretsecretsecret"


@contextmanager
def scripted(*steps: bytes) -> Iterator[Scripted]:
    """Answer each request by the next step, on a connection of its own; `SILENCE` waits until the caller goes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Scripted(f"http://127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            for step in steps:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                # A caller that goes in the middle of something is no failure of the server's.
                with connection, suppress(ConnectionError):
                    server.heard.append(read_request(connection))
                    connection.sendall(step)
                    if step == SILENCE:
                        connection.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            # Wakes a thread that still waits for somebody.
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def read_request(connection: socket.socket) -> Heard:
    """The next request; ConnectionError when its caller goes before it has said everything."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
    while len(body) < int(headers.get("content-length", 0)):
        body += _more(connection)
    return Heard(line, headers, body)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the caller is gone")
    return data
