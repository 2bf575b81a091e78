"""Pauses and caps: what keeps a runner from claiming, for how long, and what is kept of it on disk."""

from __future__ import annotations

import time
from pathlib import Path

from redkey.errors import AgentUnavailable
from redkey.runner.cost import PriceTable, Rates
from redkey.runner.pausing import Pauses
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
