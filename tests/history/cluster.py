"""Servers on one store that are killed and frozen under load, and the history of what their clients saw."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

from bench.connection import Connection, Reply, request
from tests.harness.acts import begin_queue, head, until
from tests.harness.load import QUEUE
from tests.harness.processes import Process, processes
from tests.harness.server import Server, begin

PATIENCE_SECONDS = 90.0
# How many acknowledged calls are sent once more at the end.
REPEATED = 200
# How many may be dead at once, where there are more than one.
_DEAD = 2


class Cluster:
    """Servers, each at its own address for good; one that was killed begins anew by itself."""

    def __init__(
        self,
        directory: Path,
        count: int,
        python: Sequence[str] = (sys.executable,),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`arguments` and `environment` are for every server, such as the address of a store."""
        self._directory, self._python = directory, python
        self._arguments, self._environment = arguments, environment
        # Kept open until the end, so that no other process gets the port of a server that is down.
        self._places = [_held_port() for _ in range(count)]
        self._ports = [place.getsockname()[1] for place in self._places]
        self._pool = ThreadPoolExecutor(count)
        self._starting: dict[int, Future[Server]] = {}
        self.servers: dict[int, Server] = {}
        self.places: list[str] = []

    def start(self) -> None:
        """Start all. The first one goes ahead: it makes the key that all are called with."""
        for numbers in (range(1), range(1, len(self._ports))):
            self._starting = {number: self._begin(number) for number in numbers}
            self.settle()
        self.places = [place for _, one in sorted(self.servers.items()) for place in (one.url, str(one.uds))]

    def _begin(self, number: int) -> Future[Server]:
        arguments = ("--port", str(self._ports[number]), "--uds", str(self._directory / f"s{number}"))
        return self._pool.submit(
            begin,
            self._directory,
            *arguments,
            *self._arguments,
            name=f"server{number}",
            python=self._python,
            environment=self._environment,
        )

    def settle(self, most: int = 0) -> None:
        """Wait until no more than so many servers are on their way up."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self._starting) > most:
            for number, starting in list(self._starting.items()):
                if starting.done():
                    self.servers[number] = self._starting.pop(number).result()
            assert time.monotonic() < deadline, "a server does not come back"
            time.sleep(0.005)

    def kill(self, random: Random) -> None:
        """End one without a word; it begins anew meanwhile."""
        self.settle(min(_DEAD, len(self._ports)) - 1)
        number = random.choice(sorted(self.servers))
        assert self.servers.pop(number).stop(signal.SIGKILL) == -signal.SIGKILL
        self._starting[number] = self._begin(number)

    def freeze(self, random: Random, seconds: float) -> None:
        """Stop one for a while, wherever it is, perhaps with the writer lock."""
        self.settle(max(0, len(self._ports) - 1))
        process = self.servers[random.choice(sorted(self.servers))].process
        process.send_signal(signal.SIGSTOP)
        try:
            # The length of the freeze is the fault itself: nothing is waited for.
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        for starting in self._starting.values():
            if starting.exception(PATIENCE_SECONDS) is None:
                self.servers[-len(self.servers) - 1] = starting.result()
        self._pool.shutdown()
        for server in self.servers.values():
            if server.process.poll() is None:
                server.process.kill()
            server.process.wait()
        for place in self._places:
            place.close()


def _held_port() -> socket.socket:
    """A socket that is bound to a free port and does not listen.

    A server can still listen on the port, because both set SO_REUSEADDR. The kernel does not give the port away to
    processes that ask for any free port.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@contextmanager
def cluster(directory: Path, count: int, **options: Any) -> Iterator[Cluster]:
    """Servers for the length of a block."""
    made = Cluster(directory, count, **options)
    try:
        made.start()
        yield made
    finally:
        made.end()


class Run:
    """What a run left: the history, the data directory, and which sequences a follower saw."""

    def __init__(self, directory: Path) -> None:
        self.history, self.data = directory / "history.jsonl", directory / "data"
        self.followed: list[int] = []
        self.head = 0

    def lines(self) -> list[str]:
        """Whole lines: who writes them may have been killed in the middle of one."""
        return self.history.read_text().rpartition("\n")[0].splitlines()

    def answers(self) -> int:
        return self.history.read_bytes().count(b'{"event": "ok"') if self.history.exists() else 0

    def told(self, status: str) -> int:
        """How often a claim was answered with this status."""
        answers = (json.loads(line) for line in self.lines() if line.startswith('{"event": "ok"'))
        return sum(json.loads(one["reply"]).get("status") == status for one in answers)


