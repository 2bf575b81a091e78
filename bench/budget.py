"""The budget of the hot path: microseconds of each part of the server for one create, one claim and one complete.

The server is `redkey serve` with stopwatches at the borders of its parts (`timed_server`), 32 connections ask for one
kind of operation at a time. All figures are processor time: waiting for the disk is not in them. `loop, kernel,
handlers` is what no stopwatch sees: reading sockets, tasks, and the code between the parts.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import time
from pathlib import Path

import uvloop

from bench import row, say
from bench.connection import Connection, request
from bench.served import Served, timed
from bench.timed_server import PARTS

ROUNDS = 1
QUEUE = "queue_budget"
CONNECTIONS = 32
# An agent holds a few tasks at a time, so operations come in waves of this many.
WAVE = CONNECTIONS * 10
OPERATIONS = ("create", "claim", "complete")
_REST = "loop, kernel, handlers"
_PATIENCE_SECONDS = 10.0
Budget = dict[str, dict[str, float]]


def main(quick: bool) -> None:
    """Measure and show everything; `quick` does fewer operations."""
    budget = measure(2_000 if quick else 12_000)
    for operation in OPERATIONS:
        spent = budget[operation]
        for part, microseconds in spent.items():
            row(f"{operation}: {part}", microseconds, unit="us", least=True)
    whole = sum(budget[operation]["processor"] for operation in OPERATIONS)
    row("a whole cycle, processor time", whole, unit="us", least=True)
    say("The stopwatches themselves take about a tenth of it.")


def measure(count: int) -> Budget:
    """Microseconds by operation and part; `processor` is the processor time of the server, stopwatches included."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, tempfile.TemporaryDirectory() as directory:
        totals = Path(directory) / "totals.json"
        with timed(Path(directory), totals) as server:
            return runner.run(_phases(server, totals, count))


async def _phases(server: Served, totals: Path, count: int) -> Budget:
    workers = [await Worker.hire(server, number) for number in range(CONNECTIONS)]
    spent = {operation: dict.fromkeys((*PARTS, "processor"), 0.0) for operation in OPERATIONS}
    waves = max(2, count // WAVE)
    for wave in range(waves):
        for worker in workers:
            worker.subjects = [""] * (WAVE // CONNECTIONS)
        for operation in OPERATIONS:
            before, begun = await _totals(server, totals), server.processor_seconds
            await asyncio.gather(*(worker.work(operation, wave) for worker in workers))
            taken = server.processor_seconds - begun
            after = await _totals(server, totals)
            if not wave:
                # The first wave warms up: schemas become grammars, statements are prepared.
                continue
            for part in PARTS:
                spent[operation][part] += (after[part] - before[part]) / 1e3
            spent[operation]["processor"] += taken * 1e6
    operations = (waves - 1) * WAVE
    return {operation: _shares(parts, operations) for operation, parts in spent.items()}


def _shares(parts: dict[str, float], operations: int) -> dict[str, float]:
    each = {part: microseconds / operations for part, microseconds in parts.items()}
    processor = each.pop("processor")
    return {**each, _REST: max(0.0, processor - sum(each.values())), "processor": processor}


class Worker:
    """An agent on a connection of its own, and the tasks or claims that it has to do something to."""

    def __init__(self, connection: Connection, key: str, agent: str) -> None:
        self._connection, self._key, self._agent = connection, key, agent
        self.subjects: list[str] = []

    @classmethod
    async def hire(cls, server: Served, number: int) -> Worker:
        connection = await Connection.open(server.url)
        if not number:
            await connection.call("POST", "/queues", server.key, {"id": QUEUE, "name": "Budget"})
        card = {"name": f"bench {number}", "description": "Works.", "url": "https://bench.example/a", "version": "1"}
        body = {"agentCard": {**card, "skills": [], "capabilities": {}}}
        made = await connection.call("POST", "/agents/register-card", server.key, body)
        return cls(connection, server.key, made["agentId"])

    async def work(self, operation: str, wave: int) -> None:
        """Do one operation to every subject; what it gives is what the next one is done to."""
        given: list[str] = []
        for number, subject in enumerate(self.subjects):
            path, body = self._request(operation, subject)
            name = f"{self._agent}-{operation}-{wave}-{number}"
            reply = await self._connection.send(request("POST", path, self._key, body, idempotency_key=name))
            told = reply.json
            if told.get("status") not in ("available", "claimed", "completed"):
                raise RuntimeError(f"{path}: {told}")
            given.append(told.get("claimId") or told["taskId"])
        self.subjects = given

    def _request(self, operation: str, subject: str) -> tuple[str, object]:
        if operation == "create":
            return f"/queues/{QUEUE}/tasks", {"title": "Research a guest", "input": {"guest": "Ann " * 60}}
        if operation == "claim":
            return f"/tasks/{subject}/claim", {"agentId": self._agent, "leaseSeconds": 600}
        return f"/claims/{subject}/complete", {"summary": "Five sources found.", "output": {"n": 5}}


async def _totals(server: Served, totals: Path) -> dict[str, int]:
    """What the stopwatches show now, in nanoseconds."""
    totals.unlink(missing_ok=True)
    os.kill(server.process.pid, signal.SIGUSR1)
    end = time.monotonic() + _PATIENCE_SECONDS
    while not totals.exists():
        if time.monotonic() > end:
            raise RuntimeError("the server does not tell what its stopwatches show")
        await asyncio.sleep(0.005)
    found: dict[str, int] = json.loads(totals.read_text())
    return found
