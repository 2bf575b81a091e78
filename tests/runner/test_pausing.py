"""Pauses and caps: what keeps a runner from claiming, for how long, and what is kept of it on disk."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from redkey.errors import AgentUnavailable, StepFailed
from redkey.runner.cost import PriceTable, Rates, Usage
from redkey.runner.pausing import Pauses
from redkey.runner.spending import Caps, Spending
from tests.harness.scene import Scene, output

PRICES = PriceTable({"m": Rates(1, 10)})


def test_a_runner_that_cannot_start_its_agent_pauses_longer_each_time(tmp_path: Path) -> None:
    now = 1000.0
    pauses = Pauses(tmp_path, "a", first_seconds=5, clock=lambda: now)
    assert pauses.current() is None
    lengths = []
    for _ in range(5):
        pause = pauses.begin(AgentUnavailable("no", code="start_failed"))
        lengths.append(pauses.seconds())
        # Others that fail meanwhile are the same failure.
        now += lengths[-1] / 2
        assert pauses.begin(AgentUnavailable("no")) == pause
        assert pauses.seconds() == lengths[-1] / 2
        now += lengths[-1] / 2
        assert pauses.current() is None
    assert lengths == [5, 10, 20, 40, 80]
    pauses.worked()
    assert pauses.begin(AgentUnavailable("no")).until == now + 5


def test_a_usage_limit_is_shared_by_account_and_other_pauses_are_not(tmp_path: Path) -> None:
    ours, same, other = Pauses(tmp_path, "a"), Pauses(tmp_path, "a"), Pauses(tmp_path, "b")
    until = time.time() + 100
    ours.begin(AgentUnavailable("limit", code="usage_limit", until=until))
    ours.begin(AgentUnavailable("limit", code="usage_limit", until=until - 50))
    found = same.current()
    assert found is not None
    assert (found.until, found.reason) == (until, "limit")
    assert other.current() is None
    other.begin(AgentUnavailable("cap", code="cost_cap", until=until))
    assert Pauses(tmp_path, "b").current() is None
    (tmp_path / "a.json").write_text("nonsense")
    assert same.current() is None


def test_costs_add_up_over_attempts_and_restarts_until_a_cap(tmp_path: Path) -> None:
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(task=1.0, workflow=1.5))
    used = Usage(model="m", output_tokens=30_000)
    spending.meter("t1", "w").add(used)
    spending.meter("t1", "w").add(used)
    spending.close()
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(task=1.0, workflow=1.5))
    meter = spending.meter("t1", "w")
    assert meter.left_usd == pytest.approx(0.4)
    meter.add(used)
    with pytest.raises(StepFailed, match="one task") as failed:
        meter.add(used)
    assert failed.value.code == "cost_cap"
    assert meter.cost_usd == 0.6
    with pytest.raises(StepFailed, match="one workflow"):
        spending.meter("t2", "w").add_all([used])
    spending.meter("t3").add(used)
    spending.close()


def test_a_cap_of_a_day_pauses_until_tomorrow_and_one_of_the_agent_for_good(tmp_path: Path) -> None:
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(day=0.5))
    spending.check()
    with pytest.raises(AgentUnavailable) as away:
        spending.meter("t").add(Usage(cost_usd=0.5))
    assert away.value.until is not None
    assert 0 < away.value.until - time.time() <= 86400
    with pytest.raises(AgentUnavailable):
        spending.check()
    spending.close()
    other = Spending(tmp_path / "c.sqlite", "bob", PRICES, Caps(agent=0.5))
    other.check()
    with pytest.raises(AgentUnavailable) as away:
        other.meter("t").add(Usage(cost_usd=0.6))
    assert away.value.until == float("inf")
    other.close()


def test_a_mistyped_program_stops_the_runner_before_it_claims(stage: Scene) -> None:
    task_id = stage.task()
    for wrong in (
        ["--exec", "no-such-program --do"],
        ["--exec", "./no-such-program"],
        ["--python", "json:nosuch"],
        ["--executor", "codez"],
    ):
        card = str(stage.card("quinn"))
        runner = stage.begin(["--card", card, "--queue", stage.queue, "--work", str(stage.directory / "w"), *wrong])
        assert runner.process.wait(60) == 1
        assert "no-such-program" in runner.log() or "nosuch" in runner.log() or "codez" in runner.log()
    assert stage.state(task_id) == "available"
    assert stage.types(task_id) == ["task.created", "task.available"]


def test_an_agent_that_cannot_be_started_pauses_its_runner_and_the_queue_is_unharmed(stage: Scene) -> None:
    """The program is gone at run time: tasks go back without an attempt, and are done when it is there again."""
    program = stage.directory / "agent.sh"
    runner = stage.run("--exec", f"true && {program}")
    tasks = [stage.task() for _ in range(5)]
    stage.until_told(runner, "paused")
    assert "cannot be started" in next(one["reason"] for one in runner.told() if one["event"] == "paused")
    assert len([one for one in runner.events() if one == "released"]) == 1
    program.write_text(f"#!/bin/sh\necho '{output()}'\n")
    program.chmod(0o755)
    assert [stage.ends(task_id, "completed").attempt for task_id in tasks] == [1] * 5
