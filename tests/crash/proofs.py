"""The proofs that strike a run at its calls: what is done at each point, and what must be so afterwards.

Tests choose the points; planted bugs go through the same code, so that what is seen to fail is what proves.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.crash.append_run import DATA, DONE, NOT_OPENED, POISONED, acknowledged, said, traceback_of
from tests.crash.judge import Judge, Wrong
from tests.crash.recording import History, Point
from tests.crash.script import REOPENED_AFTER, UNITS
from tests.crash.tracing import Tracer

KILLED = -9
SYNCS = ("fsync", "fdatasync")
# What a store says when it refuses a unit, or to open; that it is full where a write had no space.
CODES = {"store_full", "store_failed", "store_poisoned"}


def kill_at(killer: Tracer, points: Sequence[Point], judge: Judge, scratch: Path, plant: str = "") -> None:
    """Kill a run at each of these calls: nothing acknowledged is missing, and the next process goes on."""
    for name, at in points:
        base = scratch / "run"
        try:
            ended = killer.run(base, name, at, plant=plant)
            # A bug may leave out the call.
            assert ended.code == KILLED or plant, f"{name} {at} was not reached: {ended.code}"
            judge.judge(base / DATA, acknowledged(base), to_the_end=True)
        finally:
            shutil.rmtree(base)


def strike_calls(
    tracer: Tracer, recorded: History, points: Sequence[Point], judge: Judge, scratch: Path, plant: str = ""
) -> None:
    """Let each of these calls fail in a run of its own: what the run says is right, and so is what it leaves."""
    places = {place.point: place for place in _places(recorded)}
    for number, point in enumerate(points):
        base = scratch / "run"
        try:
            ended = tracer.run(base, *point, close_when_poisoned=number % 2 == 0, plant=plant)
            _check(base, ended.code, places[point])
            judge.judge(base / DATA, acknowledged(base), to_the_end=True)
        except Wrong as wrong:
            raise Wrong(f"{places[point]}: {wrong}\n{said(base)[-3:]}") from wrong
        finally:
            shutil.rmtree(base)


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
