"""The page of a run: every figure as the median of its rounds with its spread, as Markdown, as JSON and as plots."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import statistics
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import Figure, Run
from bench.clocks import interpreter
from bench.plots import PLOTS, draw

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA, PICTURES = ROOT / "bench" / "RESULTS.md", ROOT / "bench" / "results.json", ROOT / "docs" / "plots"


def title(module: ModuleType) -> str:
    """The title of a module's measurements: the first line of its docstring."""
    return (module.__doc__ or "").strip().splitlines()[0].rstrip(".")


def write(run: Run, sections: Mapping[str, str], rounds: int, load: float, seconds: float) -> list[Path]:
    """Write the page, its data and its plots; return the paths, relative to the checkout."""
    machine = {
        **_machine(),
        "load before the run": f"{load:.1f}",
        "rounds": str(rounds),
        "minutes": f"{seconds / 60:.1f}",
    }
    pages = ["# Results", "", _INTRODUCTION, "", *(f"- {name}: {value}" for name, value in machine.items()), ""]
    for name, words in sections.items():
        pages += _section(run, name, words)
    written = [PAGE, DATA]
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, plot in PLOTS.items():
        points = [point for point in run.points if point.plot == name]
        if points:
            path = PICTURES / f"{name}.svg"
            path.write_text(draw(plot, points))
            pages += [f"![{plot.title}](../docs/plots/{name}.svg)", ""]
            written.append(path)
    PAGE.write_text("\n".join(pages).rstrip() + "\n")
    data = {"machine": machine, "figures": [_summary(group) for group in _groups(run.figures)]}
    DATA.write_text(json.dumps({**data, "points": [asdict(point) for point in run.points]}, indent=1) + "\n")
    return [path.relative_to(ROOT) for path in written]


def write_sections(run: Run, sections: Mapping[str, str], load: float) -> list[Path]:
    """Replace some sections of the page and of its data, each with a note of when it was measured; return the paths."""
    commit, today = _machine()["commit"], datetime.now(UTC).date().isoformat()
    head, *parts = re.split(r"(?m)^(?=## )", PAGE.read_text())
    texts = {part[3:].partition("\n")[0]: part for part in parts}
    last, mark, plots = parts[-1].partition("![")
    texts[last[3:].partition("\n")[0]] = last
    for name, words in sections.items():
        note = f"Measured alone on {today}, commit {commit}, load {load:.1f} before the run."
        run.notes.append((name, note))
        texts[name] = "\n".join(_section(run, name, words)) + "\n"
    PAGE.write_text("".join([head, *(texts[name] for name in sorted(texts)), mark, plots]))
    data = json.loads(DATA.read_text())
    kept = [figure for figure in data["figures"] if figure["section"] not in sections]
    measured = [_summary(group) for group in _groups(run.figures)]
    data["figures"] = sorted([*kept, *measured], key=lambda figure: figure["section"])
    DATA.write_text(json.dumps(data, indent=1) + "\n")
    return [path.relative_to(ROOT) for path in (PAGE, DATA)]


_INTRODUCTION = """\
Written by `make bench`. A figure is the median of its rounds, with the lowest and the highest; modules take turns, so
that a busy minute of the machine affects them all. *Share* is the figure divided by its yardstick in the same round or
turn, as the median of these ratios with the lowest and the highest: only shares can be compared between machines. A
share of something that waits for the disk depends on *fsync*, the median time of a lone write and fsync of 700 bytes
just before, and on the build of the interpreter. A/A compares a thing with itself: it shows how much of a share is
noise."""


def _section(run: Run, name: str, words: str) -> Iterable[str]:
    groups = [group for group in _groups(run.figures) if group[0].section == name]
    notes = [text for section, text in run.notes if section == name]
    if not groups and not notes:
        return
    yield from (f"## {name}", "", f"{words}.", "")
    if any(figure.beside for group in groups for figure in group):
        yield from (f"Interpreter: {interpreter()}.", "")
    if groups:
        yield from ("| what | median | spread | share | fsync | aim | |", "|---|---:|---:|---:|---:|---:|---|")
        yield from (_line(_summary(group)) for group in groups)
        yield ""
    yield from (f"- {text}" for text in notes)
    if notes:
        yield ""


def _groups(figures: Iterable[Figure]) -> list[list[Figure]]:
    """The figures of all rounds grouped by subject, in the order in which the subjects were measured."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        found.setdefault((figure.section, figure.what), []).append(figure)
    return list(found.values())


def _summary(group: list[Figure]) -> dict[str, Any]:
    first, values = group[0], [figure.value for figure in group]
    shares = [figure.value / figure.beside for figure in group if figure.beside]
    said = {"section": first.section, "what": first.what, "unit": first.unit, "rounds": len(group)}
    said |= {"median": statistics.median(values), "low": min(values), "high": max(values)}
    said |= {"share": statistics.median(shares) if shares else None}
    said |= {"share_low": min(shares, default=None), "share_high": max(shares, default=None)}
    fsyncs = [figure.fsync_ms for figure in group if figure.fsync_ms is not None]
    said |= {"fsync_ms": statistics.median(fsyncs) if shares and fsyncs else None}
    said |= {"aim": first.aim, "share_aim": first.share_aim, "reached": _reached(said, first)}
    return said


def _reached(said: Mapping[str, Any], first: Figure) -> bool | None:
    """Whether every target was reached; None if there is none."""
    pairs = [(said["median"], first.aim), (said["share"], first.share_aim)]
    judged = [
        value <= aim if first.least else value >= aim for value, aim in pairs if aim is not None and value is not None
    ]
    return all(judged) if judged else None


def _line(said: Mapping[str, Any]) -> str:
    unit = said["unit"] if said["unit"].startswith("/") else f" {said['unit']}"
    aims = [f"{said['aim']:,g}{unit}"] if said["aim"] is not None else []
    aims += [f"share {said['share_aim']:g}"] if said["share_aim"] is not None else []
    share = f"{said['share']:.2f}" if said["share"] is not None else ""
    if share and said["rounds"] > 1:
        share += f" ({said['share_low']:.2f} to {said['share_high']:.2f})"
    fsync = f"{said['fsync_ms']:.2f} ms" if said["fsync_ms"] is not None else ""
    mark = {True: "reached", False: "**missed**", None: ""}[said["reached"]]
    what = said["what"].replace("|", "\\|")
    spread = f"{_shown(said['low'])} to {_shown(said['high'])}" if said["rounds"] > 1 else "one round"
    return f"| {what} | {_shown(said['median'])}{unit} | {spread} | {share} | {fsync} | {', '.join(aims)} | {mark} |"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _machine() -> dict[str, str]:
    names = ("uvloop", "httptools", "orjson", "msgspec", "jsonschema-rs", "cryptography")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    return {
        "machine": f"{os.cpu_count()} processors ({platform.machine()}), {platform.system()} {platform.release()}",
        "interpreter": interpreter(),
        "SQLite": f"{sqlite3.sqlite_version}, WAL, synchronous=FULL",
        "libraries": ", ".join(f"{name} {version(name)}" for name in names),
        "commit": commit.strip() or "not a checkout",
    }
