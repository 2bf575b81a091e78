"""The same request sent 1 to 100 times at once, to two servers on one data directory: same bytes, one effect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.connection import Connection, Reply, request
from redkey.stores.sqlite import SqliteStore
from tests.harness import invariants
from tests.harness.acts import CARD
from tests.harness.server import Server, serving

COPIES = (1, 2, 3, 7, 20, 100)
CONNECTIONS = 6


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(serving(tmp_path, "--uds", str(tmp_path / f"s{number}"), name=f"server{number}"))
            for number in (1, 2)
        ]


class Repeater:
    """Sends every request as often as it is told, over all connections to both servers."""

    def __init__(self, key: str, connections: list[Connection], store: SqliteStore) -> None:
        self._key, self._connections, self._store = key, connections, store
        self._topic = store.topics()[0]
        self._number = 0
        self.copies = 1

    async def post(self, path: str, body: Any) -> Any:
        """The one reply that all copies get."""
        self._number += 1
        data = request("POST", path, self._key, body, idempotency_key=f"repeat-{self._number}")
        places = [self._connections[index % len(self._connections)] for index in range(self.copies)]
        replies: list[Reply] = await asyncio.gather(*(one.send(data) for one in places))
        assert 200 <= replies[0].status < 300, replies[0]
        assert {(reply.status, reply.body) for reply in replies} == {(replies[0].status, replies[0].body)}
        return replies[0].json

    @property
    def head(self) -> int:
        return self._store.head(self._topic).sequence


async def _life(send: Repeater, name: str) -> list[int]:
    """Everything that a task goes through; how many records each request made."""
    grown = [send.head]

    async def post(path: str, body: Any) -> Any:
        reply = await send.post(path, body)
        grown.append(send.head)
        return reply

    queue = (await post("/queues", {"id": name, "name": name}))["queueId"]
    agent = (await post("/agents/register-card", {"agentCard": {**CARD, "name": name}, "issueKey": True}))["agentId"]
    task = (await post(f"/queues/{queue}/tasks", {"title": "First"}))["taskId"]
    batch = await post(f"/queues/{queue}/tasks/batch", {"tasks": [{"title": f"Task {n}"} for n in range(4)]})
    assert len({one["task"]["taskId"] for one in batch["items"]}) == 4
    claim = (await post(f"/tasks/{task}/claim", {"agentId": agent}))["claimId"]
    await post(f"/claims/{claim}/start", {})
    await post(f"/claims/{claim}/artifacts", {"name": "report", "content": "done"})
    following = {"claimNext": {"queueId": queue}}
    ended = await post(f"/claims/{claim}/complete", {"summary": "done", **following})
    blocked = ended["next"]["claimId"]
    await post(f"/claims/{blocked}/block", {"reason": "no key", "blockerType": "auth"})
    won = await post(f"/queues/{queue}/claim-next", {"agentId": agent, "count": 2})
    first, second = (one["claimId"] for one in won["claims"])
    await post(f"/claims/{first}/fail", {"reason": "it broke"})
    await post(f"/claims/{second}/release", {})
    await post(f"/tasks/{won['claims'][1]['taskId']}/cancel", {})
    await post("/inbox", {"to": "human", "subject": "Look", "body": "at this"})
    return [after - before for before, after in pairwise(grown)]


async def _repeat(servers: list[Server]) -> None:
    places = [place for server in servers for place in (server.url, str(server.uds))]
    connections = [await Connection.open(places[number % len(places)]) for number in range(CONNECTIONS)]
    with ExitStack() as stack:
        for connection in connections:
            stack.callback(connection.close)
        store = stack.enter_context(SqliteStore(servers[0].data, create=False))
        send = Repeater(servers[0].key, connections, store)
        once: list[int] = []
        for copies in COPIES:
            send.copies = copies
            grown = await _life(send, f"queue_{copies}")
            once = once or grown
            assert all(grown), grown
            assert grown == once, f"{copies} copies made other records than one"
        invariants.check_topic(store, store.topics()[0])


def test_a_request_sent_again_and_again_gets_the_same_bytes_and_happens_once(servers: list[Server]) -> None:
    asyncio.run(_repeat(servers))
