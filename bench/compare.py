"""Compare this checkout with a commit: `python -m bench compare --base REV`.

Three servers run at once, each with its own data directory: the base, the base again, and this checkout. Every round
measures every case at all three in short alternating slices, so a busy second of the machine affects all of them. The
result is the ratio within a round, and the median of these ratios. The base compared with itself (A/A) shows how much
of a ratio is noise. Everything is on: see `crew`.
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
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import served
from bench.clocks import Spent, fsync_milliseconds, interpreter
from bench.crew import BATCH, ROLE, Agent, Crew, call, echo_lanes, follower
from bench.load import Work, milliseconds
from bench.served import ROOT, Served
from bench.trees import UnknownCommit, commit_of, files_of, is_changed
from bench.turns import Turns, alternate, turned

BASE, AGAIN, HEAD, PLAIN = "base", "base again", "head", "plain httptools"
ROUNDS, SECONDS, SLICES = 9, 0.9, 3
SLOTS, WORKER_QUEUE, WORKER_RATE = 8, "queue_worker", 300
PROGRAM_SECONDS = 120
_TOO_LITTLE = 0.1


@dataclass(frozen=True)
class Sample:
    """One case at one server in one round; microseconds are processor time of one cycle (or one echoed request).

    `cpu` is the server's whole process, the sum of `unit` (from its start until it is durable), `beyond` (the rest of
    the event loop) and `threads` (all other threads). `beyond` is the sum of `answering` (from the commit until every
    request and listener of the unit has its result, including replies that are written at once) and `outside` (the
    rest: read, authenticate, decode, handle). `units` is the number of units per cycle.
    """

    rate: float
    cpu: float
    unit: float
    beyond: float
    answering: float
    outside: float
    threads: float
    client: float
    units: float
    p50: float | None = None
    p99: float | None = None

    @classmethod
    def of(cls, cycles: int, seconds: float, client_seconds: float, cost: Spent, *times: float) -> Sample:
        beyond = cost.answer + cost.outside
        parts = (cost.process, cost.unit, beyond, cost.answer, cost.outside, cost.threads)
        microseconds = (part / cycles / 1e3 for part in parts)
        return cls(cycles / seconds, *microseconds, client_seconds / cycles * 1e6, cost.units / cycles, *times)


# The measures of a case: field, name, and whether less is better.
MEASURES = (
    ("rate", "cycles/s", False),
    ("cpu", "server CPU, us", True),
    ("unit", "  in the unit, us", True),
    ("beyond", "  beyond the unit, us", True),
    ("answering", "    answering, us", True),
    ("outside", "    the rest, us", True),
    ("threads", "  other threads, us", True),
    ("units", "units", True),
    ("client", "client CPU, us", True),
    ("p50", "a request, p50 ms", True),
    ("p99", "a request, p99 ms", True),
)
ECHO = "bare echo, a request"
ECHO_MEASURES = (("rate", "requests/s", False), ("cpu", "server CPU, us", True))

# case -> server -> its samples, one per round.
Samples = dict[str, dict[str, list[Sample]]]


class Case(NamedTuple):
    """What a number of agents repeat, and how many cycles one repetition has."""

    connections: int
    work: Callable[[Agent], Callable[[], Work]]
    cycles: int = 1


CASES = {
    "1 connection": Case(1, lambda agent: agent.cycle),
    "8 connections": Case(8, lambda agent: agent.cycle),
    "32 connections": Case(32, lambda agent: agent.cycle),
    f"batches of {BATCH}, 8 connections": Case(8, lambda agent: agent.batch, BATCH),
}
WORKER = f"rk.worker, {SLOTS} slots"


class Bench:
    """A server with its crew, and the program that works for it by `rk.worker`."""

    def __init__(self, server: Served, tree: Path) -> None:
        self.server, self._tree, self.crew = server, tree, Crew(server)
        call(server, "POST", "/queues", {"id": WORKER_QUEUE, "name": "Worker"})

    def worker(self, seconds: float) -> Sample:
        """Tasks through `rk.worker` of the server's own checkout."""
        tasks, warm = max(SLOTS, int(seconds * WORKER_RATE)), SLOTS * 2
        left = warm + tasks + SLOTS
        while left > 0:
            body = {"tasks": [self.crew.task] * min(left, BATCH)}
            call(self.server, "POST", f"/queues/{WORKER_QUEUE}/tasks/batch", body)
            left -= BATCH
        agent = self.crew.hire(1)[0]
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


def sampled(turns: Turns, cycles: int = 1) -> Sample:
    """The sample of all slices; `cycles` is the number of cycles per piece of work."""
    times = (milliseconds(turns.requests, 50), milliseconds(turns.requests, 99))
    return Sample.of(turns.works * cycles, turns.seconds, turns.client_seconds, turns.spent, *times)


@contextmanager
def servers(folder: Path, trees: Mapping[str, Path]) -> Iterator[tuple[dict[str, Bench], dict[str, Served]]]:
    """The servers by name, each with a follower, and the echo servers of the checkouts beside the plain one."""
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

    def keep(case: str, samples: Mapping[str, Sample]) -> None:
        for name, sample in samples.items():
            found.setdefault(case, {}).setdefault(name, []).append(sample)

    with servers(folder, trees) as (benches, echoes):
        for number in range(rounds):
            fsyncs.append(fsync_milliseconds(folder))
            for name, case in CASES.items():
                _progress(f"round {number + 1} of {rounds}: {name}")
                with ExitStack() as stack:
                    turns = {
                        at: Turns(one.server, stack.enter_context(one.crew.lanes(case.connections, case.work)))
                        for at, one in benches.items()
                    }
                    alternate(turns, SLICES, seconds / SLICES, number)
                keep(name, {at: sampled(one, case.cycles) for at, one in turns.items()})
            _progress(f"round {number + 1} of {rounds}: {WORKER}")
            keep(WORKER, {at: benches[at].worker(seconds) for at in turned(list(benches), number)})
            _progress(f"round {number + 1} of {rounds}: {ECHO}")
            with ExitStack() as stack:
                turns = {at: Turns(one, stack.enter_context(echo_lanes(one, 32))) for at, one in echoes.items()}
                alternate(turns, SLICES, seconds / SLICES / 2, number)
            keep(ECHO, {at: sampled(one) for at, one in turns.items()})
    _progress("")
    return found, fsyncs


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
    """The ratio of each round; none if there is too little to compare."""
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
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench compare", description="Compare this checkout with a commit.")
    parser.add_argument("--base", metavar="REV", required=True, help="the commit to compare with")
    parser.add_argument("--head", metavar="REV", help="a commit to measure in place of the files of this checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how many rounds ({ROUNDS})")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help=f"for each server and case of a round ({SECONDS:g})",
    )
    parser.add_argument("--json", action="store_true", help="print everything that was measured as JSON")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be positive")
    try:
        base, head = commit_of(options.base), commit_of(options.head or "HEAD")
    except UnknownCommit as unknown:
        parser.error(str(unknown))
    # A signal is handled like Ctrl-C: the servers are stopped and the files removed.
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
