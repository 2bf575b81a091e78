"""`redkey serve` with stopwatches that count per unit of work: `python -m bench.watched_server WHAT CELLS serve ...`.

WHAT is `unit`, for the unit of work and the answering of its requests, or `parts`, for the parts of the unit as well.
A stopwatch is read twice per unit and never per request or record, so it does not distort: with 32 connections all of
them together add about a microsecond to a cycle. They count into the file CELLS (see `clocks`), which others may read
at any time. The module imports nothing else of RedKey, so it can watch a server of any commit that has these names.
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

_COORDINATOR = "redkey.services.coordinator:Coordinator"
# What is watched: the cell and its methods. A watched method that is called inside another one counts for both.
# Acts (checkpoints, counting) are units too.
UNIT = {
    "whole": f"{_COORDINATOR}._commit {_COORDINATOR}._perform {_COORDINATOR}._perform_next",
    "answer": f"{_COORDINATOR}._answer",
}
PARTS = {
    # A method of the coordinator in earlier versions.
    "decide": f"{_COORDINATOR}._settle_all redkey.services.run_unit:settle_all",
    "finish": "redkey.services.unit_of_work:TopicWork.finish",
    "commit": "redkey.stores.sqlite.writer:Writer.commit",
}


def watch(place: str, cell: int, cells: memoryview[int]) -> None:
    """Put a stopwatch around `module:Class.method` or `module:function`; nanoseconds and calls are counted."""
    module, _, path = place.partition(":")
    name, _, method = path.rpartition(".")
    try:
        holder: Any = importlib.import_module(module)
    except ModuleNotFoundError:
        return
    holder = getattr(holder, name) if name else holder
    work: Callable[..., Any] | None = getattr(holder, method, None)
    if work is None:
        # Other versions have other names.
        return

    watched = work

    def timed(*arguments: Any) -> Any:
        begun = thread_time_ns()
        try:
            return watched(*arguments)
        finally:
            cells[cell] += thread_time_ns() - begun
            cells[cell + 1] += 1

    setattr(holder, method, timed)


def run(what: str, path: Path) -> None:
    """Serve; the remaining arguments are passed to `redkey`."""
    path.write_bytes(bytes(CELLS_BYTES))
    with path.open("r+b") as file:
        cells = memoryview(mmap(file.fileno(), CELLS_BYTES)).cast("q")
    for name, places in (UNIT | PARTS if what == "parts" else UNIT).items():
        for place in places.split():
            watch(place, CELLS.index(name) * 2, cells)
    importlib.import_module("redkey.cli").main()


if __name__ == "__main__":
    run(sys.argv.pop(1), Path(sys.argv.pop(1)))
