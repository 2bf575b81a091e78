"""Two processes on one SQLite file, both writing as fast as they can: one order, one winner a task, no starvation."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from redkey.commands.claims import ClaimTask
from redkey.stores.sqlite import SqliteStore
from tests.harness.invariants import check_topic
from tests.harness.office import Office, claimed_task, turns, two_offices
from tests.harness.snapshot import snapshot

TASKS = 400 if os.environ.get("REDKEY_TEST_LONG") == "1" else 60
AGENTS = 4
ROOT = Path(__file__).parents[2]


def rival(directory: Path, office: Office, lane: int, agents: list[str], tasks: list[str]) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("rival.py")
    arguments = [directory, office.topic, office.admin.workspace_id, lane, ",".join(agents), *tasks]
    return subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


async def _prepare(directory: Path) -> tuple[Office, list[list[str]], list[str]]:
    store = SqliteStore(directory)
    office = await Office(store).begin()
    agents = [[await office.agent(f"a{team}-{number}") for number in range(AGENTS)] for team in range(2)]
    tasks = [await office.task() for _ in range(TASKS)]
    await office.coordinator.stop()
    store.close()
    return office, agents, tasks


def test_each_task_has_one_winner_and_every_loser_knows_whom(tmp_path: Path) -> None:
    office, agents, tasks = asyncio.run(_prepare(tmp_path))
    rivals = [rival(tmp_path, office, lane, agents[lane - 1], tasks) for lane in (1, 2)]
    try:
        for one in rivals:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in rivals:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        reports: list[dict[str, Any]] = [json.loads(one.communicate(timeout=120)[0]) for one in rivals]
    finally:
        for one in rivals:
            one.kill()
            one.wait()
    told = [tuple(line) for report in reports for line in report["told"]]
    assert len(told) == 2 * AGENTS * TASKS
    winners = {task_id: claim_id for task_id, _, kind, claim_id in told if kind == "task.claimed"}
    assert len(winners) == sum(kind == "task.claimed" for _, _, kind, _ in told) == TASKS
    for task_id, agent_id, kind, claim_id in told:
        assert kind in ("task.claimed", "task.claim_missed"), (agent_id, kind)
        assert claim_id == winners[task_id]
    shares = sorted(report["units"] for report in reports)
    assert shares[0] * 4 >= shares[1], f"one of them starved: {shares}"
    store = SqliteStore(tmp_path)
    check_topic(store, office.topic)
    store.close()


def test_a_world_catches_up_with_what_another_process_wrote() -> None:
    async def whole() -> None:
        one, other = two_offices()
        await one.begin()
        other.open(one.topic, one.admin.workspace_id)
        ada, bob = await one.agent("ada"), await other.agent("bob")
        task = await one.task(deadline_seconds=1000)
        claim = await other.hold(task, bob, 60)
        missed = (await one.do(ClaimTask(task, ada))).first("task.claim_missed")
        assert missed is not None
        assert missed.wire["payload"]["winning_claim_id"] == claim
        await one.complete(claim)
        seen = [snapshot(office.coordinator.peek(one.topic)) for office in (one, other)]
        one.coordinator._worlds.drop(one.coordinator._worlds.lend(one.topic))
        assert seen[0] == seen[1] == snapshot(one.coordinator.peek(one.topic))
        check_topic(one.store, one.topic)

    asyncio.run(whole())


def test_a_repeat_at_another_process_gets_the_same_records() -> None:
    async def whole() -> None:
        one, other = two_offices()
        await one.begin()
        other.open(one.topic, one.admin.workspace_id)
        command, key = one.new_task(), {"idem": "a" * 32, "body": "b" * 16}
        first, again = await one.do(command, **key), await other.do(command, **key)
        assert first.records == again.records
        check_topic(one.store, one.topic)

    asyncio.run(whole())


def test_a_waiter_is_woken_by_what_another_process_brought() -> None:
    async def whole() -> None:
        one, other = two_offices()
        await one.begin()
        other.open(one.topic, one.admin.workspace_id)
        waiting = one.wait_for_task(await one.agent("ada"))
        await turns()
        task = await other.task()
        await turns()
        assert not waiting.done()
        one.coordinator.look_at(one.topic)
        assert claimed_task(await asyncio.wait_for(waiting, 60)) == task
        check_topic(one.store, one.topic)

    asyncio.run(whole())


def test_a_coordinator_waits_for_its_turn_without_blocking_the_loop() -> None:
    """While another process has the lock, requests wait in a thread; if they have all left, the lock is released."""

    async def whole() -> None:
        one, other = two_offices()
        await one.begin()
        other.open(one.topic, one.admin.workspace_id)
        with other.store.write(one.topic):
            kept, gone = one.ask(one.new_task()), one.ask(one.new_task())
            await turns(50)
            assert not kept.done()
            gone.cancel()
        assert (await asyncio.wait_for(kept, 60)).records
        # All waiting callers have left when the lock is free: it is released.
        with other.store.write(one.topic):
            gone = one.ask(one.new_task())
            await turns(50)
            gone.cancel()
            await turns(5)
        await asyncio.wait_for(one.coordinator._idle.wait(), 60)
        with other.store.write(one.topic, wait=False):
            pass
        check_topic(one.store, one.topic)

    asyncio.run(whole())
