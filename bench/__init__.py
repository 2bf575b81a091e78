"""Measurements, run by `make bench`: one module per part of the system, each with `main(quick)`.

Machines differ and are shared, so a figure stands beside a yardstick of the same run wherever there is one. Modules are
run in rounds, one after the other and again; `results` makes a page of the medians. A module that takes long says
`ROUNDS = 1`. `compare` is a command of its own: it measures this checkout beside a commit.
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
    """One figure of one round. `beside` is the yardstick; `share_aim` is what value / beside should be."""

    section: str
    what: str
    value: float
    unit: str = "/s"
    beside: float | None = None
    aim: float | None = None
    share_aim: float | None = None
    # Whether less is better: a time, a size.
    least: bool = False
    # What an fsync took on the same disk at about the same time.
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
    """What this run has found so far."""

    section: str = ""
    # The latest measurement, kept with every figure that follows.
    fsync_ms: float | None = None
    figures: list[Figure] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


RUN = Run()


def rate(work: Callable[[Any], Any], items: Sequence[Any], seconds: float) -> float:
    """Items per second of processor time, the best of the rounds that fit into the given time."""
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
    """Keep one figure of one round, and print it: its value, its share of the yardstick, and what was aimed for."""
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
    """Measure an fsync where temporary data directories are, for the figures that follow."""
    RUN.fsync_ms = fsync_milliseconds(Path(tempfile.gettempdir()))


def point(plot: str, line: str, x: float, y: float) -> None:
    """Keep a point of a plot."""
    RUN.points.append(Point(plot, line, x, y))


def say(text: str) -> None:
    """Print and keep a sentence about how something was measured."""
    if (RUN.section, text) not in RUN.notes:
        RUN.notes.append((RUN.section, text))
    print(f"  {text}", flush=True)
