"""Coordination over HTTP: cycles of create, claim, complete; batches; waiting workers; followers; two processes.

The server is one `redkey serve` process with its durable store, the load is this process. One operation a request,
every answer durable, every worker with an agent and a key of its own. The yardstick is the same host around an
application that echoes bodies, measured right before: shares of it mean the same on every machine.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import uvloop

from bench import row
from bench.connection import Connection, request
from bench.served import Served, echo, redkey

QUEUE = "queue_bench"
TASK = {"title": "Research a guest", "input": {"guest": "x" * 256}}
CONNECTIONS = (1, 8, 32, 64)
BATCH = 100
FOLLOWERS = 1000
AIM_CYCLES, AIM_SHARE, AIM_WAKE_MS = 3000, 0.35, 5


def main(quick: bool) -> None:
    """Measure everything; `quick` takes shorter rounds and fewer followers."""
    seconds = 1.0 if quick else 2.5
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_measure(seconds, FOLLOWERS // 10 if quick else FOLLOWERS))


async def _measure(seconds: float, followers: int) -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        folder = Path(directory)
        with echo(folder) as bare:
            yardstick = await _echo(bare, seconds)
        server = stack.enter_context(redkey(folder))
        office = await Office.open(server)
        alone = await _cycles(office, server, seconds, yardstick)
        await _batches(office, server, seconds, alone)
        await _wakes(office, 50 if seconds < 2 else 200)
        await _followers(office, followers, seconds)
        other = stack.enter_context(redkey(folder, "other"))
        await _two(office, Office(other, office.key), seconds, alone)


class Worker:
    """An agent with its key, on a connection of its own."""

    def __init__(self, connection: Connection, agent: str, admin: str, key: str) -> None:
        self.connection, self.agent, self.key = connection, agent, key
        # The same bytes every time: the client costs as little as it can.
        self._create = request("POST", f"/queues/{QUEUE}/tasks", admin, TASK)
        self._claim = request("POST", f"/queues/{QUEUE}/claim-next", key, {"agentId": agent, "wait": 30})

    async def cycle(self, spent: list[float]) -> None:
        """Create a task, claim the next, complete it; the time of each request."""
        clock = time.perf_counter
        begun = clock()
        created = await self.connection.send(self._create)
        made = clock()
        claimed = await self.connection.send(self._claim)
        won = clock()
        complete = request("POST", f"/claims/{claimed.json['claimId']}/complete", self.key, b"{}")
        done = await self.connection.send(complete)
        if (created.status, claimed.status, done.status) != (201, 200, 200):
            raise RuntimeError(f"{created} {claimed} {done}")
        spent += (made - begun, won - made, clock() - won)


class Office:
    """A server with a queue, and workers that are hired when they are needed."""

    def __init__(self, server: Served, key: str) -> None:
        self.server, self.key = server, key
        self._workers: list[Worker] = []

    @classmethod
    async def open(cls, server: Served) -> Office:
        office = cls(server, server.key)
        admin = await Connection.open(server.url)
        await admin.call("POST", "/queues", office.key, {"id": QUEUE, "name": "Bench"})
        admin.close()
        return office

    async def workers(self, count: int) -> list[Worker]:
        """So many workers, hired now or before."""
        while len(self._workers) < count:
            connection = await Connection.open(self.server.url)
            card = {"name": "bench", "description": "Works.", "url": "https://bench.example/a", "version": "1"}
            body = {"agentCard": {**card, "skills": [], "capabilities": {}}, "issueKey": True}
            made = await connection.call("POST", "/agents/register-card", self.key, body)
            self._workers.append(Worker(connection, made["agentId"], self.key, made["apiKey"]))
        return self._workers[:count]


async def _during(seconds: float, works: list[Callable[[list[float]], Awaitable[None]]]) -> tuple[float, list[float]]:
    """Let everybody work again and again: rounds a second, and the time that each request took."""
    spent: list[float] = []
    rounds = 0
    end = time.perf_counter() + seconds

    async def repeat(work: Callable[[list[float]], Awaitable[None]]) -> None:
        nonlocal rounds
        while time.perf_counter() < end:
            await work(spent)
            rounds += 1

    begun = time.perf_counter()
    await asyncio.gather(*(repeat(work) for work in works))
    return rounds / (time.perf_counter() - begun), spent


async def _echo(server: Served, seconds: float) -> float:
    """Requests a second of a host with nothing behind it, at the number of connections that serves it best."""
    data = request("POST", f"/queues/{QUEUE}/tasks", server.key, TASK)
    best = 0.0
    for count in (32, 64):
        connections = [await Connection.open(server.url) for _ in range(count)]

        def asking(connection: Connection) -> Callable[[list[float]], Awaitable[None]]:
            async def ask(spent: list[float]) -> None:
                await connection.send(data)

            return ask

        best = max(best, (await _during(seconds, [asking(one) for one in connections]))[0])
        for connection in connections:
            connection.close()
    row("bare echo behind the same host, requests", best)
    return best


async def _cycles(office: Office, server: Served, seconds: float, yardstick: float) -> float:
    """Cycles a second at each number of connections; the figure of 32."""
    at_32 = 0.0
    for count in CONNECTIONS:
        workers = await office.workers(count)
        await _during(0.2, [worker.cycle for worker in workers])
        before = server.processor_seconds
        rate, spent = await _during(seconds, [worker.cycle for worker in workers])
        # Of the processor a cycle: what others on the machine do counts little here.
        cost = (server.processor_seconds - before) / max(1, len(spent) / 3)
        aims = {"aim": AIM_CYCLES, "share_aim": AIM_SHARE} if count == 32 else {}
        # Three requests a cycle, beside as many of the echo.
        row(f"cycles, {count} connections", rate, beside=yardstick / 3, **aims)
        _times(f"a request at {count} connections", spent)
        row(f"the server's processor a cycle, {count} connections", cost * 1e6, unit="µs", least=True)
        at_32 = rate if count == 32 else at_32
    return at_32


def _times(what: str, spent: list[float], aim: float | None = None) -> None:
    """The middle and the slow end of what requests took."""
    cuts = quantiles(spent, n=100) if len(spent) > 1 else spent * 99
    row(f"{what}, p50", cuts[49] * 1000, unit="ms", least=True, aim=aim)
    row(f"{what}, p99", cuts[98] * 1000, unit="ms", least=True)


async def _batches(office: Office, server: Served, seconds: float, alone: float) -> None:
    """Tasks a second when each request carries many."""
    workers = await office.workers(8)
    tasks = {"tasks": [TASK] * BATCH}

    def batches(worker: Worker) -> Callable[[list[float]], Awaitable[None]]:
        async def batch(spent: list[float]) -> None:
            call = worker.connection.call
            await call("POST", f"/queues/{QUEUE}/tasks/batch", office.key, tasks)
            body = {"agentId": worker.agent, "count": BATCH}
            claims: list[Any] = []
            while len(claims) < BATCH:
                claims += (await call("POST", f"/queues/{QUEUE}/claim-next", worker.key, body)).get("claims", [])
            done = [{"claimId": claim["claimId"]} for claim in claims]
            await call("POST", "/claims/complete", worker.key, {"claims": done})

        return batch

    rate, _ = await _during(seconds, [batches(worker) for worker in workers])
    row(f"tasks, {BATCH} a request, 8 connections", rate * BATCH, beside=alone)


async def _wakes(office: Office, count: int) -> None:
    """From sending a task to the claim of a worker that waited for one."""
    worker, producer = await office.workers(2)
    claim = request("POST", f"/queues/{QUEUE}/claim-next", worker.key, {"agentId": worker.agent, "wait": 30})
    create = request("POST", f"/queues/{QUEUE}/tasks", office.key, TASK)
    spent: list[float] = []
    watch = await Connection.open(office.server.url)
    for _ in range(count):
        waiting = worker.connection.send(claim)
        while not await _waits(watch):
            await asyncio.sleep(0)
        begun = time.perf_counter()
        producer.connection.send(create)
        claimed = (await waiting).json
        spent.append(time.perf_counter() - begun)
        await worker.connection.call("POST", f"/claims/{claimed['claimId']}/complete", worker.key, {})
    watch.close()
    _times("from a task to the claim of who waited", spent, AIM_WAKE_MS)


async def _waits(connection: Connection) -> bool:
    """True once somebody waits for a task, as the server's own figures say."""
    reply = await connection.send(request("GET", "/metrics", ""))
    return b"\nredkey_waiting 1.0" in reply.body


