"""`redkey serve` with one stopwatch, around the unit of work: `python -m bench.watched_server CELLS serve ...`.

The stopwatch is read four times a unit, never per request, so it does not distort: with 32 connections it adds less
than a microsecond to a cycle. What it counts is kept in the file CELLS (see `clocks`), where others read it at any
time. The module imports nothing else of RedKey, so it can watch a server of any commit.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from time import thread_time_ns
from typing import Any

from bench.clocks import CELLS, CELLS_BYTES

UNIT, ANSWER, UNITS = range(len(CELLS))


def watch(coordinator: Any, cells: memoryview[int]) -> None:
    """Count what `_commit` takes without `_answer`, and what `_answer` takes.

    Answering starts listeners and replies, so it is outside the unit: the unit ends when its records are durable.
    """
    commit: Callable[..., Any] = coordinator._commit
    answer: Callable[..., Any] = coordinator._answer

    def timed_commit(*arguments: Any) -> Any:
        begun, answered = thread_time_ns(), cells[ANSWER]
        try:
            return commit(*arguments)
        finally:
            cells[UNIT] += thread_time_ns() - begun - (cells[ANSWER] - answered)
            cells[UNITS] += 1

    def timed_answer(*arguments: Any) -> Any:
        begun = thread_time_ns()
        try:
            return answer(*arguments)
        finally:
            cells[ANSWER] += thread_time_ns() - begun

    coordinator._commit, coordinator._answer = timed_commit, timed_answer


def run(path: Path) -> None:
    """Serve; the rest of the arguments is `redkey`'s."""
    path.write_bytes(bytes(CELLS_BYTES))
    with path.open("r+b") as file:
        cells = memoryview(mmap(file.fileno(), CELLS_BYTES)).cast("q")
    watch(importlib.import_module("redkey.services.coordinator").Coordinator, cells)
    importlib.import_module("redkey.cli").main()


if __name__ == "__main__":
    run(Path(sys.argv.pop(1)))
