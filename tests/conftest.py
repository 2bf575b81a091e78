"""What all tests share: how hypothesis runs, and what a test run says at its end about its proofs."""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.seeds import proofs

# The conformance suite is a package of tests that others import: its assertions explain themselves too.
pytest.register_assert_rewrite("tests.conformance.stores")

# The ordinary run tries the same examples each time, so that what passed once passes again; the long run tries others.
# No deadline: the first example of a test may compile schemas, and machines are shared. No database: tests leave
# nothing behind in the checkout.
LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
settings.register_profile(
    "redkey",
    deadline=None,
    database=None,
    derandomize=not LONG,
    max_examples=2000 if LONG else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("redkey")


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    # Few tests need a database server, and its driver is slow to import.
    from tests.harness.postgres import database

    with database() as url:
        yield url


def pytest_addoption(parser: pytest.Parser) -> None:
    proofs.pytest_addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    proofs.pytest_configure(config)
    # A shell starts what it runs in the background with Ctrl-C ignored, and every process started from here would
    # inherit that: tests that interrupt a command would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Agents of workers and of MCP clients keep their keys in the state directory of the user: never in the real one.
    state = tempfile.TemporaryDirectory(prefix="rk-state")
    os.environ["XDG_STATE_HOME"] = state.name
    config.add_cleanup(state.cleanup)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much was proven, where a test says so, and every proof that did not run: never in silence."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    calls = [report for report in reports if getattr(report, "when", "") == "call"]
    told = [str(text) for report in calls for name, text in report.user_properties if name == "proven"]
    totals: Counter[str] = Counter()
    for report in calls:
        totals.update({name[6:]: number for name, number in report.user_properties if name.startswith("total ")})
    told += [f"{number:,} {what}, in all" for what, number in totals.items()]
    skipped = terminalreporter.stats.get("skipped", [])
    if told:
        terminalreporter.section("how much was proven")
        terminalreporter.write("".join(f"{line}\n" for line in sorted(told)))
    if skipped:
        terminalreporter.section("proofs that were not run")
        for report in skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            terminalreporter.write_line(f"{report.nodeid}: {reason}")
