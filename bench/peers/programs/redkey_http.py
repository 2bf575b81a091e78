"""RedKey: create, claim-next, complete, one request each, one connection and agent a worker, by a bare asyncio client.

Every worker brings its own key. `count` asks for so many tasks a request, by the batch endpoints.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from bench.connection import Connection

ASKED = json.loads(sys.argv[1])
PLACE, COUNT = ASKED["place"], ASKED.get("count", 1)
TASK = {"title": "Research a guest", "input": {"body": "x" * ASKED["bytes"]}}
QUEUE = "queue_bench"


async def open_queue() -> None:
    """A queue of this run's own, once for a server."""
    admin = await Connection.open(PLACE["url"])
    listed = await admin.call("GET", "/queues", PLACE["key"])
    if not any(queue["queueId"] == QUEUE for queue in listed["items"]):
        await admin.call("POST", "/queues", PLACE["key"], {"id": QUEUE, "name": "Bench"})
    admin.close()


async def join() -> tuple[Connection, str, str]:
    """A connection with an agent and its key."""
    connection = await Connection.open(PLACE["url"])
    card = {"name": "bench", "description": "Works.", "url": "https://bench.example/a", "version": "1", "skills": []}
    body = {"agentCard": {**card, "capabilities": {}}, "issueKey": True}
    made = await connection.call("POST", "/agents/register-card", PLACE["key"], body)
    return connection, made["apiKey"], made["agentId"]


async def work(connection: Connection, key: str, agent: str, cycles: int, spent: list[float]) -> None:
    for _ in range(cycles):
        begun = time.perf_counter()
        await connection.call("POST", f"/queues/{QUEUE}/tasks", PLACE["key"], TASK)
        claimed = await connection.call("POST", f"/queues/{QUEUE}/claim-next", key, {"agentId": agent, "wait": 30})
        await connection.call("POST", f"/claims/{claimed['claimId']}/complete", key, {})
        spent.append(time.perf_counter() - begun)


async def work_in_batches(connection: Connection, key: str, agent: str, cycles: int, spent: list[float]) -> None:
    for _ in range(cycles // COUNT):
        begun = time.perf_counter()
        await connection.call("POST", f"/queues/{QUEUE}/tasks/batch", PLACE["key"], {"tasks": [TASK] * COUNT})
        body = {"agentId": agent, "wait": 30, "count": COUNT}
        claims = [one["claimId"] for one in await claim_all(connection, key, body)]
        done: Any = {"claims": [{"claimId": claim} for claim in claims]}
        await connection.call("POST", "/claims/complete", key, done)
        spent.append(time.perf_counter() - begun)


async def claim_all(connection: Connection, key: str, body: Any) -> list[Any]:
    """As many claims as there were tasks put: somebody else may take some, and leaves as many."""
    won: list[Any] = []
    while len(won) < COUNT:
        reply = await connection.call("POST", f"/queues/{QUEUE}/claim-next", key, {**body, "count": COUNT - len(won)})
        won += reply["claims"]
    return won


async def main() -> None:
    await open_queue()
    workers = [await join() for _ in range(ASKED["workers"])]
    each, spent = ASKED["tasks"] // len(workers) // COUNT * COUNT, list[float]()
    doing = work if COUNT == 1 else work_in_batches
    begun = time.perf_counter()
    await asyncio.gather(*(doing(*worker, each, spent) for worker in workers))
    seconds = time.perf_counter() - begun
    spent.sort()
    parts = (1, 5, 10, 25, 50, 75, 90, 95, 99)
    quantiles = {str(part): spent[len(spent) * part // 100] * 1000 for part in parts}
    print(json.dumps({"cycles": each * len(workers), "seconds": seconds, "quantiles": quantiles}))


asyncio.run(main())
