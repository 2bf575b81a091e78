"""A server that is stopped while it has the writer lock: its siblings say so within seconds, and go on after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.harness.acts import begin_queue, until
from tests.harness.client import TIMEOUT_SECONDS, Client, Reply
from tests.harness.server import Server, serving

ANSWER_SECONDS = 5.0
PLAN = {"name": "p", "version": "1.0", "roles": {}, "tasks": [], "policies": {}}


def _has_lock(server: Server) -> bool:
    """Whether this server, and no sibling, has the writer lock: the kernel lists it beside the open file."""
    for path in Path(f"/proc/{server.pid}/fd").iterdir():
        if os.path.realpath(path) == os.path.realpath(server.data / "redkey.lock"):
            return "FLOCK" in Path(f"/proc/{server.pid}/fdinfo/{path.name}").read_text()
    raise AssertionError("the server has not opened its lock")


@contextmanager
def frozen_in_a_unit(server: Server, queue: str) -> Iterator[None]:
    """Stop the server while it has the writer lock; it goes on when the block ends."""
    over = threading.Event()

    def write() -> None:
        with server.client() as client:
            while not over.is_set():
                # After a freeze it may itself be the one that waits too long for its turn.
                assert client.post(f"/queues/{queue}/tasks", {"title": "Under load"}).status in (201, 503)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(10_000):
            server.process.send_signal(signal.SIGSTOP)
            until(lambda: Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
            if _has_lock(server):
                break
            server.process.send_signal(signal.SIGCONT)
        else:
            raise AssertionError("the server was never stopped inside a unit")
        yield
    finally:
        over.set()
        server.process.send_signal(signal.SIGCONT)
        for writer in writers:
            writer.join()


def _refused_in_time(send: object, *arguments: object, **options: object) -> Reply:
    began = time.monotonic()
    reply: Reply = send(*arguments, **options)  # type: ignore[operator]
    assert time.monotonic() - began < ANSWER_SECONDS
    assert (reply.status, reply.json["code"]) == (503, "writer_busy"), reply.text
    assert int(reply.headers["retry-after"]) >= 1
    return reply


def test_writes_beside_a_frozen_server_are_refused_in_time_and_readyz_says_so(tmp_path: Path) -> None:
    with (
        serving(tmp_path, name="frozen") as frozen,
        serving(tmp_path, name="other") as other,
        other.client() as client,
        Client(other.url, checked=False) as anybody,
    ):
        queue = begin_queue(client)
        ready = client.get("/readyz")
        assert (ready.status, ready.json["status"]) == (200, "ready")
        assert ready.json["store"].startswith("SQLite 3.")
        with frozen_in_a_unit(frozen, queue):
            _refused_in_time(client.post, f"/queues/{queue}/tasks", {"title": "Now"}, key="one")
            # The lock is known to be stuck: nobody waits for it again.
            began = time.monotonic()
            for _ in range(20):
                _refused_in_time(client.post, f"/queues/{queue}/tasks", {"title": "Now"}, key="one")
            assert time.monotonic() - began < ANSWER_SECONDS
            # A writer beside the coordinator.
            _refused_in_time(client.post, "/workspaces", {"name": "w"})
            _refused_in_time(client.get, "/readyz")
            # Whoever reads is answered.
            assert anybody.get("/healthz").status == 200
            assert client.get(f"/queues/{queue}").status == 200
        until(lambda: client.get("/readyz").status == 200)
        made = client.post(f"/queues/{queue}/tasks", {"title": "Now"}, key="one")
        assert made.status == 201, made.text


def test_beside_a_frozen_server_another_stops_when_asked_and_a_start_ends_with_one_line(tmp_path: Path) -> None:
    with serving(tmp_path, name="frozen") as frozen, serving(tmp_path, name="other") as other:
        with other.client() as client:
            queue = begin_queue(client)
        with frozen_in_a_unit(frozen, queue):
            command = [sys.executable, "-m", "redkey", "serve", "--data", str(frozen.data), "--port", "0"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as third:
                headers = {"authorization": f"Bearer {other.key}"}
                with httpx2.Client(base_url=other.url, headers=headers, timeout=TIMEOUT_SECONDS) as http:
                    assert http.post(f"/queues/{queue}/tasks", json={"title": "Now"}).status_code == 503
                assert other.stop() == 0, other.logs()
                said = third.communicate(timeout=60)[1]
    assert third.returncode == 1
    # One line for the error; beside it, where the directory came from and the next step.
    lines = [line for line in said.splitlines() if not line.strip().startswith(("next: ", "hint: ", "data: "))]
    assert len(lines) == 1, said
    assert lines[0].endswith("[writer_busy]")
