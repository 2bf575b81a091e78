"""Two servers on one ledger run one workflow with workers on both; one server is killed, and the workflow finishes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import httpx2

from redkey.ledger.ports import Reader
from redkey.stores.sqlite import SqliteStore
from tests.harness.acts import CARD, begin_queue, until
from tests.harness.invariants import check_topic
from tests.harness.runs import plan_of, step
from tests.harness.server import Server

LEVELS, WIDTH, WORKERS = 6, 6, 3


def plan() -> dict[str, Any]:
    """Return a plan with levels of tasks, each waiting for the whole level before, with short leases."""
    tasks = []
    for level in range(LEVELS):
        above = [f"t{level - 1}-{place}" for place in range(WIDTH)] if level else []
        tasks += [step(f"t{level}-{place}", *above, leaseSeconds=5) for place in range(WIDTH)]
    return plan_of(*tasks, parallel=WIDTH, attempts=3, on_failure="reopen")


class Worker(threading.Thread):
    """Claims and completes tasks on one server until it must stop or the server has ended."""

    def __init__(self, url: str, key: str, agent: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._http = httpx2.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=30)
        self._agent, self._stopping = agent, stop
        self.completed = 0

    def run(self) -> None:
        try:
            with self._http:
                while not self._stopping.is_set():
                    self._work()
        except httpx2.HTTPError:
            return

    def _work(self) -> None:
        claimed = self._http.post("/queues/work/claim-next", json={"agentId": self._agent, "wait": 1}).json()
        if claimed.get("status") == "claimed":
            ended = self._http.post(f"/claims/{claimed['claimId']}/complete", json={})
            self.completed += ended.status_code == 200


def test_a_workflow_finishes_when_one_of_two_servers_is_killed(start: Callable[..., Server]) -> None:
    first, second = start(name="first"), start(name="second")
    admin = second.client()
    begin_queue(admin, "queue_work")
    run = admin.post("/workflows", {"queueId": "work", "plan": plan()}).json["workflowId"]
    stop = threading.Event()
    workers = [
        _worker(second, server, f"{name}-{number}", stop)
        for name, server in (("a", first), ("b", second))
        for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    parts = workers[:WORKERS], workers[WORKERS:]

    def is_under_way() -> bool:
        """Return whether a part of the work is done, on both servers."""
        shared = all(any(worker.completed for worker in part) for part in parts)
        return shared and admin.get(f"/workflows/{run}").json["counts"]["completed"] >= LEVELS * WIDTH // 3

    try:
        until(is_under_way, 60)
        assert first.stop(signal.SIGKILL) == -signal.SIGKILL
        until(lambda: admin.get(f"/workflows/{run}").json["status"] != "running", 120)
    finally:
        stop.set()
        for worker in workers:
            worker.join(30)
    state = admin.get(f"/workflows/{run}/state").json
    assert state["status"] == "completed"
    assert {task["state"] for task in state["tasks"]} == {"completed"}
    admin.close()
    assert second.stop() == 0
    _check(second)


def _worker(registry: Server, server: Server, name: str, stop: threading.Event) -> Worker:
    with registry.client() as admin:
        card = {"agentCard": {**CARD, "name": name}, "issueKey": True}
        made = admin.post("/agents/register-card", card).json
        admin.post(f"/roles/writer/agents/{made['agentId']}")
    return Worker(server.url, made["apiKey"], made["agentId"], stop)


def _check(server: Server) -> None:
    """Check every invariant of the ledger that both servers wrote."""
    store = SqliteStore(server.data)
    try:
        reader: Reader = store
        for topic in reader.topics():
            check_topic(reader, topic)
    finally:
        store.close()
