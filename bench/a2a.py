"""A2A: a durable SendMessage that returns immediately, beside `POST /queues/{id}/tasks` on the same server.

Both create one task per request. Slices alternate, so that a slow moment affects both; only the share matters.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

from bench import row
from bench.load import Lane, Work
from bench.served import Served, redkey
from bench.turns import Turns, alternate

CONNECTIONS = 16
ROUNDS = 2
QUEUE = "queue_a2a"
_MESSAGE = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Review the migration"}]}
_SENT = {"message": _MESSAGE, "configuration": {"returnImmediately": True}}
_CALLS = {
    "POST /queues/{id}/tasks, the yardstick": (f"/queues/{QUEUE}/tasks", {"title": "Review the migration"}),
    "SendMessage by HTTP+JSON": ("/a2a/message:send", _SENT),
    "SendMessage by JSON-RPC": ("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": _SENT}),
}


def main(quick: bool) -> None:
    """Measure and print everything; `quick` runs a shorter measurement."""
    # Short slices: other load on the machine then meets all calls alike.
    slices, seconds = (2, 0.3) if quick else (24, 0.25)
    folder = tempfile.TemporaryDirectory(prefix="rka2a", dir=os.environ.get("REDKEY_BENCH_DIR"))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(redkey(Path(stack.enter_context(folder))))
        _begin_queue(server)
        turns: dict[str, Turns] = {}
        for name, (path, body) in _CALLS.items():
            start = _asking(server, path, json.dumps(body).encode())
            lanes = [stack.enter_context(contextlib.closing(Lane(server.place, start))) for _ in range(CONNECTIONS)]
            turns[name] = Turns(server, lanes)
        alternate(turns, slices, seconds)
    rates = {name: one.works / one.seconds for name, one in turns.items()}
    (first, yardstick), *others = rates.items()
    print(f"  tasks created, {CONNECTIONS} connections")
    row(f"  {first}", yardstick)
    for name, found in others:
        row(f"  {name}", found, beside=yardstick, share_aim=0.6)


def _begin_queue(server: Served) -> None:
    with contextlib.closing(HTTPConnection(*server.place)) as connection:
        headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
        connection.request("POST", "/queues", json.dumps({"id": QUEUE, "name": "a2a"}), headers)
        assert connection.getresponse().status == 201


def _asking(server: Served, path: str, body: bytes) -> Callable[[], Work]:
    """The same request, repeated."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {server.key}\r\na2a-version: 1.0\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body

    def work() -> Work:
        answer = yield request
        if answer[9:12] not in (b"200", b"201") or b'"error"' in answer:
            raise RuntimeError(f"not created: {answer[:500]!r}")

    return work
