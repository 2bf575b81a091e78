"""Line plots as SVG, without a library, for a dozen points. Both axes may be logarithmic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bench import Point

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 190, 44, 48
COLOURS = (
    "#c8102e",
    "#1f4e79",
    "#2e7d32",
    "#8e5ea2",
    "#e08e0b",
    "#00838f",
    "#6d4c41",
    "#5c6bc0",
    "#9e9d24",
    "#ad1457",
    "#455a64",
)


@dataclass(frozen=True)
class Plot:
    """The titles of a plot and the scales of its axes."""

    title: str
    x: str
    y: str
    log_x: bool = True
    log_y: bool = False


PLOTS = {
    "throughput": Plot(
        "Cycles a second by connections (create, claim, complete)", "connections", "cycles/s", log_y=True
    ),
    "latency": Plot("How long a cycle takes, 32 connections", "share of cycles (%)", "milliseconds", log_x=False),
    "depth": Plot("What a claim costs as the queue grows", "waiting tasks", "microseconds of the processor"),
    "memory": Plot("Memory of the server as tasks come and go", "tasks", "MiB"),
}


class Axis:
    """Maps values to a length, linearly or logarithmically."""

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool) -> None:
        self.log, self.start, self.end = log and min(values) > 0, start, end
        low, high = min(values), max(values)
        if not self.log:
            low = min(0.0, low)
        self.low, self.high = (math.log10(low), math.log10(high)) if self.log else (low, high * 1.05)
        if self.high <= self.low:
            self.high = self.low + 1

    def place(self, value: float) -> float:
        at = math.log10(value) if self.log else value
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            found = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
            inside = [tick for tick in found if self.low - 1e-9 <= math.log10(tick) <= self.high + 1e-9]
            return inside if len(inside) <= 8 else [tick for tick in inside if math.log10(tick) % 1 < 1e-9]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 6)
        return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def draw(plot: Plot, points: Sequence[Point]) -> str:
    """One plot; a point that was measured in several rounds is drawn at their median."""
    lines = _lines(points)
    across = Axis([x for line in lines.values() for x, _ in line], LEFT, WIDTH - RIGHT, plot.log_x)
    up = Axis([y for line in lines.values() for _, y in line], HEIGHT - BOTTOM, TOP, plot.log_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12"',
        'font-family="system-ui, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="600">{escape(plot.title)}</text>',
        *_grid(plot, across, up),
    ]
    ends = _apart([up.place(line[-1][1]) for line in lines.values()])
    for number, ((name, line), at) in enumerate(zip(lines.items(), ends, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in line)
        heavy = 2.6 if number == 0 else 1.4
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{heavy}"/>')
        parts += [
            f'<circle cx="{across.place(x):.1f}" cy="{up.place(y):.1f}" r="2.5" fill="{colour}"/>' for x, y in line
        ]
        parts.append(
            f'<text x="{across.place(line[-1][0]) + 8:.1f}" y="{at + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _lines(points: Sequence[Point]) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, dict[float, list[float]]] = {}
    for point in points:
        found.setdefault(point.line, {}).setdefault(point.x, []).append(point.y)
    return {name: sorted((x, statistics.median(ys)) for x, ys in line.items()) for name, line in found.items()}


def _grid(plot: Plot, across: Axis, up: Axis) -> list[str]:
    left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for tick in up.ticks():
        y = up.place(tick)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{_shown(tick)}</text>')
    for tick in across.ticks():
        x = across.place(tick)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#555">{_shown(tick)}</text>')
    middle = (left + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle" fill="#555">{escape(plot.x)}</text>')
    # Start at the left edge: there is little room before the axis.
    parts.append(f'<text x="8" y="{TOP - 6}" fill="#555">{escape(plot.y)}</text>')
    return parts


def _shown(tick: float) -> str:
    """Write a million as 1,000,000: `g` alone would write 1e+06."""
    return f"{tick:,.0f}" if tick >= 1 and tick == int(tick) else f"{tick:g}"


def _apart(places: Sequence[float]) -> list[float]:
    """The heights of the labels at the ends of the lines, moved so that none covers another."""
    moved = dict.fromkeys(range(len(places)), 0.0)
    last = -math.inf
    for number in sorted(moved, key=lambda index: places[index]):
        last = max(places[number], last + 14)
        moved[number] = last
    return list(moved.values())
