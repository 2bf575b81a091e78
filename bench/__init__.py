"""Measurements, run by `make bench`: one module per part of the system, each with `main(quick)`.

Machines differ and are shared, so a figure stands beside a yardstick of the same run wherever there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any


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


def row(what: str, value: float, *, beside: float | None = None, aim: float | None = None) -> None:
    """Print one figure: per second, as a share of the yardstick, and what was aimed for."""
    share = f"{value / beside:8.2f}" if beside else " " * 8
    print(f"  {what:<44}{value:>12,.0f}/s{share}{f'   aim {aim:,.0f}' if aim else ''}", flush=True)
