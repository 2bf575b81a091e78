"""A runner that puts another RedKey to work by A2A: what it says of its tasks is accepted there."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx2

from redkey.runner.executors.a2a import A2aExecutor
from redkey.runner.executors.a2a_login import Login
from tests.a2a.talk import Worker
from tests.harness import acts
from tests.harness.client import Client
from tests.harness.server import Server
from tests.runner.remote_agent import step

# Tasks here: the second continues the first and is a part of it.
LOCAL = ("task_01KQVJDB00H6WRB0S2CTBXP2YD", "task_01KQVJDB00H6WRB0S2CTBXP2YE")


def test_a_task_of_one_redkey_is_done_by_another(server: Server, owner: Client, tmp_path: Path) -> None:
    login = Login(server.url, {"Authorization": f"Bearer {server.key}"})
    executor = A2aExecutor(server.url, login=login, kept=tmp_path / "kept", poll_seconds=0.05)
    done: list[str] = []

    def work() -> None:
        """Complete whatever comes in one of these contexts."""
        worker = Worker(owner)
        for _ in LOCAL:
            found: list[str] = []

            def come(found: list[str] = found) -> bool:
                headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0"}
                place = f"{server.url}/a2a/tasks?contextId=wf_chain&status=TASK_STATE_SUBMITTED"
                found[:] = [one["id"] for one in httpx2.get(place, headers=headers, timeout=60).json()["tasks"]]
                return bool(found)

            acts.until(come)
            worker.take(found[0])
            worker.complete(summary="Done there.")
            done.append(found[0])

    working = threading.Thread(target=work, daemon=True)
    working.start()

    async def run() -> None:
        for number, task_id in enumerate(LOCAL):
            given = step(
                tmp_path,
                task_id=task_id,
                context_id="workflow:wf_chain",
                reference_task_ids=LOCAL[:number],
                parent_task_id=LOCAL[0] if number else "",
                correlation_id="project:all",
            )
            assert (await executor.run(given)).output.summary == "Done there."

    asyncio.run(run())
    working.join(60)
    ledger = "urn:redkey:a2a:ledger:1"
    headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0", "a2a-extensions": ledger}
    first, second = (httpx2.get(f"{server.url}/a2a/tasks/{one}", headers=headers, timeout=60).json() for one in done)
    assert "referenceTaskIds" not in first["history"][0]
    assert second["history"][0]["referenceTaskIds"] == [first["id"]]
    assert first["contextId"] == second["contextId"] == "wf_chain"
    assert first["metadata"][ledger]["correlationId"] == second["metadata"][ledger]["correlationId"] == "all"
    assert "parentTaskId" not in first["metadata"][ledger]
    assert second["metadata"][ledger]["parentTaskId"] == first["id"]
