"""One of two processes that write to the same data directory: it claims everything it can, as fast as it can.

Run as a script: `rival.py DIRECTORY TOPIC WORKSPACE LANE AGENTS TASKS...`. It prints `ready`, starts at the first line
on its standard input, and at its end prints one line of JSON: the outcome of each of its claims, and how many units it
committed.
"""

from __future__ import annotations

import asyncio
import json
import sys

from redkey.commands.claims import ClaimTask, CompleteClaim
from redkey.errors import WriterBusy
from redkey.services.outcome import Outcome
from redkey.stores.sqlite import SqliteStore
from tests.harness.desk import CountedIds
from tests.harness.office import OUTCOMES, Office


async def main(directory: str, topic: str, workspace_id: str, lane: str, agents: str, *tasks: str) -> None:
    store = SqliteStore(directory)
    office = Office(store, CountedIds(int(lane))).open(topic, workspace_id)
    units = 0

    def count(*_: object) -> None:
        nonlocal units
        units += 1

    office.coordinator.listen(count)
    told: list[tuple[str, str, str, str]] = []

    async def do(command: object) -> Outcome:
        """Retry if the other process held the lock for too long: a busy machine may pause it inside a unit."""
        while True:
            try:
                return await office.do(command)
            except WriterBusy:
                continue

    async def worker(agent_id: str) -> None:
        for task_id in tasks:
            settled = (await do(ClaimTask(task_id, agent_id, 600))).first(*OUTCOMES)
            assert settled is not None
            payload = settled.wire["payload"]
            told.append((task_id, agent_id, settled.wire["type"], payload.get("winning_claim_id", payload["claim_id"])))
            if settled.wire["type"] == "task.claimed":
                completed = await do(CompleteClaim(payload["claim_id"]))
                assert completed.records

    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await asyncio.gather(*(worker(agent_id) for agent_id in agents.split(",")))
    await office.coordinator.stop()
    store.close()
    print(json.dumps({"told": told, "units": units}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
