"""Measurements, run by `make bench`: one module per part of the system, each with `main(quick)`.

Machines differ and are shared, so figures are compared with a yardstick of the same run where there is one. Modules run
in rounds, one after the other and again; `results` writes a page of the medians. A module that takes long sets
`ROUNDS = 1`. `compare` is a separate command: it measures this checkout against a commit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.clocks import fsync_milliseconds


@dataclass(frozen=True)
class Figure:
    """One figure of one round. `beside` is the yardstick; `share_aim` is the target for value / beside."""

    section: str
    what: str
    value: float
    unit: str = "/s"
    beside: float | None = None
    aim: float | None = None
    share_aim: float | None = None
    # True if less is better: a time, a size.
    least: bool = False
    # The duration of an fsync on the same disk at about the same time.
    fsync_ms: float | None = None


@dataclass(frozen=True)
class Point:
    """One point of a plot."""

    plot: str
    line: str
    x: float
    y: float


@dataclass
class Run:
    """The figures of this run."""

    section: str = ""
    # The latest fsync measurement, stored with every figure that follows.
    fsync_ms: float | None = None
    figures: list[Figure] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


RUN = Run()


def rate(work: Callable[[Any], Any], items: Sequence[Any], seconds: float) -> float:
    """Items per second of processor time, the best of the rounds that fit into the time limit."""
    best = 0.0
    end = time.perf_counter() + seconds
    while True:
        began = time.process_time()
        for item in items:
            work(item)
        spent = time.process_time() - began
        best = max(best, len(items) / spent if spent else 0.0)
        if time.perf_counter() > end:
            return best


def row(
    what: str,
    value: float,
    *,
    beside: float | None = None,
    aim: float | None = None,
    share_aim: float | None = None,
    unit: str = "/s",
    least: bool = False,
    shown: bool = True,
) -> None:
    """Store one figure of one round, and print its value, its share of the yardstick, and its target."""
    RUN.figures.append(Figure(RUN.section, what.strip(), value, unit, beside, aim, share_aim, least, RUN.fsync_ms))
    if not shown:
        return
    share = f"{value / beside:8.2f}" if beside else " " * 8
    figure = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3g}"
    wanted = "" if aim is None else f"   aim {aim:,g}"
    wanted += "" if share_aim is None else f"   aim of the share {share_aim:g}"
    measured = figure + (unit if unit.startswith("/") else f" {unit}")
    print(f"  {what:<46}{measured:>16}{share}{wanted}", flush=True)


def probe_disk() -> None:
    """Measure an fsync in the folder of temporary data directories, for the figures that follow."""
    RUN.fsync_ms = fsync_milliseconds(Path(tempfile.gettempdir()))


def point(plot: str, line: str, x: float, y: float) -> None:
    """Store a point of a plot."""
    RUN.points.append(Point(plot, line, x, y))


def say(text: str) -> None:
    """Print and store a sentence about how something was measured."""
    if (RUN.section, text) not in RUN.notes:
        RUN.notes.append((RUN.section, text))
    print(f"  {text}", flush=True)