def run_faults(
    directory: Path,
    servers: int,
    faults: Sequence[str | Callable[[], None]],
    *,
    seed: int,
    workers: int = 8,
    calls: int = 60,
    every_seconds: float = 0,
    trouble: AbstractContextManager[None] | None = None,
    **options: Any,
) -> Run:
    """Load on the servers, and between answers one fault after the other (`kill`, `freeze`, or what a function does).

    `every_seconds` is the least time between two faults; `trouble` is entered while the load runs; `options` are those
    of the cluster.
    """
    random, run = Random(seed), Run(directory)
    with cluster(directory, servers, **options) as ours, processes() as running:
        first = ours.servers[0]
        with first.client() as client:
            begin_queue(client, QUEUE)
        running.append(Process("load", run.history, first.key, workers, seed, *ours.places))
        running.append(Process("follower", first.key, *(place for place in ours.places if place.startswith("http"))))
        load, follower = running
        for one in running:
            assert one.hear() == "ready"
        with trouble or nullcontext():
            for fault in faults:
                due = time.monotonic() + every_seconds
                # Somewhere in the work: after so many answers more, wherever the next ones stand then.
                enough = run.answers() + random.randint(5, calls)
                until(lambda enough=enough: run.answers() >= enough, PATIENCE_SECONDS)
                time.sleep(max(0.0, due - time.monotonic()))
                if callable(fault):
                    fault()
                elif fault == "kill":
                    ours.kill(random)
                else:
                    ours.freeze(random, random.uniform(0.05, 0.5))
            ours.settle()
            enough = run.answers() + 30
            until(lambda: run.answers() >= enough, PATIENCE_SECONDS)
            load.finish()
        asyncio.run(_ask_again(run, ours.places, first.key, random))
        with ours.servers[0].client() as client:
            run.head = head(client)
        follower.tell(str(run.head))
        run.followed = json.loads(follower.hear())
        for server in ours.servers.values():
            assert server.stop() == 0, server.logs()
    return run


def run_load(
    directory: Path, python: Sequence[str], *, answers: int, told: Mapping[str, int] | None = None, seed: int = 1
) -> Run:
    """Load on one server that may be broken, until it has answered so often, and so often with each status in `told`,
    or does not answer any more."""
    run, told = Run(directory), told or {}

    def is_enough() -> bool:
        return run.answers() >= answers and all(run.told(status) >= times for status, times in told.items())

    with cluster(directory, 1, python=python) as ours, processes() as running:
        with ours.servers[0].client() as client:
            begin_queue(client, QUEUE)
        load = Process("load", run.history, ours.servers[0].key, 8, seed, *ours.places)
        running.append(load)
        assert load.hear() == "ready"
        until(lambda: is_enough() or ours.servers[0].process.poll() is not None, PATIENCE_SECONDS)
    return run


async def _ask_again(run: Run, places: Sequence[str], key: str, random: Random) -> None:
    """Send acknowledged calls once more, and add what they are answered now to the history."""
    seen = [json.loads(line) for line in run.lines()]
    calls: dict[str, Any] = {one["key"]: one for one in seen if one["event"] == "invoke"}
    done = [one["key"] for one in seen if one["event"] == "ok" and one["status"] < 300 and '"eventId"' in one["reply"]]
    with run.history.open("a") as out:
        for name in random.sample(done, min(REPEATED, len(done))):
            call = calls[name]
            data = request("POST", call["path"], key, call["body"], idempotency_key=name)
            # A server that is busy has not answered.
            deadline = time.monotonic() + PATIENCE_SECONDS
            while (reply := await _reply_of(random.choice(places), data)).status == 503:
                assert time.monotonic() < deadline, reply.body
            again = {"event": "again", "key": name, "status": reply.status, "reply": reply.body.decode()}
            out.write(json.dumps(again) + "\n")


async def _reply_of(place: str, data: bytes) -> Reply:
    """Send a request on a connection of its own: a server closes those that are idle for long."""
    connection = await Connection.open(place)
    try:
        return await connection.send(data)
    finally:
        connection.close()
