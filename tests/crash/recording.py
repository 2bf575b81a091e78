"""Histories: what runs of the script did to their files, one after the other, recorded by strace."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.crash.append_run import DONE, SAID, Ended, traceback_of
from tests.crash.disk import is_modelled
from tests.crash.tracing import Call, Strike, Tracer

# A call of a run: its name, and which of that name it is.
Point = tuple[str, int]


class History(msgspec.Struct, frozen=True):
    """What one process after the other did in BASE, and what it is called in reports."""

    name: str
    base: Path
    runs: Sequence[Sequence[Call]]
    # What was in BASE in the end, as far as crashes matter to it.
    files: dict[str, bytes]

    def points(self, wanted: Callable[[Call], bool] = lambda call: True) -> list[Point]:
        """The calls of the first run on its own files."""
        counts: Counter[str] = Counter()
        found = []
        for call in self.runs[0]:
            counts[call.name] += 1
            here = [path for path in call.paths if path.startswith(f"{self.base}/") and not path.endswith(f"/{SAID}")]
            if here and wanted(call):
                found.append((call.name, counts[call.name]))
        return found


def spread(points: Sequence[Point], count: int) -> list[Point]:
    """So many of the points, evenly spread; all when there are no more."""
    step = max(1.0, len(points) / count)
    return [points[int(number * step)] for number in range(min(count, len(points)))]


def memory_folder() -> str | None:
    """Where a folder lies in memory, when the system has such a place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def record_run(plant: str = "", *, commands: bool = False) -> History:
    """One run of the script, or of real commands, undisturbed but for a planted bug."""
    with _folders() as (bases, traces):
        with Tracer(record=traces / "only") as tracer:
            ended = _played(tracer, bases / "0", plant=plant, commands=commands)
        ((_, calls),) = _of(tracer, [ended])
        return History(plant or "the script", bases / "0", [calls], _files(bases / "0"))


def record_restarts(strike: Strike, points: Sequence[Point], plant: str = "") -> Iterator[History]:
    """For each point: a run that is struck there, and the run that goes on after it, in a process of its own."""
    struck = sorted({name for name, _ in points})
    with _folders() as (bases, traces):
        first, second = Tracer(strike, record=traces / "first", struck=struck), Tracer(record=traces / "second")
        ended: tuple[list[Ended], list[Ended]] = ([], [])
        with first, second:
            for number, (name, at) in enumerate(points):
                base, closing = bases / str(number), number % 2 == 0
                ended[0].append(first.run(base, name, at, plant=plant, close_when_poisoned=closing))
                ended[1].append(_played(second, base, plant=plant))
        runs = zip(_of(first, ended[0]), _of(second, ended[1]), strict=True)
        for number, ((_, begun), (_, finished)) in enumerate(runs):
            base, (name, at) = bases / str(number), points[number]
            told = f"{plant or 'the script'} struck at {name} {at}"
            yield History(told, base, [begun, finished], _files(base))


@contextmanager
def _folders() -> Iterator[tuple[Path, Path]]:
    """Folders for runs, in memory, and for what strace says of them, which is large."""
    with (
        TemporaryDirectory(prefix="redkey-runs-", dir=memory_folder()) as bases,
        TemporaryDirectory(prefix="redkey-traces-") as traces,
    ):
        yield Path(bases), Path(traces)


def _played(tracer: Tracer, base: Path, plant: str, *, commands: bool = False) -> Ended:
    """A run that comes to its end."""
    ended = tracer.run(base, plant=plant, commands=commands)
    assert ended.code == DONE, f"the run ended with {ended.code}\n{traceback_of(base)}"
    return ended


def _of(tracer: Tracer, ended: Sequence[Ended]) -> Iterator[tuple[int, list[Call]]]:
    """What these children did, and not what the server did between them."""
    pids = {one.pid for one in ended}
    return ((pid, calls) for pid, calls in tracer.calls() if pid in pids)


def _files(base: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(base)): path for path in base.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if is_modelled(name)}
