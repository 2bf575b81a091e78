"""RedKey: the graph as a plan over HTTP; 32 workers that claim the next task with the completion of the last."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any
from uuid import uuid4

from bench.connection import Connection
from bench.workflows import plan

ASKED = json.loads(sys.argv[1])
PLACE, QUEUE, WORKERS = ASKED["place"], "queue_graph", 32


async def work(connection: Connection, key: str, agent: str) -> None:
    """Claim, complete with the next claim in the same reply, and wait if there is nothing."""
    while True:
        claim = await connection.call("POST", f"/queues/{QUEUE}/claim-next", key, {"agentId": agent, "wait": 30})
        while claim is not None and claim["status"] == "claimed":
            body = {"claimNext": {"queueId": QUEUE}}
            claim = (await connection.call("POST", f"/claims/{claim['claimId']}/complete", key, body)).get("next")


async def join(admin: Connection) -> tuple[Connection, str, str]:
    # The same card is the same agent, so each has a card of its own.
    """Register a worker and open its connection."""
    url = f"https://bench.example/{uuid4()}"
    card = {"name": "bench", "description": "Works.", "url": url, "version": "1", "skills": []}
    body = {"agentCard": {**card, "capabilities": {}}, "issueKey": True}
    made = await admin.call("POST", "/agents/register-card", PLACE["key"], body)
    await admin.call("POST", f"/roles/writer/agents/{made['agentId']}", PLACE["key"], {})
    return await Connection.open(PLACE["url"]), made["apiKey"], made["agentId"]


async def main() -> None:
    """Run the measurement and print its result."""
    admin = await Connection.open(PLACE["url"])
    with contextlib.suppress(RuntimeError):
        await admin.call("POST", "/queues", PLACE["key"], {"id": QUEUE, "name": "Graph"})
        await admin.call("POST", "/roles", PLACE["key"], {"id": "writer", "name": "Writer"})
    workers = [asyncio.create_task(work(*await join(admin))) for _ in range(WORKERS)]
    wanted: dict[str, Any] = {"queueId": QUEUE, "plan": plan(ASKED["levels"], ASKED["width"])}
    begun = time.perf_counter()
    run = await admin.call("POST", "/workflows", PLACE["key"], wanted)
    while (await admin.call("GET", f"/workflows/{run['workflowId']}", PLACE["key"]))["status"] == "running":
        await asyncio.sleep(0.02)
    print(json.dumps({"seconds": time.perf_counter() - begun}))
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


asyncio.run(main())
