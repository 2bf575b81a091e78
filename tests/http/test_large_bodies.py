"""Large bodies are handled without blocking the event loop."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator

import httpx2

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.server import Server
from tests.http.raw import connect

SIZE = (256 if os.environ.get("REDKEY_TEST_LONG") else 64) * 1024 * 1024
PIECE = bytes(range(256)) * 1024
STALL_SECONDS = 0.05
ROUNDS = 8


class Probe:
    """Requests /healthz repeatedly, and measures the slowest answer."""

    def __init__(self, server: Server) -> None:
        self._sock = connect(server)
        self._stop = threading.Event()
        self.slowest = 0.0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sock.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            self._sock.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert self._sock.recv(4096).startswith(b"HTTP/1.1 200")
            self.slowest = max(self.slowest, time.monotonic() - begun)


def pieces() -> Iterator[bytes]:
    for _ in range(SIZE // len(PIECE)):
        yield PIECE


def test_a_large_body_does_not_delay_other_requests(workspace: Workspace) -> None:
    """Put, register as an artifact, complete on it, get: the loop answers others all the while.

    Other processes of the machine stall answers too, now and then. What the server itself does shows every time, so
    one round without a stall is enough.
    """
    begin_queue(workspace.admin)
    agent = register(workspace.admin)["agentId"]
    for _ in range(ROUNDS):
        with Probe(workspace.server) as quiet:
            # The same work on this machine, without the server.
            digest = hashlib.sha256()
            for piece in pieces():
                digest.update(piece)
        seconds = stalls(workspace, agent, digest.hexdigest())
        shown = ", ".join(f"{name} {one * 1e3:.0f} ms" for name, one in seconds.items())
        print(f"slowest /healthz beside {SIZE // 2**20} MiB: {shown}; quiet {quiet.slowest * 1e3:.0f} ms")
        if max(seconds.values()) < quiet.slowest + STALL_SECONDS:
            return
    raise AssertionError(f"every round had a stall; the last one: {shown}")


def test_a_large_body_for_the_bus_does_not_delay_other_requests(server: Server) -> None:
    """Its JSON is decoded strictly, in Python: the worst megabyte takes most of a second. On the loop, another request
    would wait for nearly all of that time."""
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    body = b'{"text":"x","agent_ids":["a"],"more":[' + b",".join([b"{}"] * 340_000) + b"]}"
    with httpx2.Client(base_url=server.url, headers=headers, timeout=120) as client:
        session = client.post("/api/sessions", json={"name": "large"}).json()["id"]
        for _ in range(ROUNDS):
            with Probe(server) as probe:
                begun = time.monotonic()
                reply = client.post(f"/api/sessions/{session}/messages", content=body)
                seconds = time.monotonic() - begun
            assert (reply.status_code, reply.json()["code"]) == (400, "agents_not_found"), reply.text
            print(f"slowest /healthz {probe.slowest * 1e3:.0f} ms during a request of {seconds * 1e3:.0f} ms")
            if probe.slowest < seconds / 4:
                return
    raise AssertionError(f"every round had a stall; the last one: {probe.slowest} s of {seconds} s")


def stalls(workspace: Workspace, agent: str, sha256: str) -> dict[str, float]:
    """Return the slowest answer to another client while a body is stored, used and read."""
    admin, server = workspace.admin, workspace.server
    held = claim(admin, create_task(admin), agent)
    headers = {"authorization": f"Bearer {admin.key}", "content-type": "application/octet-stream"}
    seconds = {}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=120) as client:
        with Probe(server) as putting:
            assert client.put("/content", content=pieces()).json()["sha256"] == sha256
        seconds["put"] = putting.slowest
        with Probe(server) as using:
            artifact = {"name": "large", "sha256": sha256}
            assert admin.post(f"/claims/{held['claimId']}/artifacts", artifact).status == 201
            assert admin.post(f"/claims/{held['claimId']}/complete", {}).status == 200
        seconds["register and complete"] = using.slowest
        with Probe(server) as getting, client.stream("GET", f"/content/{sha256}") as reply:
            assert sum(map(len, reply.iter_bytes())) == SIZE
        seconds["get"] = getting.slowest
    return seconds
