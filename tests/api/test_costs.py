"""The cost of large requests: ordinary requests are free, a single large one always runs, and many must wait."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.config import Cost
from redkey.services.costs import FREE_BYTES, FREE_TASKS, Costs, cost_of_bytes, cost_of_tasks
from tests.api.greedy import OBJECT, PLAN, QUEUE
from tests.http.raw import connect


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_ordinary_requests_are_free() -> None:
    assert (cost_of_bytes(FREE_BYTES), cost_of_tasks(FREE_TASKS)) == (0, 0)
    assert (cost_of_bytes(FREE_BYTES + 10 * 1024), cost_of_tasks(FREE_TASKS + 10)) == (10, 10)


def test_a_budget_is_overdrawn_once_and_then_paid_back() -> None:
    clock = Clock()
    costs = Costs(Cost(per_second=100, burst=200, workspace_per_second=0), clock)
    costs.charge("key", "workspace", 1200)
    with pytest.raises(Refused) as declined:
        costs.charge("key", "workspace", 1)
    assert (declined.value.status, declined.value.code) == (429, "cost_limited")
    assert declined.value.retry_seconds == 10
    costs.charge("another key", "workspace", 1)
    clock.now = 10.1
    costs.charge("key", "workspace", 1)


def test_a_workspace_has_a_budget_for_all_its_keys() -> None:
    costs = Costs(Cost(per_second=100, burst=200, workspace_per_second=100, workspace_burst=300), Clock())
    costs.charge("one", "workspace", 150)
    costs.charge("two", "workspace", 151)
    with pytest.raises(Refused, match="This workspace"):
        costs.charge("three", "workspace", 1)
    costs.charge("three", "another workspace", 1)


def test_large_bodies_and_plans_are_charged_for_by_default(start: Any) -> None:
    server = start(config="[cost]\nper_second = 1\nburst = 100\n")
    with server.client() as client:
        assert client.post("/queues", {"id": QUEUE, "name": "greedy"}).status == 201
        assert client.post(f"/queues/{QUEUE}/tasks", OBJECT).status == 201
        refused = client.post(f"/queues/{QUEUE}/tasks", OBJECT)
        assert (refused.status, refused.json["code"]) == (429, "cost_limited")
        assert int(refused.headers["retry-after"]) > 100
        # A plan is charged for its tasks, wherever it comes from; what is small stays free.
        assert client.post("/workflows", {"queueId": QUEUE, "plan": PLAN}).status == 429
        assert client.post(f"/queues/{QUEUE}/tasks", {"title": "small"}).status == 201
        # The body of a request that is refused is not waited for.
        head = f"POST /queues/{QUEUE}/tasks HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {client.key}\r\n"
        head += "content-type: application/json\r\ncontent-length: 700000\r\n\r\n"
        with connect(server) as sock:
            sock.sendall(head.encode() + b"{")
            assert sock.recv(12) == b"HTTP/1.1 429"
    unlimited = Cost(per_second=0, workspace_per_second=0)
    for _ in range(3):
        Costs(unlimited, Clock()).charge("key", "workspace", 10**9)
