"""kill -9 at every file syscall of the append run: nothing acknowledged is missing, and the next process goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.append_run import DATA, acknowledged
from tests.crash.judge import Judge
from tests.crash.recording import History
from tests.crash.tracing import KILL, Tracer

SHARES = 6
KILLED = -9


@pytest.fixture(scope="module")
def killer(strace: None) -> Iterator[Tracer]:
    with Tracer(KILL) as tracer:
        yield tracer


@pytest.mark.parametrize("share", range(SHARES))
def test_no_acknowledged_record_is_missing_after_a_kill(
    recorded: History, killer: Tracer, judge: Judge, scratch: Path, tell: Callable[[str], None], share: int
) -> None:
    every = recorded.points()
    for name, at in every[share::SHARES]:
        base = scratch / "run"
        ended = killer.run(base, name, at)
        assert ended.code == KILLED, f"{name} {at} was not reached: {ended.code}"
        judge.judge(base / DATA, acknowledged(base), to_the_end=True)
        shutil.rmtree(base)
    tell(f"{len(every[share::SHARES])} kills of {len(every)}, one at every file syscall of the run")
