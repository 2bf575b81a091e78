"""The event loop of a server on PostgreSQL is never held up: not by round trips, not while the database is gone."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import sealed
from tests.harness.acts import begin_queue, claim, create_task, register, until
from tests.harness.client import Client
from tests.harness.postgres import cluster, database, promoted_copy
from tests.harness.postgres_proxy import Proxy
from tests.harness.server import Server, serving

pytestmark = pytest.mark.xdist_group("cluster")

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
WATCHED = str(Path(__file__).with_name("watched_server.py"))
ROUND_TRIP_SECONDS = 0.002
HELD_UP_MILLISECONDS = 50
CLIENTS, SECONDS, AWAY_SECONDS = (16, 10.0, 6.0) if LONG else (8, 2.0, 1.5)
CONFIG = "[rate]\nper_second = 100000\nburst = 200000\n"
PAGES = ("/agents", "/roles", "/queues", "/workflows", "/inbox", "/gates", "/usage", "/billing/credits", "/metrics")


# Two servers, their ways to the database, its name, and the file of the watch.
Watched = tuple[Server, Server, tuple[Proxy, Proxy], str, Path]


@contextmanager
def load(places: list[str], key: str) -> Iterator[list[int]]:
    """Clients that create, claim, complete and look, whatever they are answered; the statuses they got."""
    over, statuses = threading.Event(), list[int]()

    def work(number: int) -> None:
        with Client(places[number % len(places)], key, checked=False) as client:
            agent, round_ = register(client, f"W{number}")["agentId"], 0
            while not over.is_set():
                round_ += 1
                made = client.post("/queues/queue_load/tasks", {"title": f"T{round_}"})
                won = client.post("/queues/queue_load/claim-next", {"agentId": agent, "wait": 1})
                statuses.extend((made.status, won.status))
                if won.status == 200 and won.json["status"] == "claimed":
                    statuses.append(client.post(f"/claims/{won.json['claimId']}/complete", {"summary": "Done."}).status)
                statuses.append(client.get(PAGES[round_ % len(PAGES)]).status)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for one in threads:
        one.start()
    try:
        yield statuses
    finally:
        over.set()
        for one in threads:
            one.join(120)


def found(path: Path) -> dict[str, Any]:
    """What the watch of a server has written down, from now on."""
    before = path.read_text() if path.exists() else ""
    until(lambda: path.exists() and path.read_text() != before)
    told: dict[str, Any] = json.loads(path.read_text())
    return told


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Two servers on one database; the first is watched, and its round trips take longer. Also the database's name."""
    told = tmp_path / "watch.json"
    environment = sealed()
    with ExitStack() as stack:
        url = stack.enter_context(database())
        proxy = stack.enter_context(Proxy(cluster().socket))
        proxy.delay_seconds = ROUND_TRIP_SECONDS
        name = url.partition("@/")[2].partition("?")[0]
        straight = stack.enter_context(Proxy(cluster().socket))
        far, near = proxy.url(name), straight.url(name)
        first = stack.enter_context(
            serving(
                tmp_path,
                "--store",
                far,
                environment=environment,
                config=CONFIG,
                name="first",
                python=(sys.executable, WATCHED, str(told)),
            )
        )
        (tmp_path / "two").mkdir()
        second = stack.enter_context(
            serving(tmp_path / "two", "--store", near, environment=environment, config=CONFIG, name="second")
        )
        yield first, second, (proxy, straight), name, told


def test_the_loop_is_never_held_up(watched: Watched, record_property: Any) -> None:
    first, second, proxies, name, told = watched
    proxy = proxies[0]
    with first.client() as client:
        begin_queue(client, "queue_load")
        agent = register(client, "Seen")["agentId"]
        task = create_task(client, "queue_load")
        event = claim(client, task, agent)["eventId"]
        for path in (f"/tasks/{task}", f"/agents/{agent}", f"/events/{event}/receipt", "/checkpoints/latest"):
            assert client.get(path).status == 200
        with load([first.url, first.url, second.url], first.key) as statuses:
            until(lambda: len(statuses) > 50)
            # What is measured is the load itself: nothing is waited for.
            time.sleep(SECONDS)
            # The database is gone for a while: everybody is told so, and nobody waits for anybody else.
            proxy.closed = True
            proxy.cut_all()
            until(lambda: 503 in statuses)
            time.sleep(AWAY_SECONDS)
            began = time.monotonic()
            assert client.get("/healthz").status == 200
            healthy = time.monotonic() - began
            proxy.closed = False
            until(lambda: client.get("/queues").status == 200)
            after = len(statuses)
            until(lambda: statuses[after:].count(201) > 3)
            # A failover: a replica is promoted. Writes wait until both servers have confirmed that nothing is missing.
            for one in proxies:
                one.closed = True
                one.cut_all()
            with promoted_copy(cluster()) as promoted:
                for one in proxies:
                    one.target, one.closed = promoted.socket, False
                after = len(statuses)
                until(lambda: statuses[after:].count(201) > 3)
                timeline = "SELECT value FROM redkey.setting WHERE name = 'timeline'"
                assert promoted.execute(timeline, database=name) == [("2",)]
                watch = found(told)
    assert watch["places"] == {}, "the store was read on the event loop"
    assert watch["milliseconds"] < HELD_UP_MILLISECONDS, watch["where"]
    assert healthy < 1
    record_property(
        "proven",
        f"event loop: {ROUND_TRIP_SECONDS * 1000:g} ms a round trip, {CLIENTS} clients, {len(statuses):,} answers, "
        f"the database gone for {AWAY_SECONDS:g} s, then failed over: never held up for "
        f"{max(40.0, watch['milliseconds'])} ms",
    )
