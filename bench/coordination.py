"""Coordination over HTTP: cycles of create, claim, complete; batches; waiting workers; followers; two processes.

The server is one `redkey serve` process with its durable store, the load is this process (see `load` and `crew`). One
operation per request, every answer durable. The yardstick is the same host around an application that echoes bodies,
measured in alternation with the cycles: shares of it mean the same on every machine.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import uvloop

from bench import row
from bench.connection import Connection, request
from bench.crew import BATCH, QUEUE, Agent, Crew, echo_lanes
from bench.load import Load, Work, drive, milliseconds
from bench.served import Served, echo, plain_echo, redkey

CONNECTIONS = (1, 8, 32, 64)
ECHO_CONNECTIONS = 32
FOLLOWERS = 1000
AIM_CYCLES, AIM_SHARE, AIM_WAKE_MS, AIM_CLIENT = 3000, 0.35, 5, 150
WARM_SECONDS = 0.2


def main(quick: bool) -> None:
    """Measure everything; `quick` runs shorter rounds and fewer followers."""
    seconds = 1.0 if quick else 2.5
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        folder = Path(directory)
        bare, plain = stack.enter_context(echo(folder)), stack.enter_context(plain_echo(folder))
        server = stack.enter_context(redkey(folder))
        crew = Crew(server)
        _echoes(bare, plain, seconds)
        alone = _cycles(crew, server, bare, seconds)
        row(f"tasks, {BATCH} a request, 8 connections", _batches(crew, seconds), beside=alone)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_wakes(crew, 50 if quick else 200))
            runner.run(_followers(crew, FOLLOWERS // 10 if quick else FOLLOWERS, seconds))
        other = stack.enter_context(redkey(folder, "other"))
        _two(crew, Crew(other), seconds, alone)


def _drive(crew: Crew, count: int, work: Callable[[Agent], Callable[[], Work]], seconds: float) -> Load:
    """Warm up, then let this many agents work."""
    with crew.lanes(count, work) as lanes:
        drive(lanes, WARM_SECONDS)
        return drive(lanes, seconds)


def _echo(server: Served, seconds: float) -> tuple[float, float]:
    """Requests per second of a server that echoes, and its processor time per request in microseconds."""
    with echo_lanes(server, ECHO_CONNECTIONS) as lanes:
        drive(lanes, WARM_SECONDS)
        before = server.processor_seconds
        load = drive(lanes, seconds)
        return load.rate, (server.processor_seconds - before) / len(load.works) * 1e6


def _echoes(bare: Served, plain: Served, seconds: float) -> None:
    """The cost of our connection per request, compared with a plain httptools protocol."""
    (_, ours), (_, least) = (_echo(server, seconds / 2) for server in (bare, plain))
    row("echo by a plain httptools protocol, processor", least, unit="µs", least=True)
    row("echo by our connection, processor", ours, unit="µs", beside=least, least=True)


def _cycles(crew: Crew, server: Served, bare: Served, seconds: float) -> float:
    """Cycles per second at each number of connections; return the figure for 32."""
    at_32 = 0.0
    for count in CONNECTIONS:
        yardstick, _ = _echo(bare, seconds / 4)
        with crew.lanes(count, lambda agent: agent.cycle) as lanes:
            drive(lanes, WARM_SECONDS)
            before = server.processor_seconds
            load = drive(lanes, seconds)
        # Processor time per cycle: other processes on the machine hardly affect it.
        cost = (server.processor_seconds - before) / len(load.works)
        aims = {"aim": AIM_CYCLES, "share_aim": AIM_SHARE} if count == 32 else {}
        # A cycle is three requests, so compare it with three requests of the echo.
        row(f"cycles, {count} connections", load.rate, beside=yardstick / 3, **aims)
        _times(f"a request at {count} connections", load.requests)
        row(f"the server's processor a cycle, {count} connections", cost * 1e6, unit="µs", least=True)
        if count == 32:
            row("the client's processor a cycle", load.client_microseconds, unit="µs", aim=AIM_CLIENT, least=True)
            at_32 = load.rate
    return at_32


def _times(what: str, spent: list[float], aim: float | None = None) -> None:
    """Report the median and the slow end of request times."""
    row(f"{what}, p50", milliseconds(spent, 50), unit="ms", least=True, aim=aim)
    row(f"{what}, p99", milliseconds(spent, 99), unit="ms", least=True)


def _batches(crew: Crew, seconds: float) -> float:
    """Tasks per second when each request carries many."""
    return _drive(crew, 8, lambda agent: agent.batch, seconds).rate * BATCH


async def _wakes(crew: Crew, count: int) -> None:
    """The time from creating a task to the claim of a worker that waited for one."""
    agent, url = crew.hire(1)[0], crew.site.url
    claim = request("POST", f"/queues/{QUEUE}/claim-next", agent.key, {"agentId": agent.agent_id, "wait": 30})
    create = request("POST", f"/queues/{QUEUE}/tasks", crew.site.key, crew.task)
    spent: list[float] = []
    worker, producer, watch = [await Connection.open(url) for _ in range(3)]
    for _ in range(count):
        waiting = worker.send(claim)
        while not await _waits(watch):
            await asyncio.sleep(0)
        begun = time.perf_counter()
        producer.send(create)
        claimed = (await waiting).json
        spent.append(time.perf_counter() - begun)
        await worker.call("POST", f"/claims/{claimed['claimId']}/complete", agent.key, {})
    for connection in (worker, producer, watch):
        connection.close()
    _times("from a task to the claim of who waited", spent, AIM_WAKE_MS)


async def _waits(connection: Connection) -> bool:
    """True once a worker waits for a task, according to the server's metrics."""
    reply = await connection.send(request("GET", "/metrics", ""))
    return b"\nredkey_waiting 1.0" in reply.body


