"""Steps of many tests: create a queue, register an agent, wait for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx2

from tests.harness.client import Client

CARD: dict[str, Any] = {
    "name": "Research Agent",
    "description": "Finds and summarizes source material",
    "url": "https://agent.example.com/a2a",
    "version": "1.0.0",
    "skills": [],
    "capabilities": {},
}


def begin_queue(client: Client, queue_id: str = "queue_q") -> str:
    """Create a queue; return its id."""
    reply = client.post("/queues", {"id": queue_id, "name": queue_id.removeprefix("queue_")})
    assert reply.status == 201, reply.text
    return queue_id


def register(client: Client, name: str = "Research Agent", **more: Any) -> dict[str, Any]:
    """Register an agent."""
    reply = client.post("/agents/register-card", {"agentCard": {**CARD, "name": name}, **more})
    assert reply.status == 201, reply.text
    registered: dict[str, Any] = reply.json
    return registered


def create_task(client: Client, queue_id: str = "queue_q", **more: Any) -> str:
    """Create a task; return its id."""
    reply = client.post(f"/queues/{queue_id}/tasks", {"title": "Research Piers Gorman", **more})
    assert reply.status == 201, reply.text
    return str(reply.json["taskId"])


def claim(client: Client, task_id: str, agent_id: str) -> dict[str, Any]:
    """The reply to a claim."""
    reply = client.post(f"/tasks/{task_id}/claim", {"agentId": agent_id, "leaseSeconds": 600})
    assert reply.status == 200, reply.text
    claimed: dict[str, Any] = reply.json
    return claimed


def head(client: Client) -> int:
    """The last sequence of the caller's workspace."""
    return int(client.get("/ledger/query?order=desc&limit=1").json["items"][0]["sequence"])


def gauge(url: str, name: str) -> float:
    """The value of a metric of the server."""
    for line in httpx2.get(f"{url}/metrics", timeout=60).text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return 0.0


def until(true: Callable[[], Any], seconds: float = 60) -> None:
    """Wait until a condition holds, checking it again and again."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.005)
