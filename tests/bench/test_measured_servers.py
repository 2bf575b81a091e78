"""Servers under load: the budget adds up, RedKey beside itself, and what a watched server counts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bench import RUN, budget, queues, served
from bench.clocks import Spent, fsync_milliseconds, process_nanoseconds, spent
from bench.crew import Crew, follower
from bench.load import drive
from bench.peers import REDKEY, REDKEY_AGAIN, REDKEY_BATCH

SKEW_NANOSECONDS = 2_000_000


def test_the_parts_of_the_budget_add_up_to_the_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SECONDS", 0.2)
    monkeypatch.setattr(budget, "CONNECTIONS", 4)
    parts, distortion = budget.measure(1)
    names = list(parts)
    total = names.index("processor")
    assert parts["processor"] == pytest.approx(sum(parts[name] for name in names[:total]))
    assert parts["beyond the unit (the first two)"] == pytest.approx(parts[names[0]] + parts[names[1]])
    # Each stopwatch has counted, so the method that it wraps still exists under its name.
    assert all(parts[name] > 0 for name in names if name != "other threads"), parts
    assert distortion > 0


def test_a_watched_server_counts_units_and_what_they_take(tmp_path: Path) -> None:
    with served.redkey(tmp_path, watched="parts") as server, follower(server):
        before = server.spent
        with Crew(server).lanes(2, lambda agent: agent.cycle) as lanes:
            opened = server.spent - before
            drive(lanes, 0)
        cost = server.spent - before
    # Two cycles of three requests, each after the one before. Timers may add units.
    assert cost.units - opened.units >= 3
    # The two clocks are read one after the other, so they may differ by what runs in between.
    assert cost.process + SKEW_NANOSECONDS >= cost.loop > cost.whole > cost.unit > 0
    assert cost.unit >= cost.decide + cost.finish + cost.commit > 0
    assert cost.process == cost.unit + cost.answer + cost.outside + cost.threads


def test_a_server_that_is_not_watched_counts_nothing_of_units(tmp_path: Path) -> None:
    with served.redkey(tmp_path) as server:
        assert server.spent.process > 0
        assert server.spent.whole == server.spent.units == 0


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    # No folder of this name holds a `redkey`, and the installed one is hidden by a broken module.
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "redkey.py").write_text("raise SystemExit('a broken checkout')")
    with pytest.raises(RuntimeError, match="did not start: a broken checkout"), served.redkey(tmp_path, tree=tmp_path):
        pass


def test_an_interrupt_while_a_process_is_started_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("bench.served.subprocess.Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), served.plain_echo(tmp_path):
            pass
        assert [process.returncode is not None for process in started] == [True]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        for process in started:
            process.kill()
            process.wait()


def test_redkey_and_a_peer_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    run = type(RUN)()
    monkeypatch.setattr("bench.RUN", run)
    monkeypatch.setattr(queues, "SECONDS", 0.2)
    monkeypatch.setattr(queues, "AIMED", 2)
    monkeypatch.setattr(queues, "TURNS", 2)
    monkeypatch.setattr(queues, "BATCHED", REDKEY_AGAIN.name)
    with REDKEY.serve() as place:
        queues._in_turns(REDKEY_AGAIN, place, (2,), quick=False)
    control, batched = ([one for one in run.figures if word in one.what] for word in ("A/A", "50 a request"))
    assert len(control) == len(batched) == 2
    assert all(one.value > 0 and one.beside and one.fsync_ms for one in run.figures)
    assert {one.line for one in run.points} == {REDKEY.name, REDKEY_BATCH.name}


def test_the_clocks_of_a_process_are_its_processor_time() -> None:
    end, own = time.process_time() + 0.2, time.process_time_ns()
    # 0 is this process.
    before = process_nanoseconds(0)
    while time.process_time() < end:
        pass
    taken = process_nanoseconds(0) - before
    really = time.process_time_ns() - own
    assert really * 0.9 < taken <= really
    assert Spent(7, 5, 3, 1) - Spent(1, 1, 1, 1) + Spent(units=2) == Spent(6, 4, 2, units=2)
    assert spent(os.getpid()).process >= spent(os.getpid()).loop > 0


def test_an_fsync_takes_time_and_leaves_nothing(tmp_path: Path) -> None:
    assert fsync_milliseconds(tmp_path) > 0
    assert not list(tmp_path.iterdir())
