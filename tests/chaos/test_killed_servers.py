"""kill -9 of servers under load: no acknowledged call is lost, and the data directory is whole whatever it hit.

The load is a process of its own that writes down every answer it got. A killed server begins anew on the same data.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.connection import Connection, request
from redkey.stores.sqlite import SqliteStore
from tests import invariants
from tests.api.acts import begin_queue, head, until
from tests.api.server import Server, begin
from tests.chaos.load import QUEUE
from tests.chaos.processes import Process, processes
from tests.chaos.told import acknowledged, hold_against, read_log

WORKERS = 8
SEED = 4
REPEATED = 300


class Cluster:
    """Servers on one data directory that can be killed, each at its own address for good."""

    def __init__(self, directory: Path, count: int) -> None:
        self._directory = directory
        self._ports = _free_ports(count)
        self.servers = [self._begin(number) for number in range(count)]
        self.places = [place for one in self.servers for place in (one.url, str(one.uds))]

    def _begin(self, number: int) -> Server:
        uds = self._directory / f"s{number}"
        # What a killed server leaves of its socket is taken away by the next.
        return begin(self._directory, "--port", str(self._ports[number]), "--uds", str(uds), name=f"server{number}")

    def kill(self, number: int) -> None:
        """End one without a word, and begin it anew."""
        assert self.servers[number].stop(signal.SIGKILL) == -signal.SIGKILL
        self.servers[number] = self._begin(number)

    def end(self) -> None:
        for server in self.servers:
            if server.process.poll() is None:
                server.process.kill()
            server.process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def cluster(directory: Path, count: int) -> Iterator[Cluster]:
    made = Cluster(directory, count)
    try:
        yield made
    finally:
        made.end()


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n")


@pytest.mark.parametrize(("servers", "kills"), [(1, 30), (2, 6)])
def test_no_acknowledged_call_is_lost_when_servers_are_killed_under_load(
    tmp_path: Path, servers: int, kills: int, record_property: Any
) -> None:
    random, log = Random(SEED), tmp_path / "load.jsonl"
    with cluster(tmp_path, servers) as ours, processes() as running:
        first = ours.servers[0]
        with first.client() as client:
            begin_queue(client, QUEUE)
        running.append(Process("load", log, first.key, WORKERS, SEED, *ours.places))
        running.append(Process("follower", first.key, *(server.url for server in ours.servers)))
        load, follower = running
        for one in running:
            assert one.hear() == "ready"
        for _ in range(kills):
            # Somewhere in the work: after so many answers more, wherever the next ones stand then.
            enough = _lines(log) + random.randint(10, 120)
            until(lambda enough=enough: _lines(log) >= enough, 60)
            ours.kill(random.randrange(servers))
        enough = _lines(log) + 50
        until(lambda: _lines(log) >= enough, 60)
        load.finish()
        lines = read_log(log)
        asyncio.run(_ask_again(ours, acknowledged(lines), random))
        with ours.servers[-1].client() as client:
            last = head(client)
        follower.tell(str(last))
        seen = json.loads(follower.hear())
        for server in ours.servers:
            assert server.stop() == 0, server.logs()
    _is_whole(first.data)
    with SqliteStore(first.data, create=False) as store:
        topic = store.topics()[0]
        wires = invariants.check_topic(store, topic)
        held = hold_against(lines, wires)
        invariants.follower_saw_everything(seen[:last], last)
        invariants.no_secrets(invariants.read_all(store, topic), [first.key.rpartition("_")[2].encode()])
    retried = sum(line["tries"] > 1 for line in lines)
    assert retried >= kills / 2, "the kills hit no call"
    record_property("proven", f"{kills} kills of {servers}: {held} calls, {retried} sent again, {len(wires)} records")


async def _ask_again(ours: Cluster, lines: list[dict[str, Any]], random: Random) -> None:
    """Whatever was acknowledged, before whichever kill, is answered again with the same bytes."""
    connections = [await Connection.open(place) for place in ours.places]
    key = ours.servers[0].key
    try:
        for line in random.sample(lines, min(REPEATED, len(lines))):
            data = request("POST", line["path"], key, line["body"], idempotency_key=line["key"])
            reply = await random.choice(connections).send(data)
            assert (reply.status, reply.body.decode()) == (line["status"], line["reply"]), line["path"]
    finally:
        for connection in connections:
            connection.close()


def _is_whole(data: Path) -> None:
    """The checks that an operator has."""
    for command in (["fsck", str(data)], ["usage", "reconcile", "--data", str(data)]):
        done = subprocess.run(
            [sys.executable, "-m", "redkey", *command], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 differences" in done.stdout
