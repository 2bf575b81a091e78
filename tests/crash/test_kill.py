"""kill -9 at every file syscall of the append run: nothing acknowledged is missing, and the next process goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.judge import Judge
from tests.crash.proofs import kill_at
from tests.crash.recording import History
from tests.crash.tracing import KILL, Tracer

SHARES = 6


@pytest.fixture(scope="module")
def killer(strace: None) -> Iterator[Tracer]:
    with Tracer(KILL) as tracer:
        yield tracer


@pytest.mark.parametrize("share", range(SHARES))
def test_no_acknowledged_record_is_missing_after_a_kill(
    recorded: History, killer: Tracer, judge: Judge, scratch: Path, tell: Callable[[str], None], share: int
) -> None:
    every = recorded.points()
    kill_at(killer, every[share::SHARES], judge, scratch)
    tell(f"{len(every[share::SHARES])} kills of {len(every)}, one at every file syscall of the run")