class Follower(asyncio.Protocol):
    """Counts the events of a stream that come."""

    def __init__(self, heard: Callable[[], None]) -> None:
        self._heard, self.count = heard, 0

    def data_received(self, data: bytes) -> None:
        found = data.count(b"\ndata:") or data.startswith(b"data:")
        if found:
            self.count += int(found)
            self._heard()


async def _followers(office: Office, count: int, seconds: float) -> None:
    """How long until everybody who follows has an event; what following costs those who work."""
    loop = asyncio.get_running_loop()
    workers = await office.workers(8)
    host, _, port = office.server.url.removeprefix("http://").rpartition(":")
    beat = asyncio.Event()
    followers: list[Follower] = []
    transports = []
    ask = request("GET", "/stream?types=queue.created", office.key)
    for _ in range(count):
        transport, follower = await loop.create_connection(lambda: Follower(beat.set), host, int(port))
        transport.write(ask)
        transports.append(transport)
        followers.append(follower)
    watch = await Connection.open(office.server.url)
    wanted = f"\nredkey_subscribers {float(count)}".encode()
    while wanted not in (await watch.send(request("GET", "/metrics", ""))).body:
        await asyncio.sleep(0.01)
    spent: list[float] = []
    for number in range(10):
        begun = time.perf_counter()
        await watch.call("POST", "/queues", office.key, {"id": f"queue_f{number}", "name": "Followed"})
        while any(follower.count <= number for follower in followers):
            beat.clear()
            await beat.wait()
        spent.append(time.perf_counter() - begun)
    row(f"{count:,} followers all have an event, p50", median(spent) * 1000, unit="ms", least=True)
    busy, _ = await _during(seconds, [worker.cycle for worker in workers])
    for transport in transports:
        transport.abort()
    while b"\nredkey_subscribers 0.0" not in (await watch.send(request("GET", "/metrics", ""))).body:
        await asyncio.sleep(0.01)
    watch.close()
    quiet, _ = await _during(seconds, [worker.cycle for worker in workers])
    row(f"cycles, 8 connections, {count:,} follow others", busy, beside=quiet)


async def _two(office: Office, other: Office, seconds: float, alone: float) -> None:
    """Two server processes on one data directory, 16 connections each; beside one process with 32."""
    first = [worker.cycle for worker in await office.workers(16)]
    second = [worker.cycle for worker in await other.workers(16)]
    await _during(0.2, [*first, *second])
    (one, here), (two, there) = await asyncio.gather(_during(seconds, first), _during(seconds, second))
    row("cycles, two processes on one file, 32 connections", one + two, beside=alone)
    _times("a request to one of two processes", here + there)
    row("requests of the slower process, beside all", min(len(here), len(there)), unit="", beside=len(here + there))
