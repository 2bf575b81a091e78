"""More callers than a process may have files open: those beyond get a 503, and the store never runs out."""

from __future__ import annotations

import resource
import socket
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.harness.acts import begin_queue, create_task
from tests.harness.server import serving

SOFT, HARD = 128, 512
CROWD = 400
ROOM = 256
# All connect before the first one asks, which takes a while on a busy machine.
CONFIG = "[limits]\nheader_seconds = 600\n"
FEW_FILES = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({SOFT}, {HARD}))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_a_crowd_of_connections_leaves_the_store_its_files(tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, config=CONFIG, python=(sys.executable, "-c", FEW_FILES)))
        client = stack.enter_context(server.client())
        begin_queue(client)
        # It takes all that the system lets it have.
        assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE) == (HARD, HARD)
        where = urlsplit(server.url)
        crowd = [
            stack.enter_context(socket.create_connection((where.hostname or "", where.port or 0), timeout=30))
            for _ in range(CROWD)
        ]
        answers = [_ask(one) for one in crowd]
        told = {answer.partition(b"\r\n")[0] for answer in answers}
        assert told - {b""} == {b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable"}
        let_in = sum(answer.startswith(b"HTTP/1.1 200") for answer in answers)
        assert ROOM - 20 <= let_in <= ROOM
        # Whoever was there before goes on; bodies that are files of their own too.
        task = create_task(client, input={"text": "long " * 20_000})
        assert client.get(f"/tasks/{task}").json["input"]["text"].startswith("long")
        assert '"level": "error"' not in server.logs()


def _ask(one: socket.socket) -> bytes:
    """The answer; nothing when the connection was refused and closed before the question came."""
    with suppress(ConnectionError):
        one.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
    with suppress(ConnectionError):
        return one.recv(4096)
    return b""
