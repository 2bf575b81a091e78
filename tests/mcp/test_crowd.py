"""Many client processes in one directory, without a server at first: one server, one winner for each task."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from redkey.client import RedKey
from redkey.config import read_credentials
from tests.conftest import LONG
from tests.mcp.conftest import PATIENCE_SECONDS, Agent, agent, run

AGENTS, TASKS = (20, 200) if LONG else (4, 20)


@pytest.fixture
def project() -> Iterator[Path]:
    """A project with a short path; the server that its clients start is ended by its process id."""
    with tempfile.TemporaryDirectory(prefix="rk") as directory:
        yield Path(directory)
        ready = Path(directory) / ".redkey" / "serve.json"
        if ready.exists():
            os.kill(json.loads(ready.read_text())["pid"], signal.SIGTERM)
            ends_at = time.monotonic() + PATIENCE_SECONDS
            while ready.exists() and time.monotonic() < ends_at:
                time.sleep(0.05)


def test_many_processes_start_one_server_and_each_task_has_one_winner(project: Path) -> None:
    async def work(one: Agent) -> int:
        done = 0
        while (await one("wait_for_task", wait_seconds=0))["claim"]["outcome"] == "claimed":
            await one("complete_task", summary="Done.")
            done += 1
        return done

    async def test() -> None:
        async with AsyncExitStack() as stack:
            agents = [await stack.enter_async_context(agent(project)) for _ in range(AGENTS)]
            # All of them find no server at the same moment.
            await asyncio.gather(*(one("list_tasks") for one in agents))
            made = (await agents[0]("create_task", title="One"))["task"]["task_id"]
            claims = await asyncio.gather(*(one("claim_task", task_id=made) for one in agents))
            outcomes = Counter(claim["claim"]["outcome"] for claim in claims)
            assert outcomes == {"claimed": 1, "missed": AGENTS - 1}
            winner = next(one for one, claim in zip(agents, claims, strict=True) if claim["claim"]["claim_id"])
            await winner("complete_task")
            for number in range(TASKS):
                await agents[0]("create_task", title=f"Task {number}")
            assert sum(await asyncio.gather(*(work(one) for one in agents))) == TASKS

    run(test)
    credentials = read_credentials(project / ".redkey")
    assert credentials is not None
    # The last client that left did not stop it.
    with RedKey(credentials.url, credentials.api_key) as rk:
        completed = Counter(event.subject.id for event in rk.ledger.query(type="task.complete"))
        assert len(completed) == TASKS + 1
        assert set(completed.values()) == {1}
        assert len(list(rk.agents.list())) == AGENTS
        starts = (project / ".redkey" / "serve.log").read_text().count('"event": "serving"')
        assert starts == 1
