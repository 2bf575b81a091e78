"""Compare this checkout with a commit: `python -m bench compare --base REV`.

Three servers run at once, each with its own data directory: the base, the base again, and this checkout. Every round
measures every case at all three, one right after the other and in another order each round, so a busy minute of the
machine touches all of them. What counts is the ratio within a round, and the median of these. The base against itself
(A/A) shows how much of a ratio is noise. Everything is on: see `crew`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import served
from bench.clocks import Spent, fsync_milliseconds, interpreter
from bench.crew import BATCH, ROLE, TASK, Agent, Crew, call, echo_lanes, follower
from bench.load import Lane, Work, drive, milliseconds
from bench.served import ROOT, Served
from bench.trees import UnknownCommit, commit_of, files_of, is_changed

BASE, AGAIN, HEAD, PLAIN = "base", "base again", "head", "plain httptools"
# Many short rounds: what else the machine does changes within seconds.
ROUNDS, SECONDS, WARM_SECONDS = 9, 0.8, 0.2
CONNECTIONS = (1, 8, 32)
ECHO_CONNECTIONS = 32
SLOTS, WORKER_QUEUE, WORKER_RATE = 8, "queue_worker", 300
PROGRAM_SECONDS = 120
_TOO_LITTLE = 0.1


@dataclass(frozen=True)
class Sample:
    """One case at one server in one round; microseconds are processor time of one cycle (or one echoed request).

    `cpu` is the server's whole process and the sum of `unit` (open to durable), `answering` (from the commit until
    every request and listener of the unit has its result), `outside` (the rest of the event loop: read,
    authenticate, decode, handle, reply) and `threads` (everything beside the event loop). `units` is how many units
    of work a cycle took.
    """

    rate: float
    cpu: float
    unit: float
    answering: float
    outside: float
    threads: float
    client: float
    units: float
    p50: float | None = None
    p99: float | None = None

    @classmethod
    def of(cls, cycles: int, seconds: float, client_seconds: float, cost: Spent, *times: float) -> Sample:
        parts = (cost.process, cost.unit, cost.answer, cost.outside, cost.threads)
        microseconds = (part / cycles / 1e3 for part in parts)
        return cls(cycles / seconds, *microseconds, client_seconds / cycles * 1e6, cost.units / cycles, *times)


# What is shown of a case: the field, its name, and whether less is better.
MEASURES = (
    ("rate", "cycles/s", False),
    ("cpu", "server CPU, us", True),
    ("outside", "  outside the unit, us", True),
    ("answering", "  answering, us", True),
    ("unit", "  in the unit, us", True),
    ("threads", "  other threads, us", True),
    ("units", "units", True),
    ("client", "client CPU, us", True),
    ("p50", "a request, p50 ms", True),
    ("p99", "a request, p99 ms", True),
)
ECHO = "bare echo, a request"
ECHO_MEASURES = (("rate", "requests/s", False), ("cpu", "server CPU, us", True))

# case -> server -> its samples, one a round.
Samples = dict[str, dict[str, list[Sample]]]


class Bench:
    """A server with its crew; the cases are its methods."""

    def __init__(self, server: Served, tree: Path) -> None:
        self.server, self._tree, self._crew = server, tree, Crew(server)
        call(server, "POST", "/queues", {"id": WORKER_QUEUE, "name": "Worker"})

    def cycles(self, count: int, seconds: float) -> Sample:
        """Single cycles by so many connections."""
        return self._driven(count, lambda agent: agent.cycle, seconds, 1)

    def batches(self, seconds: float) -> Sample:
        """Batches of tasks by 8 connections."""
        return self._driven(8, lambda agent: agent.batch, seconds, BATCH)

    def _driven(self, count: int, work: Callable[[Agent], Callable[[], Work]], seconds: float, each: int) -> Sample:
        with self._crew.lanes(count, work) as lanes:
            return measured(self.server, lanes, seconds, each)

    def worker(self, seconds: float) -> Sample:
        """Tasks through `rk.worker` of the server's own checkout."""
        tasks, warm = max(SLOTS, int(seconds * WORKER_RATE)), SLOTS * 2
        left = warm + tasks + SLOTS
        while left > 0:
            body = {"tasks": [{**TASK, "requiredRoles": [ROLE]}] * min(left, BATCH)}
            call(self.server, "POST", f"/queues/{WORKER_QUEUE}/tasks/batch", body)
            left -= BATCH
        agent = self._crew.hire(1)[0]
        asked = {"url": self.server.url, "key": agent.key, "agent": agent.agent_id, "queue": WORKER_QUEUE}
        asked |= {"role": ROLE, "slots": SLOTS, "warm": warm, "tasks": tasks}
        asked |= {"pid": self.server.process.pid, "cells": str(self.server.cells)}
        ended = subprocess.run(
            [sys.executable, "-m", "bench.worker_load", json.dumps(asked)],
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
            cwd=self._tree / "src",
            env=served.environment([self._tree / "src", ROOT]),
        )
        if ended.returncode:
            raise RuntimeError(f"rk.worker failed: {ended.stderr.strip()[-1000:]}")
        found = json.loads(ended.stdout)
        return Sample.of(found["works"], found["seconds"], found["client_seconds"], Spent(**found["spent"]))


