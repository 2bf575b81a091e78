"""Growth: what a claim, a start and memory cost with 1,000, 100,000 and 1,000,000 tasks, waiting and finished.

Tasks are filled in beside the server, through the coordinator; then `redkey serve` starts on them and is measured by
HTTP. Claim costs stand beside those of the smallest size: flat is 1.0. The largest size is left out of a quick run.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from bench import row
from bench.bulk import Asked, Bulk
from bench.connection import Connection, request
from bench.served import Served, redkey
from redkey.commands.claims import ClaimNext, CompleteClaim
from redkey.reducers.world import SECOND, TOMBSTONE_NANOSECONDS

QUEUE = "queue_bench"
SIZES = (1_000, 100_000, 1_000_000)
CLAIMS = 300
_AT_ONCE = 100
AIM_FLAT, AIM_START_SECONDS, AIM_BYTES, AIM_FINISHED_BYTES = 1.5, 5, 1024, 0
# The largest size takes a quarter of an hour.
ROUNDS = 1


def main(quick: bool) -> None:
    """Measure every size; `quick` leaves out the largest."""
    sizes = SIZES[:2] if quick else SIZES
    with tempfile.TemporaryDirectory() as directory:
        _run(Growth(Path(directory)).measure(sizes))


def _run(work: Any) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


class Growth:
    """A data directory that grows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._empty_bytes = 0
        self._empty_seconds = 0.0
        self._first_cost = 0.0
        self._agent = ""
        self._waiting = 0

    async def measure(self, sizes: tuple[int, ...]) -> None:
        await self._begin()
        for size in sizes:
            await self._fill(size - self._waiting)
            with redkey(self._folder) as server:
                await self._waiting_tasks(server, size)
        await self._finish(self._waiting)
        with redkey(self._folder) as server:
            await self._finished_tasks(server, sizes[-1])

    async def _begin(self) -> None:
        """An empty workspace: what everything else is compared with."""
        with redkey(self._folder) as server:
            connection = await Connection.open(server.url)
            await connection.call("POST", "/queues", server.key, {"id": QUEUE, "name": "Bench"})
            card = {"name": "bench", "description": "Works.", "url": "https://bench.example/a", "version": "1"}
            body = {"agentCard": {**card, "skills": [], "capabilities": {}}}
            self._agent = (await connection.call("POST", "/agents/register-card", server.key, body))["agentId"]
            connection.close()
        with redkey(self._folder) as server:
            first = await self._first_answer(server)
            self._empty_seconds, self._empty_bytes = server.start_seconds + first, server.memory_bytes
        row("an empty workspace, to the first answer", self._empty_seconds, unit="s", least=True)
        row("an empty workspace, memory", self._empty_bytes / 1e6, unit="MB", least=True)

    async def _fill(self, count: int) -> None:
        begun = time.perf_counter()
        with Bulk(self._folder / "data") as bulk:
            await bulk.count(bulk.task(QUEUE) for _ in range(count))
        self._waiting += count
        row(f"{count:,} tasks filled in by one process", count / (time.perf_counter() - begun))

    async def _first_answer(self, server: Served) -> float:
        """From ready to the first answer that needs the world."""
        connection = await Connection.open(server.url)
        begun = time.perf_counter()
        # Nothing is recorded: an agent that is not there asks for a task.
        nobody = {"agentId": "agt_" + "0" * 26}
        await connection.send(request("POST", f"/queues/{QUEUE}/claim-next", server.key, nobody))
        connection.close()
        return time.perf_counter() - begun

    async def _waiting_tasks(self, server: Served, size: int) -> None:
        first = await self._first_answer(server)
        a_task = (server.memory_bytes - self._empty_bytes) / self._waiting
        records = self._head()
        connection = await Connection.open(server.url)
        claim = request("POST", f"/queues/{QUEUE}/claim-next", server.key, {"agentId": self._agent})
        spent, before = [], server.processor_seconds
        for _ in range(CLAIMS):
            begun = time.perf_counter()
            claimed = (await connection.send(claim)).json
            spent.append(time.perf_counter() - begun)
            assert claimed["status"] == "claimed", claimed
            # Held claims would be a growth of their own.
            await connection.call("POST", f"/claims/{claimed['claimId']}/complete", server.key, {})
        cost = (server.processor_seconds - before) / CLAIMS
        connection.close()
        self._waiting -= CLAIMS
        self._first_cost = self._first_cost or cost
        held = f"{size:,} waiting tasks"
        row(f"{held}, events", records, unit="")
        first_cost = self._first_cost * 1e6
        row(f"{held}, claim and complete", cost * 1e6, unit="µs", least=True, beside=first_cost, share_aim=AIM_FLAT)
        row(f"{held}, a claim, p50", median(spent) * 1000, unit="ms", least=True)
        self._start(held, server.start_seconds + first, records)
        row(f"{held}, memory a task", a_task, unit="B", least=True, aim=AIM_BYTES)

    def _start(self, held: str, seconds: float, records: int) -> None:
        """The time to the first answer; what is aimed for is for a million events."""
        aim = AIM_START_SECONDS if records >= 1_000_000 else None
        row(f"{held}, to the first answer", seconds, unit="s", least=True, aim=aim)

    def _head(self) -> int:
        with Bulk(self._folder / "data") as bulk:
            return bulk.store.head(bulk.topic).sequence

    async def _finish(self, count: int) -> None:
        """Every task is claimed and completed, many at once."""
        begun = time.perf_counter()
        with Bulk(self._folder / "data") as bulk:
            left = count
            while left:
                asked: Iterator[Asked] = ((ClaimNext(QUEUE, self._agent, 0, _AT_ONCE), ()) for _ in range(5))
                won = [
                    one.wire["payload"]["claim_id"]
                    for outcome in await bulk.do(asked)
                    for one in outcome.records
                    if one.wire["type"] == "task.claimed"
                ]
                await bulk.count((CompleteClaim(claim_id), ()) for claim_id in islice(won, left))
                left -= len(won)
            took = time.perf_counter() - begun
            # What ended in the last minute is still at hand; the record after it lets that go.
            await asyncio.sleep(TOMBSTONE_NANOSECONDS / SECOND)
            await bulk.count([bulk.task(QUEUE)])
        self._waiting -= count
        row(f"{count:,} tasks claimed and completed by one process", count / took)

    async def _finished_tasks(self, server: Served, size: int) -> None:
        first = await self._first_answer(server)
        a_task = (server.memory_bytes - self._empty_bytes) / size
        held, records = f"{size:,} finished tasks", self._head()
        row(f"{held}, events", records, unit="")
        self._start(held, server.start_seconds + first, records)
        row(f"{held}, memory a task", max(0.0, a_task), unit="B", least=True, aim=AIM_FINISHED_BYTES)
