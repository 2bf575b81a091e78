"""A holder: an agent's process that claims a task and then performs the acts that it reads from standard input.

`python -m tests.harness.holder PLACE KEY TASK AGENT LEASE_SECONDS` prints the reply to the claim. Each line on its
standard input is a JSON [act, body]: it performs the act on its claim and prints [status, reply].
"""

from __future__ import annotations

import asyncio
import json
import sys

from bench.connection import Connection, request


async def main(place: str, key: str, task: str, agent: str, lease_seconds: str) -> None:
    connection = await Connection.open(place)
    asked = {"agentId": agent, "leaseSeconds": int(lease_seconds)}
    claimed = await connection.call("POST", f"/tasks/{task}/claim", key, asked)
    print(json.dumps(claimed), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        act, body = json.loads(line)
        reply = await connection.send(request("POST", f"/claims/{claimed['claimId']}/{act}", key, body))
        print(json.dumps([reply.status, reply.json]), flush=True)
    connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
