"""A pytest plugin that tells of every row of the seeds what came of its tests.

It collects the outcome of each test where the reports arrive: in the one process of a plain run, in the controller of a
run with workers. At the end it judges the rows. A run of the whole suite, and `make seeds`, fail when a row failed or
when one of its tests did not run; a narrower run only prints counts. With `CI` set a row whose tests were skipped fails
too: a machine that checks for others must have what every test needs. Rows that only the long tests prove are shown as
skipped in other runs.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tools.seeds import ROOT, ROWS, Row, Seed, seeds

# What can come of a row, from good to bad. `skipped` is not proved: the machine lacks what the test needs.
PROVED, OPEN, SKIPPED, NOT_RUN, FAILED = "proved", "open", "skipped", "not run", "failed"
RED = (NOT_RUN, FAILED)
_LONG = os.environ.get("REDKEY_TEST_LONG") == "1"


class Outcomes:
    """The outcomes of tests, by their full node ids and by their names without parameters."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def add(self, node: str, outcome: str) -> None:
        """Note one outcome; a parametrised test counts under its own id and under the bare name."""
        node = without_group(node)
        for name in {node, node.partition("[")[0]}:
            self._seen.setdefault(name, set()).add(outcome)

    def of(self, test: str) -> str:
        """Return the outcome of a named test; of several parameters one failure decides, and one must have passed."""
        seen = self._seen.get(test, set())
        if "failed" in seen:
            return FAILED
        if "passed" in seen:
            return PROVED
        return SKIPPED if "skipped" in seen else NOT_RUN

    def judge(self, row: Row) -> str:
        """Return what came of a row: the worst of its tests."""
        if row.open:
            return OPEN
        order = (PROVED, SKIPPED, NOT_RUN, FAILED)
        return max((self.of(test) for test in row.tests), key=order.index, default=FAILED)


def without_group(node: str) -> str:
    """Remove the group that xdist appends to the ids of tests that share a worker."""
    head, _, group = node.rpartition("@")
    return head if head and "]" not in group and ("[" not in head or head.endswith("]")) else node


class SeedProofs:
    """The plugin. It works in the process that gets all reports."""

    def __init__(self, folder: Path, demanded: bool, table: bool) -> None:
        self._seeds = seeds(folder)
        self._demanded = demanded
        self._red = (*RED, SKIPPED) if os.environ.get("CI") else RED
        self._table = table
        self._outcomes = Outcomes()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ended; a failing setup or teardown is a failure of the test."""
        if report.when == "call" or report.outcome != "passed":
            self._outcomes.add(report.nodeid, report.outcome)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run when every row was demanded and one is red."""
        red = any(self._is_red(row) for seed in self._seeds for row in seed.rows)
        if self._demanded and red and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _is_red(self, row: Row) -> bool:
        verdict = self._outcomes.judge(row)
        return verdict in (RED if row.long and not _LONG else self._red)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the counts; the rows that are red or skipped; with `--seed-table`, every row."""
        if not self._demanded:
            return
        terminalreporter.section("requirements of the seeds")
        for line in report(self._seeds, self._outcomes, whole=self._table):
            terminalreporter.write_line(line)


def report(found: list[Seed], outcomes: Outcomes, *, whole: bool) -> list[str]:
    """Return the table and its counts as lines of text."""
    lines = []
    for seed in found:
        for row in seed.rows:
            verdict = outcomes.judge(row)
            if whole or verdict in (*RED, SKIPPED):
                lines.append(f"{row.id:<8}{verdict:<8}  {row.section}: {row.requirement}")
            if verdict == OPEN and whole:
                lines.append(f"{'':<18}{row.open}: {row.why}")
            if verdict in (*RED, SKIPPED):
                lines += [f"{'':<18}{outcomes.of(test)}: {test}" for test in row.tests if outcomes.of(test) != PROVED]
    lines.append(f"{'seed':<6}{'rows':>6}" + "".join(f"{word:>9}" for word in (PROVED, OPEN, SKIPPED, NOT_RUN, FAILED)))
    total: Counter[str] = Counter()
    for seed in found:
        counts = Counter(outcomes.judge(row) for row in seed.rows)
        total += counts
        lines.append(_counts(seed.name, counts))
    return [*lines, _counts("all", total)]


def _counts(name: str, counts: Counter[str]) -> str:
    words = (PROVED, OPEN, SKIPPED, NOT_RUN, FAILED)
    return f"{name:<6}{counts.total():>6}" + "".join(f"{counts[word]:>9}" for word in words)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make seeds` uses."""
    parser.addoption(
        "--seed-table", action="store_true", help="demand every row of the seeds and print the whole table"
    )
    parser.addoption("--seed-rows", default=str(ROOT / ROWS), help="the folder with the rows of the seeds")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin where reports arrive; a run of the whole suite demands every row."""
    if hasattr(config, "workerinput"):
        return
    option = config.option
    narrowed = (
        option.keyword or option.markexpr or option.deselect or option.collectonly or getattr(option, "lf", False)
    )
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS and not narrowed
    plugin = SeedProofs(Path(option.seed_rows), whole or option.seed_table, option.seed_table)
    config.pluginmanager.register(plugin, "seed-proofs")
