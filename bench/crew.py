"""Agents that work at a server with everything on: what `load` sends, and what has to exist before.

Every agent has a key and a connection of its own and a role that the tasks require; every write carries an
Idempotency-Key; one process follows the whole event stream; the server counts its metrics as it always does.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from bench.load import Lane, Work
from bench.served import Site, stop, uninterrupted

QUEUE, ROLE = "queue_bench", "role_bench"
TASK: dict[str, Any] = {"title": "Research a guest", "input": {"guest": "x" * 256}}
BATCH = 50
_CARD = {"name": "bench", "description": "Works.", "url": "https://bench.example/a", "version": "1"}
_CLAIM_ID = re.compile(rb'"claimId": ?"([^"]+)"')
_DRAIN = """
import socket, sys
follower = socket.socket(fileno=int(sys.argv[1]))
while follower.recv(1 << 20):
    pass
"""


def call(site: Site, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
    """The JSON of one request's answer, over a connection of its own; RuntimeError when it is refused."""
    connection = http.client.HTTPConnection(*site.place, timeout=60)
    with contextlib.closing(connection):
        headers = {"authorization": f"Bearer {key or site.key}", "content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read()
        if not 200 <= reply.status < 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {text.decode()}")
        return json.loads(text)


class Request:
    """The bytes of a request of which only the Idempotency-Key, and an id in the path, differ from time to time."""

    def __init__(self, path: str, key: str, name: str, body: Any = None) -> None:
        before, gap, after = path.partition("{}")
        self._start = f"POST {before}".encode()
        self._middle = f"{after} HTTP/1.1\r\nhost: redkey\r\nauthorization: Bearer {key}\r\n".encode()
        self._middle += f"content-type: application/json\r\nidempotency-key: {name}-".encode()
        self._end = b"" if body is None else self.ending(body)
        self._numbers = itertools.count()
        if not gap:
            self._start, self._middle = self._start + self._middle, b""

    @staticmethod
    def ending(body: Any) -> bytes:
        """The end of a request: the length of its body, and the body."""
        data = json.dumps(body).encode()
        return b"\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)

    def __call__(self, value: bytes = b"", end: bytes = b"") -> bytes:
        return b"%b%b%b%d%b" % (self._start, value, self._middle, next(self._numbers), end or self._end)


class Agent:
    """An agent with its key and its prepared requests."""

    def __init__(self, site: Site, task: dict[str, Any]) -> None:
        body = {"agentCard": {**_CARD, "skills": [], "capabilities": {}}, "issueKey": True}
        made = call(site, "POST", "/agents/register-card", body)
        self.agent_id, self.key = made["agentId"], made["apiKey"]
        call(site, "POST", f"/roles/{ROLE}/agents/{self.agent_id}", {})
        # Nobody else has this name, so no key is used twice.
        name, claim = self.agent_id, {"agentId": self.agent_id, "wait": 30}
        next_path = f"/queues/{QUEUE}/claim-next"
        self._create = Request(f"/queues/{QUEUE}/tasks", site.key, f"{name}-create", task)
        self._claim = Request(next_path, self.key, f"{name}-claim", claim)
        self._complete = Request("/claims/{}/complete", self.key, f"{name}-complete", {})
        self._create_many = Request(f"/queues/{QUEUE}/tasks/batch", site.key, f"{name}-b", {"tasks": [task] * BATCH})
        self._claim_many = Request(next_path, self.key, f"{name}-c")
        self._complete_many = Request("/claims/complete", self.key, f"{name}-d")

    def cycle(self) -> Work:
        """Create a task, claim the next one, complete it."""
        expect(b"201", (yield self._create()))
        claimed = yield self._claim()
        claim = _CLAIM_ID.search(claimed)
        if claim is None:
            raise RuntimeError(f"no claim: {claimed[:1000]!r}")
        expect(b"200", (yield self._complete(claim[1])))

    def batch(self) -> Work:
        """The same for many tasks, as many a request."""
        expect(b"200", (yield self._create_many()))
        claims: list[str] = []
        while len(claims) < BATCH:
            # Others may have taken some, and left as many.
            asked = {"agentId": self.agent_id, "wait": 30, "count": BATCH - len(claims)}
            reply = yield self._claim_many(end=Request.ending(asked))
            claims += [one["claimId"] for one in _body(reply)["claims"]]
        done = {"claims": [{"claimId": claim} for claim in claims]}
        expect(b"200", (yield self._complete_many(end=Request.ending(done))))


class Crew:
    """The agents of one server, registered when they are needed. The first crew of a workspace opens it."""

    def __init__(self, site: Site, task: dict[str, Any] = TASK) -> None:
        self.site, self.task, self._agents = site, {**task, "requiredRoles": [ROLE]}, list[Agent]()
        if not any(role["id"] == ROLE for role in call(site, "GET", "/roles")["items"]):
            call(site, "POST", "/roles", {"id": ROLE, "name": "Bench"})
            call(site, "POST", "/queues", {"id": QUEUE, "name": "Bench"})

    def hire(self, count: int) -> list[Agent]:
        """So many agents, hired now or before."""
        while len(self._agents) < count:
            self._agents.append(Agent(self.site, self.task))
        return self._agents[:count]

    def lanes(self, count: int, work: Callable[[Agent], Callable[[], Work]]) -> AbstractContextManager[list[Lane]]:
        """A connection for each of so many agents, which does the work that is chosen for the agent."""
        return _opened(self.site, [work(agent) for agent in self.hire(count)])


@contextlib.contextmanager
def _opened(site: Site, works: list[Callable[[], Work]]) -> Iterator[list[Lane]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Lane(site.place, work))) for work in works]


@contextlib.contextmanager
def follower(server: Site) -> Iterator[None]:
    """Follow the server's whole event stream by a process of its own, which throws away what it reads."""
    with socket.create_connection(server.place, 60) as stream:
        stream.sendall(f"GET /stream HTTP/1.1\r\nhost: redkey\r\nauthorization: Bearer {server.key}\r\n\r\n".encode())
        head = stream.recv(1 << 16)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the event stream was refused: {head!r}")
        stream.settimeout(None)
        process: subprocess.Popen[bytes] | None = None
        program = [sys.executable, "-ISc", _DRAIN, str(stream.fileno())]
        try:
            with uninterrupted():
                process = subprocess.Popen(program, pass_fds=[stream.fileno()])
            yield
        finally:
            if process is not None:
                stop(process)


def echo_lanes(server: Site, count: int) -> AbstractContextManager[list[Lane]]:
    """Connections that send one create each time, for a server that echoes it."""
    request = Request(f"/queues/{QUEUE}/tasks", "rk_nobody_asks", "bench", TASK)

    def ask() -> Work:
        expect(b"200", (yield request()))

    return _opened(server, [ask] * count)


def expect(status: bytes, reply: bytes) -> None:
    if reply[9:12] != status:
        raise RuntimeError(f"not {status.decode()}: {reply[:1000].decode(errors='replace')}")


def _body(reply: bytes) -> Any:
    expect(b"200", reply)
    return json.loads(reply[reply.index(b"\r\n\r\n") + 4 :])
