"""Copies are what the coordinator would have made: fsck replays them, and finds nothing wrong with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench import RUN, growth
from bench.bulk import Bulk
from bench.copies import Copies, Mould
from redkey.client import RedKey
from redkey.commands.claims import ClaimNext
from redkey.reducers.world import TOMBSTONE_NANOSECONDS
from redkey.services.fsck.check import Fsck
from redkey.stores.sqlite.inspection import Inspection
from tests.harness.server import serving


def test_fsck_finds_nothing_wrong_with_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.copies._AT_ONCE", 4)
    data = tmp_path / "data"

    async def run() -> list[str]:
        with Bulk(data) as bulk:
            agent, documents = bulk.agent("bench")
            await bulk.do([(agent, documents)])
        copies = Copies(data, await Mould.cast(data, "queue_bench", agent.agent_id))
        copies.fill(15)
        copies.finish(10)
        copies.skip(TOMBSTONE_NANOSECONDS)
        copies.fill(3)
        copies.close()
        with Bulk(data) as bulk:
            # The next who asks gets the oldest of those that were left.
            outcomes = await bulk.do([(ClaimNext("queue_bench", agent.agent_id, 0, 100), ())])
            return [one.wire["type"] for one in outcomes[0].records]

    with serving(tmp_path) as server, RedKey(server.url, server.key) as rk:
        rk.queues.create("bench")
    assert asyncio.run(run()).count("task.claimed") == 8
    with Inspection(data) as evidence:
        report = Fsck(evidence).run()
    assert report.clean, report.faults


def test_growth_measures_every_size_and_draws_both_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    run = type(RUN)()
    monkeypatch.setattr("bench.RUN", run)
    monkeypatch.setattr(growth, "WAITING", (20, 40))
    monkeypatch.setattr(growth, "FINISHED", (10, 30))
    monkeypatch.setattr(growth, "CLAIMS", 5)
    growth.main(quick=True)
    found = {(one.plot, one.line, one.x) for one in run.points}
    assert found == {
        (plot, line, size)
        for plot in ("depth", "memory")
        for line, sizes in (("waiting tasks", (20, 40)), ("finished tasks", (10, 30)))
        for size in sizes
    }
    assert all(one.y > 0 for one in run.points)
