"""Servers that fall behind: one that follows, one that is stopped, one that was away for long."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2
import psycopg
import pytest

from tests.cluster.conftest import Pair, sealed
from tests.harness.acts import begin_queue, create_task, head, register, until
from tests.harness.postgres import database
from tests.harness.server import Server, serving

pytestmark = pytest.mark.xdist_group("cluster")

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
FOLLOWED = 1000 if LONG else 100
FOLLOW_SECONDS = 0.05
STOP_SECONDS = 6.0
AWAY, AWAY_SECONDS = (100_000, 4.0) if LONG else (10_000, 4.0)
BATCH = 100
CONFIG = "[rate]\nper_second = 100000\nburst = 1000000\n[cost]\nper_second = 100000\nburst = 1000000\n"


class Follower:
    """A thread that follows the tasks that a server shows, and notes when each arrived."""

    def __init__(self, server: Server) -> None:
        self._server, self.seen = server, dict[str, float]()
        self.begun, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._follow)
        self.thread.start()

    def _follow(self) -> None:
        headers = {"authorization": f"Bearer {self._server.key}"}
        url = f"{self._server.url}/stream?types=task.created"
        with httpx2.stream("GET", url, headers=headers, timeout=60) as stream:
            self.begun.set()
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    task = line.partition('"taskId":"')[2].partition('"')[0]
                    self.seen[task] = time.monotonic()
                    if self.over.is_set() and len(self.seen) >= FOLLOWED:
                        return

    def late(self, answered: dict[str, float]) -> tuple[float, float]:
        """Wait for all tasks; the median and the 99th percentile of how late they came after the answer."""
        self.thread.join(60)
        assert not self.thread.is_alive(), f"{len(self.seen)} of {FOLLOWED} events came"
        found = quantiles((self.seen[task] - at for task, at in answered.items()), n=100)
        return found[49], found[98]


def test_a_follower_on_another_server_sees_records_soon(pair: Pair, record_property: Any) -> None:
    """From the answer to the caller at one server to the event at a follower of the other."""
    own, other = Follower(pair.one), Follower(pair.two)
    for follower in (own, other):
        assert follower.begun.wait(60)
    answered: dict[str, float] = {}
    with pair.one.client() as client:
        queue = begin_queue(client, "queue_soon")
        while len(answered) < FOLLOWED:
            if len(answered) == FOLLOWED - 1:
                own.over.set()
                other.over.set()
            task = create_task(client, queue)
            answered[task] = time.monotonic()
    (own_p50, _), (p50, p99) = own.late(answered), other.late(answered)
    record_property(
        "proven",
        f"a follower on another server: {FOLLOWED} records, p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms; on the "
        f"same server p50 {own_p50 * 1000:.1f} ms; load {os.getloadavg()[0]:.1f}",
    )
    # A busy machine delays both followers alike, and its tail is its own: the large size is for a quiet one.
    assert (p99 if LONG else p50 - own_p50) < FOLLOW_SECONDS


@contextmanager
def stopped_in_a_unit(server: Server, url: str, queue: str) -> Iterator[None]:
    """Stop a server while PostgreSQL has a transaction of it open that holds the lock of a topic."""
    over = threading.Event()

    def write() -> None:
        with server.client() as client:
            while not over.is_set():
                assert client.post(f"/queues/{queue}/tasks", {"title": "Under load"}).status in (201, 503)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        with psycopg.connect(url, autocommit=True) as connection:

            def is_inside() -> bool:
                return bool(
                    connection.execute(
                        "SELECT 1 FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE a.datname = "
                        "current_database() AND a.application_name = 'stopped' AND a.xact_start IS NOT NULL "
                        "AND l.relation = 'redkey.topic'::regclass AND l.mode = 'RowShareLock'"
                    ).fetchall()
                )

            for _ in range(10_000):
                server.process.send_signal(signal.SIGSTOP)
                until(lambda: Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
                # What was on its way when it was stopped comes to its end at once; what stays waits for the server.
                if is_inside() and all(is_inside() for _ in range(20)):
                    break
                server.process.send_signal(signal.SIGCONT)
            else:
                raise AssertionError("the server was never stopped inside a unit")
        yield
    finally:
        over.set()
        server.process.send_signal(signal.SIGCONT)
        for writer in writers:
            writer.join()


def test_a_server_that_is_stopped_inside_a_unit_delays_others_by_six_seconds_at_most(
    tmp_path: Path, record_property: Any
) -> None:
    environment = sealed()
    with database() as url:
        (tmp_path / "other").mkdir()
        with (
            serving(tmp_path, "--store", f"{url}&application_name=stopped", environment=environment) as stopped,
            serving(tmp_path / "other", "--store", url, environment=environment) as other,
            other.client() as client,
        ):
            queue = begin_queue(client)
            with stopped_in_a_unit(stopped, url, queue):
                began = time.monotonic()
                reply = client.post(f"/queues/{queue}/tasks", {"title": "Waits"})
                while reply.status == 503 and time.monotonic() - began < STOP_SECONDS:
                    # A caller may be told to come back; what counts is when the task is there.
                    reply = client.post(f"/queues/{queue}/tasks", {"title": "Waits"})
                assert reply.status == 201, reply.text
                waited = time.monotonic() - began
            # It goes on as if nothing had been.
            with stopped.client() as again:
                create_task(again, queue)
                assert head(again) == head(client)
    assert waited < STOP_SECONDS
    record_property("proven", f"a server stopped inside a unit delayed another one by {waited:.1f} s")


def test_a_server_that_was_away_for_long_answers_soon(tmp_path: Path, record_property: Any) -> None:
    environment = sealed()
    with database() as url:
        (tmp_path / "other").mkdir()
        with (
            serving(tmp_path, "--store", url, environment=environment, config=CONFIG) as away,
            serving(tmp_path / "other", "--store", url, environment=environment, config=CONFIG) as other,
            other.client() as client,
            away.client() as late,
        ):
            queue = begin_queue(client, "queue_many")
            agent = register(client, "Late")["agentId"]
            # It knows the workspace, and follows it.
            first = create_task(late, queue)
            # The other server may hold the lock for a moment; a caller is told to come back.
            until(lambda: late.post(f"/tasks/{first}/claim", {"agentId": agent}).status == 200)
            begun = head(client)
            away.process.send_signal(signal.SIGSTOP)
            tasks = [{"title": f"T{number}"} for number in range(BATCH)]
            while head(client) < begun + AWAY:
                made = client.post(f"/queues/{queue}/tasks/batch", {"tasks": tasks})
                assert made.status == 200, made.text
            away.process.send_signal(signal.SIGCONT)
            began = time.monotonic()
            won = late.post(f"/queues/{queue}/claim-next", {"agentId": agent, "leaseSeconds": 60})
            waited = time.monotonic() - began
            assert won.json["status"] == "claimed", won.text
            missed = head(client) - begun
    record_property("proven", f"a server that was away for {missed:,} records claimed after {waited:.2f} s")
    assert waited < AWAY_SECONDS
