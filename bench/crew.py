"""Agents that work at a server with everything on: the requests that `load` sends, and the setup that they need.

Every agent has its own key and connection and a role that the tasks require; every write has an Idempotency-Key; one
process follows the whole event stream; the server counts its metrics as usual.
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
from uuid import uuid4

from bench.load import Lane, Work
from bench.served import Site, stop, uninterrupted

QUEUE, ROLE = "queue_bench", "role_bench"
TASK: dict[str, Any] = {"title": "Research a guest", "input": {"guest": "x" * 256}}
BATCH = 50
_CARD = {"name": "bench", "description": "Works.", "version": "1", "skills": [], "capabilities": {}}
_CLAIM_ID = re.compile(rb'"claimId": ?"([^"]+)"')
_DRAIN = """
import socket, sys
follower = socket.socket(fileno=int(sys.argv[1]))
while follower.recv(1 << 20):
    pass
"""


def call(site: Site, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
    """The JSON answer of one request, over a connection of its own; RuntimeError if it is refused."""
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
    """The bytes of a request; only the Idempotency-Key and an id in the path change."""

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
        # The same card is the same agent, so each agent has a card of its own.
        body = {"agentCard": {**_CARD, "url": f"https://bench.example/{uuid4()}"}, "issueKey": True}
        made = call(site, "POST", "/agents/register-card", body)
        self.agent_id, self.key = made["agentId"], made["apiKey"]
        call(site, "POST", f"/roles/{ROLE}/agents/{self.agent_id}", {})
        # The name is unique, so no key is used twice.
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
        """The same for many tasks per request."""
        expect(b"200", (yield self._create_many()))
        claims: list[str] = []
        while len(claims) < BATCH:
            # Others may have claimed some of these tasks, and left as many.
            asked = {"agentId": self.agent_id, "wait": 30, "count": BATCH - len(claims)}
            reply = yield self._claim_many(end=Request.ending(asked))
            claims += [one["claimId"] for one in _body(reply)["claims"]]
        done = {"claims": [{"claimId": claim} for claim in claims]}
        expect(b"200", (yield self._complete_many(end=Request.ending(done))))


class Crew:
    """The agents of one server, registered when they are needed. The first crew creates the queue and the role."""

    def __init__(self, site: Site, task: dict[str, Any] = TASK) -> None:
        self.site, self.task, self._agents = site, {**task, "requiredRoles": [ROLE]}, list[Agent]()
        if not any(role["id"] == ROLE for role in call(site, "GET", "/roles")["items"]):
            call(site, "POST", "/roles", {"id": ROLE, "name": "Bench"})
            call(site, "POST", "/queues", {"id": QUEUE, "name": "Bench"})

    def hire(self, count: int) -> list[Agent]:
        """Return this many agents, registering those that are missing."""
        while len(self._agents) < count:
            self._agents.append(Agent(self.site, self.task))
        return self._agents[:count]

    def lanes(self, count: int, work: Callable[[Agent], Callable[[], Work]]) -> AbstractContextManager[list[Lane]]:
        """A connection for each of `count` agents, which repeats the work chosen for the agent."""
        return _opened(self.site, [work(agent) for agent in self.hire(count)])


@contextlib.contextmanager
def _opened(site: Site, works: list[Callable[[], Work]]) -> Iterator[list[Lane]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Lane(site.place, work))) for work in works]


@contextlib.contextmanager
def follower(server: Site) -> Iterator[None]:
    """Follow the server's whole event stream in a separate process that discards what it reads."""
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
    """Connections that repeat one create request, for a server that echoes it."""
    request = Request(f"/queues/{QUEUE}/tasks", "rk_nobody_asks", "bench", TASK)

    def ask() -> Work:
        expect(b"200", (yield request()))

    return _opened(server, [ask] * count)


def expect(status: bytes, reply: bytes) -> None:
    """Raise RuntimeError unless a reply has the expected status."""
    if reply[9:12] != status:
        raise RuntimeError(f"not {status.decode()}: {reply[:1000].decode(errors='replace')}")


def _body(reply: bytes) -> Any:
    expect(b"200", reply)
    return json.loads(reply[reply.index(b"\r\n\r\n") + 4 :])
