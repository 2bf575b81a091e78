"""One of many processes that claim at once: it opens its connections, waits for a line, then sends on all of them.

`python -m tests.harness.claimers PLACE KEY CONNECTIONS`: it prints `ready` when all connections are open. Each line on
its standard input is a JSON list of [task, agent]; it sends one claim each, spread over the connections, all before it
reads the first answer, and prints one line of JSON: the answers in the same order.
"""

from __future__ import annotations

import asyncio
import json
import sys

from bench.connection import Connection, request


async def main(place: str, key: str, count: str) -> None:
    connections = [await Connection.open(place) for _ in range(int(count))]
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        wanted = json.loads(line)
        claims = [
            request("POST", f"/tasks/{task}/claim", key, {"agentId": agent, "leaseSeconds": 600})
            for task, agent in wanted
        ]
        answers = [connections[index % len(connections)].send(claim) for index, claim in enumerate(claims)]
        told = [(reply.status, reply.json) for reply in await asyncio.gather(*answers)]
        print(json.dumps(told), flush=True)
    for connection in connections:
        connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
