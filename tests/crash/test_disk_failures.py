"""A disk that is full or failing at any call: no acknowledgement after a failed fsync, no half unit, a clear error.

Each case strikes one call of the run with an error. What the run says is judged, then the directory; and with a sound
disk again, the script is played to its end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.judge import Judge
from tests.crash.proofs import SYNCS, strike_calls
from tests.crash.recording import History, spread
from tests.crash.tracing import Strike, Tracer

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
SHARES = 4

WRITES = ("write", "pwrite64")
FULL, FAILING = Strike("error=ENOSPC"), Strike("error=EIO")
# No space for so many calls; then somebody has made room, and the same process goes on.
FULL_FOR_A_WHILE = Strike("error=ENOSPC", times=3)

CASES = {
    "no space for a write": (FULL, WRITES),
    "no space for a while": (FULL_FOR_A_WHILE, WRITES),
    "no space for a name": (FULL, ("openat", "mkdir", "mkdirat", "rename", "renameat", "ftruncate")),
    "a write fails": (FAILING, WRITES),
    "a name cannot be changed": (FAILING, ("openat", "mkdir", "mkdirat", "rename", "renameat", "unlink", "unlinkat")),
    "an fsync fails": (FAILING, SYNCS),
    "no space at an fsync": (FULL, SYNCS),
}
# How many calls of each case are struck; all of them at the large size.
POINTS = {"no space for a write": 10_000, "an fsync fails": 10_000}


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_half_done_when_the_disk_fails(
    recorded: History, judge: Judge, scratch: Path, tell: Callable[[str], None], case: str, share: int
) -> None:
    strike, names = CASES[case]
    every = recorded.points(lambda call: call.name in names)
    chosen = (every if LONG else spread(every, POINTS.get(case, 32)))[share::SHARES]
    with Tracer(strike, struck=sorted({name for name, _ in every})) as tracer:
        strike_calls(tracer, recorded, chosen, judge, scratch)
    tell(f"{len(chosen)} of {len(every)} calls: {case}")
