"""A disk that is full or failing at any call: no acknowledgement after a failed fsync, no half unit, a clear error.

Each case strikes one call of the run with an error. What the run says is judged, then the directory; and with a sound
disk again, the script is played to its end.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.crash.append_run import DATA, DONE, NOT_OPENED, POISONED, acknowledged, said, traceback_of
from tests.crash.judge import Judge, Wrong
from tests.crash.recording import History, Point, spread
from tests.crash.script import REOPENED_AFTER, UNITS
from tests.crash.tracing import Strike, Tracer

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
SHARES = 4
SYNCS = ("fsync", "fdatasync")
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


# What a store says when it refuses a unit, or to open; that it is full where a write had no space.
CODES = {"store_full", "store_failed", "store_poisoned"}


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_half_done_when_the_disk_fails(
    recorded: History, judge: Judge, scratch: Path, tell: Callable[[str], None], case: str, share: int
) -> None:
    strike, names = CASES[case]
    every = recorded.points(lambda call: call.name in names)
    chosen = (every if LONG else spread(every, POINTS.get(case, 32)))[share::SHARES]
    places = {place.point: place for place in _places(recorded)}
    with Tracer(strike, struck=sorted({name for name, _ in every})) as tracer:
        for number, point in enumerate(chosen):
            base = scratch / "run"
            ended = tracer.run(base, *point, close_when_poisoned=number % 2 == 0)
            try:
                _check(base, ended.code, places[point])
                judge.judge(base / DATA, acknowledged(base), to_the_end=True)
            except Wrong as wrong:
                raise Wrong(f"{case}, {places[point]}: {wrong}\n{said(base)[-3:]}") from wrong
            shutil.rmtree(base)
    tell(f"{len(chosen)} of {len(every)} calls: {case}")


class Place(msgspec.Struct, frozen=True):
    """Where in the run a call stands: what it is about, how much was acknowledged before, is the store being closed."""

    point: Point
    path: str
    acknowledged: int
    closing: bool

    @property
    def unheard(self) -> bool:
        """SQLite keeps silent about a failed fsync of a folder, whose names the store syncs itself, and about one
        while it closes, when the log stays: that neither loses anything is proven by power cuts."""
        return self.closing or (self.point[0] == "fdatasync" and self.path.endswith(f"/{DATA}"))


def _places(history: History) -> Iterator[Place]:
    counts: Counter[str] = Counter()
    closing, words = False, 0
    for call in history.runs[0]:
        counts[call.name] += 1
        path = call.paths[0] if call.paths else ""
        if call.name == "writev":
            words += 1
            # The first word is about what is there at opening: no unit.
            closing = words - 1 in (*REOPENED_AFTER, len(UNITS))
        elif call.name in ("unlink", "unlinkat") and path.endswith("-wal"):
            closing = False
        yield Place((call.name, counts[call.name]), path, words, closing)


def _check(base: Path, code: int, place: Place) -> None:
    """What the run did about the failure, and what it said."""
    if code not in (DONE, POISONED, NOT_OPENED):
        raise Wrong(f"the run ended with {code}\n{traceback_of(base)}")
    words = said(base)
    errors = [word.get("refused") or word.get("not_opened") for word in words if "message" in word]
    if not set(errors) <= CODES or any(not word["message"] for word in words if "message" in word):
        raise Wrong(f"the run said {errors}")
    if place.point[0] in SYNCS and not place.unheard:
        if code == DONE or len(acknowledged(base)) > place.acknowledged:
            raise Wrong("something was acknowledged after a failed fsync")
        if code == NOT_OPENED and errors != ["store_poisoned"]:
            raise Wrong(f"a failed fsync at opening was told as {errors}")
