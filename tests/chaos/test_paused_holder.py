"""A holder that sleeps past its lease (SIGSTOP): the fence stands when it wakes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.acts import begin_queue, claim, create_task, head, register, until
from tests.harness.client import Client
from tests.harness.processes import Process, processes
from tests.harness.server import Server, serving

# The shortest there is.
LEASE_SECONDS = 5
ACTS: dict[str, Any] = {
    "start": {},
    "heartbeat": {},
    "plan": {"plan": {"steps": ["go on as if nothing had happened"]}},
    "artifacts": {"name": "report", "content": "late"},
    "block": {"reason": "late", "blockerType": "auth"},
    "release": {},
    "fail": {"reason": "late"},
    "complete": {"summary": "late"},
}


class Sleeper:
    """A task, its holder's process, and what the holder was promised."""

    def __init__(self, server: Server, client: Client, name: str) -> None:
        self.task = create_task(client, "queue_q")
        agent = register(client, name, issueKey=True)
        self.process = Process("holder", server.url, agent["apiKey"], self.task, agent["agentId"], LEASE_SECONDS)
        self.claimed = json.loads(self.process.hear())
        assert self.claimed["status"] == "claimed"

    def stop(self) -> None:
        """It stands still from here on; nothing that it is told is read."""
        os.kill(self.process.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.process.pid, os.WUNTRACED)

    def wake(self) -> None:
        os.kill(self.process.process.pid, signal.SIGCONT)

    def order(self, act: str) -> None:
        self.process.tell(json.dumps([act, ACTS[act]]))

    def answer(self) -> Any:
        return json.loads(self.process.hear())


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[tuple[Client, Callable[[str], Sleeper]]]:
    with serving(tmp_path) as server, server.client() as client, processes() as running:
        begin_queue(client)

        def begin(name: str) -> Sleeper:
            made = Sleeper(server, client, name)
            running.append(made.process)
            made.stop()
            return made

        yield client, begin


def test_a_holder_that_wakes_after_another_took_its_task_changes_nothing(
    sleeper: tuple[Client, Callable[[str], Sleeper]],
) -> None:
    client, begin = sleeper
    late, alone = begin("late"), begin("alone")
    rival = register(client, "rival")["agentId"]
    for act in ACTS:
        late.order(act)
    alone.order("complete")
    until(lambda: client.get(f"/tasks/{late.task}").json["state"] == "available")
    until(lambda: client.get(f"/tasks/{alone.task}").json["state"] == "available")
    won = claim(client, late.task, rival)
    assert won["status"] == "claimed"
    before, view = head(client), client.get(f"/tasks/{late.task}").content
    late.wake()
    for act in ACTS:
        status, reply = late.answer()
        if act == "heartbeat":
            # To learn it is what heartbeats are for.
            assert (status, reply["state"]) == (200, "lease_lost")
        else:
            assert (status, reply["code"]) == (409, "lease_lost"), act
            assert rival in reply["detail"]
    assert head(client) == before
    assert client.get(f"/tasks/{late.task}").content == view
    assert client.post(f"/claims/{won['claimId']}/complete").json["status"] == "completed"

    # Nobody took the other one's task: it goes on, and the ledger says how.
    alone.wake()
    status, reply = alone.answer()
    assert (status, reply["status"], reply["claimId"]) == (200, "completed", alone.claimed["claimId"])
    told = [(event["type"], event["data"].get("reacquired")) for event in _events(client, alone.task)[-3:]]
    assert told == [("task.lease_expired", None), ("task.lease_extended", True), ("task.complete", None)]
    assert client.get(f"/tasks/{late.task}").json["state"] == "completed"


def _events(client: Client, task: str) -> list[Any]:
    items: list[Any] = client.get(f"/tasks/{task}/events").json["items"]
    return items
