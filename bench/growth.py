"""Growth: the cost of a claim, a start and memory with 1,000, 100,000 and 1,000,000 tasks, waiting and finished.

Tasks are added beside the server, as copies of one that went through the coordinator; then `redkey serve` starts on
them and is measured over HTTP. Claim costs are compared with those of the smallest size: 1.0 means no growth. With
500,000 waiting tasks there are a million events. A quick run ends at 100,000.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import uvloop

from bench import point, row
from bench.connection import Connection, request
from bench.copies import Copies, Mould
from bench.served import Served, redkey
from redkey.reducers.world import TOMBSTONE_NANOSECONDS

QUEUE = "queue_bench"
WAITING = (1_000, 100_000, 500_000, 1_000_000)
FINISHED = (1_000, 100_000, 1_000_000)
QUICK = 100_000
CLAIMS = 300
# The target for the start applies to this number of events.
EVENTS = 1_000_000
AIM_FLAT, AIM_START_SECONDS, AIM_BYTES, AIM_FINISHED_BYTES = 1.5, 5, 1024, 0
# It takes minutes, and measures sizes rather than rates.
ROUNDS = 1


def main(quick: bool) -> None:
    """Measure every size."""
    waiting, finished = ([size for size in sizes if size <= QUICK or not quick] for sizes in (WAITING, FINISHED))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_measure(waiting, finished))


async def _measure(waiting: list[int], finished: list[int]) -> None:
    """Waiting tasks grow in one directory, finished ones in another; the largest size uses one after the other."""
    with tempfile.TemporaryDirectory() as directory:
        small = await Growth.begin(Path(directory) / "finished")
        small.tell_of_nothing()
        for size in finished[:-1]:
            await small.finished(size)
        small.end()
        large = await Growth.begin(Path(directory) / "waiting")
        for size in waiting:
            await large.waiting(size)
        await large.finished(finished[-1])
        large.end()


class Growth:
    """A data directory that grows."""

    def __init__(self, folder: Path, copies: Copies, agent_id: str, empty: tuple[float, int]) -> None:
        self._folder, self._copies, self._agent_id = folder, copies, agent_id
        # For a server without tasks: seconds to its first answer, and its memory.
        self._empty_seconds, self._empty_bytes = empty
        self._waiting, self._finished = 0, 0
        # The cost of a claim at the smallest size.
        self._first_cost = 0.0

    @classmethod
    async def begin(cls, folder: Path) -> Growth:
        """Create an empty workspace, the base of all comparisons."""
        folder.mkdir()
        with redkey(folder) as server:
            connection = await Connection.open(server.url)
            await connection.call("POST", "/queues", server.key, {"id": QUEUE, "name": "Bench"})
            card = {"name": "bench", "description": "Works.", "url": "https://bench.example/a", "version": "1"}
            body = {"agentCard": {**card, "skills": [], "capabilities": {}}}
            agent_id = (await connection.call("POST", "/agents/register-card", server.key, body))["agentId"]
            connection.close()
        with redkey(folder) as server:
            empty = await _start_seconds(server), server.memory_bytes
        data = folder / "data"
        return cls(folder, Copies(data, await Mould.cast(data, QUEUE, agent_id)), agent_id, empty)

    def end(self) -> None:
        self._copies.close()

    def tell_of_nothing(self) -> None:
        row("an empty workspace, to the first answer", self._empty_seconds, unit="s", least=True)
        row("an empty workspace, memory", self._empty_bytes / 1e6, unit="MB", least=True)

    async def waiting(self, size: int) -> None:
        """Let `size` tasks wait, and measure."""
        self._fill(size - self._waiting)
        await self._tell("waiting", size, AIM_BYTES)

    async def finished(self, size: int) -> None:
        """Let `size` tasks be finished, and measure, with just enough waiting tasks to claim some."""
        missing = size - self._finished
        self._copies.fill(max(0, missing - self._waiting))
        self._copies.finish(missing)
        self._waiting, self._finished = max(0, self._waiting - missing), size
        self._fill(max(1, CLAIMS - self._waiting))
        await self._tell("finished", size, AIM_FINISHED_BYTES)

    def _fill(self, count: int) -> None:
        """Add waiting tasks; the last ones are added when all others are over a minute old, because a start reads the
        last minute of the ledger, and copies are created faster than real tasks."""
        self._copies.fill(count - 1)
        self._copies.skip(TOMBSTONE_NANOSECONDS)
        self._copies.fill(1)
        self._waiting += count

    async def _tell(self, kind: str, size: int, aim_bytes: int) -> None:
        held, events = f"{size:,} {kind} tasks", self._copies.head
        with redkey(self._folder) as server:
            seconds, memory_bytes = await _start_seconds(server), server.memory_bytes
            cost, p50 = await self._claim_cost(server)
        self._waiting, self._finished = self._waiting - CLAIMS, self._finished + CLAIMS
        self._first_cost = self._first_cost or cost
        a_task, microseconds = max(0, memory_bytes - self._empty_bytes) / size, cost * 1e6
        beside = self._first_cost * 1e6
        row(f"{held}, events", events, unit="")
        row(f"{held}, claim and complete", microseconds, unit="µs", least=True, beside=beside, share_aim=AIM_FLAT)
        row(f"{held}, a claim, p50", p50 * 1000, unit="ms", least=True)
        aim = AIM_START_SECONDS if events >= EVENTS else None
        row(f"{held}, to the first answer", seconds, unit="s", least=True, aim=aim)
        # The cost of a few tasks would be mostly the cost of the process itself.
        row(f"{held}, memory a task", a_task, unit="B", least=True, aim=aim_bytes if size >= QUICK else None)
        point("depth", f"{kind} tasks", size, microseconds)
        point("memory", f"{kind} tasks", size, memory_bytes / 2**20)

    async def _claim_cost(self, server: Served) -> tuple[float, float]:
        """Processor seconds of a claim and its completion, and the median time that claims wait."""
        connection = await Connection.open(server.url)
        claim = request("POST", f"/queues/{QUEUE}/claim-next", server.key, {"agentId": self._agent_id})
        spent, before = [], server.processor_seconds
        for _ in range(CLAIMS):
            begun = time.perf_counter()
            claimed = (await connection.send(claim)).json
            spent.append(time.perf_counter() - begun)
            assert claimed["status"] == "claimed", claimed
            # Complete the claims, because held claims would grow too.
            await connection.call("POST", f"/claims/{claimed['claimId']}/complete", server.key, {})
        cost = (server.processor_seconds - before) / CLAIMS
        connection.close()
        return cost, median(spent)


async def _start_seconds(server: Served) -> float:
    """From the start of the process to the first answer that needs the world."""
    connection = await Connection.open(server.url)
    begun = time.perf_counter()
    # An unknown agent asks for a task, so nothing is recorded.
    nobody = {"agentId": "agt_" + "0" * 26}
    await connection.send(request("POST", f"/queues/{QUEUE}/claim-next", server.key, nobody))
    connection.close()
    return server.start_seconds + time.perf_counter() - begun