def measured(server: Served, lanes: list[Lane], seconds: float, each: int = 1) -> Sample:
    """Warm up, then measure; `each` is how many cycles a piece of work has."""
    drive(lanes, WARM_SECONDS)
    before = server.spent
    load = drive(lanes, seconds)
    cost = server.spent - before
    times = (milliseconds(load.requests, 50), milliseconds(load.requests, 99))
    return Sample.of(len(load.works) * each, load.seconds, load.client_seconds, cost, *times)


def cases(seconds: float) -> dict[str, Callable[[Bench], Sample]]:
    """What is measured at each server, by name."""

    def connected(count: int) -> Callable[[Bench], Sample]:
        return lambda bench: bench.cycles(count, seconds)

    found = {f"{count} connection{'s' if count > 1 else ''}": connected(count) for count in CONNECTIONS}
    found[f"batches of {BATCH}, 8 connections"] = lambda bench: bench.batches(seconds)
    found[f"rk.worker, {SLOTS} slots"] = lambda bench: bench.worker(seconds)
    return found


@contextmanager
def servers(folder: Path, trees: Mapping[str, Path]) -> Iterator[tuple[dict[str, Bench], dict[str, Served]]]:
    """The servers by name, each with a follower, and the echoes of the checkouts beside the plain one."""
    with ExitStack() as stack:
        benches, echoes = dict[str, Bench](), dict[str, Served]()
        for name, tree in trees.items():
            (own := folder / name.replace(" ", "-")).mkdir()
            server = stack.enter_context(served.redkey(own, tree=tree, watched="unit"))
            stack.enter_context(follower(server))
            benches[name] = Bench(server, tree)
            echoes[name] = stack.enter_context(served.echo(own, tree=tree))
        echoes[PLAIN] = stack.enter_context(served.plain_echo(folder))
        yield benches, echoes


def measure(folder: Path, trees: Mapping[str, Path], rounds: int, seconds: float) -> tuple[Samples, list[float]]:
    """Every case at every server in every round, and the latency of an fsync in each round."""
    found: Samples = {}
    fsyncs: list[float] = []
    with servers(folder, trees) as (benches, echoes):
        for number in range(rounds):
            fsyncs.append(fsync_milliseconds(folder))
            for case, work in cases(seconds).items():
                for name in _turned(list(benches), number):
                    _progress(f"round {number + 1} of {rounds}: {case}, {name}")
                    found.setdefault(case, {}).setdefault(name, []).append(work(benches[name]))
            for name in _turned(list(echoes), number):
                _progress(f"round {number + 1} of {rounds}: echo, {name}")
                with ExitStack() as stack:
                    lanes = echo_lanes(echoes[name], ECHO_CONNECTIONS)
                    for lane in lanes:
                        stack.enter_context(closing(lane))
                    sample = measured(echoes[name], lanes, seconds / 2)
                found.setdefault(ECHO, {}).setdefault(name, []).append(sample)
    _progress("")
    return found, fsyncs