class Follower(asyncio.Protocol):
    """Counts the events that arrive on a stream."""

    def __init__(self, heard: Callable[[], None]) -> None:
        self._heard, self.count = heard, 0

    def data_received(self, data: bytes) -> None:
        found = data.count(b"\ndata:") or data.startswith(b"data:")
        if found:
            self.count += int(found)
            self._heard()


async def _followers(crew: Crew, count: int, seconds: float) -> None:
    """How long until all followers have an event, and what following costs the workers."""
    loop = asyncio.get_running_loop()
    beat = asyncio.Event()
    followers: list[Follower] = []
    transports = []
    ask = request("GET", "/stream?types=queue.created", crew.site.key)
    for _ in range(count):
        transport, follower = await loop.create_connection(lambda: Follower(beat.set), *crew.site.place)
        transport.write(ask)
        transports.append(transport)
        followers.append(follower)
    watch = await Connection.open(crew.site.url)
    wanted = f"\nredkey_subscribers {float(count)}".encode()
    while wanted not in (await watch.send(request("GET", "/metrics", ""))).body:
        await asyncio.sleep(0.01)
    spent: list[float] = []
    for number in range(10):
        begun = time.perf_counter()
        await watch.call("POST", "/queues", crew.site.key, {"id": f"queue_f{number}", "name": "Followed"})
        while any(follower.count <= number for follower in followers):
            beat.clear()
            await beat.wait()
        spent.append(time.perf_counter() - begun)
    row(f"{count:,} followers all have an event, p50", median(spent) * 1000, unit="ms", least=True)
    # The followers get no events of these cycles, so the loop that serves them may block meanwhile.
    busy = _drive(crew, 8, lambda agent: agent.cycle, seconds).rate
    for transport in transports:
        transport.abort()
    while b"\nredkey_subscribers 0.0" not in (await watch.send(request("GET", "/metrics", ""))).body:
        await asyncio.sleep(0.01)
    watch.close()
    quiet = _drive(crew, 8, lambda agent: agent.cycle, seconds).rate
    row(f"cycles, 8 connections, {count:,} follow others", busy, beside=quiet)


def _two(crew: Crew, other: Crew, seconds: float, alone: float) -> None:
    """Two server processes on one data directory, 16 connections each; compared with one process with 32."""
    with ExitStack() as stack:
        here, there = [stack.enter_context(one.lanes(16, lambda agent: agent.cycle)) for one in (crew, other)]
        drive([*here, *there], WARM_SECONDS)
        for lane in (*here, *there):
            lane.requests = 0
        load = drive([*here, *there], seconds)
        slower = min(sum(lane.requests for lane in lanes) for lanes in (here, there))
    row("cycles, two processes on one file, 32 connections", load.rate, beside=alone, share_aim=1)
    _times("a request to one of two processes", load.requests)
    row("requests of the slower process, beside all", slower, unit="", beside=len(load.requests))
