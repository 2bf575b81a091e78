"""Endless load for servers that are killed: agents that create, claim and end tasks, and log what they saw.

`python -m tests.harness.load LOG KEY WORKERS SEED PLACE...` prints `ready`, then works until its standard input ends.
A call without an answer is sent again, to any of the places, with the same idempotency key, until it is answered.
LOG is the history: a line of JSON before each call (`invoke`) and one for its answer (`ok`).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random
from typing import IO, Any

from bench.connection import Connection, Reply, request
from tests.harness.acts import CARD

QUEUE = "queue_load"
AGAIN_SECONDS = 0.01


class Client:
    """A caller that retries until it gets an answer."""

    def __init__(self, log: IO[str], key: str, places: list[str], random: Random, name: str) -> None:
        self._log, self._key, self._places, self._random, self._name = log, key, places, random, name
        self._connection: Connection | None = None
        self._count = 0

    async def post(self, path: str, body: Any) -> Any:
        """Send a call until it is answered; the answer is logged before it is used."""
        self._count += 1
        key = f"{self._name}-{self._count}"
        data = request("POST", path, self._key, body, idempotency_key=key)
        self._write({"event": "invoke", "key": key, "path": path, "body": body, "at": time.monotonic()})
        tries = 1
        while (reply := await self._send(data)) is None:
            tries += 1
            await asyncio.sleep(AGAIN_SECONDS)
        answer = {"status": reply.status, "reply": reply.body.decode()}
        self._write({"event": "ok", "key": key, "at": time.monotonic(), "tries": tries, **answer})
        return reply.json

    def _write(self, line: dict[str, Any]) -> None:
        self._log.write(json.dumps(line) + "\n")

    async def _send(self, data: bytes) -> Reply | None:
        """Send once; None if it is unknown whether the server handled it."""
        try:
            if self._connection is None:
                self._connection = await Connection.open(self._random.choice(self._places))
            reply = await self._connection.send(data)
        except OSError:
            self._connection = None
            return None
        return reply if reply.status != 503 else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class Worker:
    """An agent that works, sometimes on tasks that others want too."""

    def __init__(self, client: Client, random: Random, tasks: list[str], name: str) -> None:
        self._client, self._random, self._tasks, self._name = client, random, tasks, name

    async def run(self, ending: asyncio.Event) -> None:
        post, random = self._client.post, self._random
        card = {**CARD, "name": self._name}
        agent = (await post("/agents/register-card", {"agentCard": card}))["agentId"]
        while not ending.is_set():
            created = await post(f"/queues/{QUEUE}/tasks", {"title": "Under load"})
            self._tasks.append(created["taskId"])
            if random.random() < 0.5:
                # Choose one of the newest tasks, because others try to claim it too.
                task = random.choice(self._tasks[-8:])
                told = await post(f"/tasks/{task}/claim", {"agentId": agent, "leaseSeconds": 600})
            else:
                told = await post(f"/queues/{QUEUE}/claim-next", {"agentId": agent, "leaseSeconds": 600})
            while told is not None and told["status"] == "claimed":
                told = await self._work(told["claimId"], agent)
        self._client.close()

    async def _work(self, claim: str, agent: str) -> Any:
        """Act on a claim; return the claim that came with its end, if any."""
        post, random = self._client.post, self._random
        if random.random() < 0.5:
            await post(f"/claims/{claim}/start", {})
        if random.random() < 0.2:
            await post(f"/claims/{claim}/release", {})
            # A released task cannot be completed.
            await post(f"/claims/{claim}/complete", {})
            return None
        following = {"claimNext": {"queueId": QUEUE}} if random.random() < 0.4 else {}
        if random.random() < 0.2:
            return (await post(f"/claims/{claim}/fail", {"reason": "it broke", **following})).get("next")
        return (await post(f"/claims/{claim}/complete", {"summary": "done", **following})).get("next")


async def main(log: str, key: str, workers: str, seed: str, *places: str) -> None:
    ending = asyncio.Event()
    tasks: list[str] = []
    with Path(log).open("w", buffering=1) as out:
        running = []
        for number in range(int(workers)):
            random, name = Random(f"{seed}/{number}"), f"worker-{number}"
            worker = Worker(Client(out, key, list(places), random, name), random, tasks, name)
            running.append(asyncio.ensure_future(worker.run(ending)))
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        ending.set()
        await asyncio.gather(*running)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