def _turned(names: list[str], number: int) -> list[str]:
    """Another order each round: who comes first has another machine than who comes last."""
    at = number % len(names)
    return names[at:] + names[:at]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def summary(samples: Samples) -> list[dict[str, Any]]:
    """One entry for each measure of each case: medians, the ratio of each round, and the A/A ratios."""
    found = []
    for case, by_server in samples.items():
        for field, words, least in ECHO_MEASURES if case == ECHO else MEASURES:
            values = {name: [getattr(one, field) for one in every] for name, every in by_server.items()}
            if any(value is None for every in values.values() for value in every):
                continue
            entry = {"case": case, "measure": field, "words": words, "less_is_better": least}
            entry |= {"median": {name: median(every) for name, every in values.items()}}
            ratios, control = _ratios(values[HEAD], values[BASE]), _ratios(values[AGAIN], values[BASE])
            entry |= {"ratios": ratios, "ratio": median(ratios) if ratios else None}
            entry |= {"a_a": control, "a_a_ratio": median(control) if control else None}
            found.append(entry)
    return found


def _ratios(values: list[float], besides: list[float]) -> list[float]:
    """The ratio of each round; none where there is too little to compare."""
    pairs = list(zip(values, besides, strict=True))
    return [value / beside for value, beside in pairs] if min(besides) > _TOO_LITTLE else []


def show(report: Mapping[str, Any]) -> str:
    """The report as text."""
    lines = [
        f"base  {report['base']}",
        f"head  {report['head']}",
        f"{report['interpreter']}; {report['processors']} processors, load {report['load']:.1f} before the run",
        f"fsync of 700 bytes: {_listed(report['fsync_ms'])} ms in the rounds, median {median(report['fsync_ms']):.2f}",
        "Ratios are head over base within a round; A/A is the base's second server over its first.",
    ]
    case = ""
    for entry in report["summary"]:
        if entry["case"] != case:
            case = entry["case"]
            lines += ["", f"{case:<28}{'base':>9}{'head':>9}{'ratio':>8}  {'A/A':<20}ratio of each round"]
        line = f"  {entry['words']:<26}{_shown(entry['median'][BASE]):>9}{_shown(entry['median'][HEAD]):>9}"
        if entry["ratio"] is not None:
            spread = f"{entry['a_a_ratio']:.2f} ({min(entry['a_a']):.2f}-{max(entry['a_a']):.2f})"
            line += f"{entry['ratio']:>8.2f}  {spread:<20}{_listed(entry['ratios'])}"
        lines.append(line)
        if case == ECHO and entry["measure"] == "cpu":
            lines.append(f"  {PLAIN + ', us':<26}{_shown(entry['median'][PLAIN]):>9}")
    return "\n".join(lines)


def _listed(values: list[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def run(arguments: list[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench compare", description="Compare this checkout with a commit.")
    parser.add_argument("--base", metavar="REV", required=True, help="the commit to compare with")
    parser.add_argument("--head", metavar="REV", help="a commit to measure in place of the files of this checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how many rounds ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long each measurement takes ({SECONDS:g})")
    parser.add_argument("--json", action="store_true", help="print everything that was measured as JSON")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be positive")
    try:
        base, head = commit_of(options.base), commit_of(options.head or "HEAD")
    except UnknownCommit as unknown:
        parser.error(str(unknown))
    # Ended from outside is like Ctrl-C: the servers are stopped and the files removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = _report(options, base, head)
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 130
    print(json.dumps(report, indent=1) if options.json else show(report))
    return 0


def _report(options: argparse.Namespace, base: str, head: str) -> dict[str, Any]:
    changed, load = not options.head and is_changed(), os.getloadavg()[0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redkey-bench-")))
        base_tree = stack.enter_context(files_of(base))
        head_tree = stack.enter_context(files_of(head)) if options.head else ROOT
        trees = {BASE: base_tree, AGAIN: base_tree, HEAD: head_tree}
        samples, fsyncs = measure(folder, trees, options.rounds, options.seconds)
    return {
        "base": base,
        "head": head + (" with changes that are not committed" if changed else ""),
        "interpreter": interpreter(),
        "processors": os.cpu_count(),
        "load": load,
        "fsync_ms": fsyncs,
        "summary": summary(samples),
        "samples": {
            case: {name: [asdict(one) for one in every] for name, every in by_server.items()}
            for case, by_server in samples.items()
        },
    }
