"""The table of the seeds: every row has proofs that exist or is open with a reason, and runs are judged by it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.seeds.proofs import FAILED, NOT_RUN, OPEN, PROVED, SKIPPED, Outcomes, report, without_group
from tools.seeds import ROOT, Row, Seed, named_tests, page, seeds

SEEDS = seeds()
ROWS = [row for seed in SEEDS for row in seed.rows]
# How many rows are open, and for what. A number changes with the work that proves a row, and with nothing else.
OPEN_ROWS = {
    # Decided otherwise.
    "decided": 1,
}
# How many requirements each seed has.
REQUIREMENTS = {"000": 63, "001": 84, "002": 112, "003": 32, "004": 168}


def test_every_requirement_is_there_once() -> None:
    assert {seed.name: len(seed.rows) for seed in SEEDS} == REQUIREMENTS
    texts = Counter((row.seed, row.section, row.requirement) for row in ROWS)
    assert [text for text, number in texts.items() if number > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_has_proofs_or_is_open_with_a_reason(row: Row) -> None:
    assert row.section
    assert row.requirement
    assert bool(row.tests) != bool(row.open)
    assert bool(row.open) == bool(row.why)
    assert len(set(row.tests)) == len(row.tests)


def test_the_number_of_open_rows_is_the_known_one() -> None:
    assert Counter(row.open for row in ROWS if row.open) == OPEN_ROWS


_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _functions(file: str) -> frozenset[str]:
    """Return the tests of a file that always run, as `name` or `Class::name`."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, _FUNCTIONS)}
        if isinstance(node, _FUNCTIONS) and not any("xfail" in ast.unparse(mark) for mark in node.decorator_list):
            found.add(node.name)
    return frozenset(found)


def test_every_named_test_exists() -> None:
    parts = [(test, *test.partition("[")[0].split("::", 1)) for test in named_tests(SEEDS)]
    assert [test for test, file, name in parts if name not in _functions(file)] == []


def test_a_test_that_is_missing_is_noticed() -> None:
    assert "test_every_named_test_exists" in _functions("tests/seeds/test_table.py")
    assert "test_nothing" not in _functions("tests/seeds/test_table.py")
    assert _functions("tests/seeds/test_nowhere.py") == frozenset()


# --- how a run is judged ---


def _outcomes(*seen: tuple[str, str]) -> Outcomes:
    outcomes = Outcomes()
    for node, outcome in seen:
        outcomes.add(node, outcome)
    return outcomes


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        ([("a", "passed"), ("b[1]", "passed"), ("b[2]", "passed")], PROVED),
        ([("a", "passed"), ("b[1]", "passed"), ("b[2]", "skipped")], PROVED),
        ([("a", "passed"), ("b[1]", "passed"), ("b[2]", "failed")], FAILED),
        ([("a", "passed"), ("a", "failed"), ("b", "passed")], FAILED),
        ([("a", "passed"), ("b", "skipped")], SKIPPED),
        ([("a", "skipped")], NOT_RUN),
        ([("a", "passed")], NOT_RUN),
        ([], NOT_RUN),
        ([("a@group", "passed"), ("b[x@y]@group", "passed")], PROVED),
    ],
)
def test_a_row_is_what_the_worst_of_its_tests_is(seen: list[tuple[str, str]], verdict: str) -> None:
    assert _outcomes(*seen).judge(Row("000-1", "000", "s", "r", ("a", "b"))) == verdict


def test_an_open_row_is_never_proved_and_one_without_tests_is_red() -> None:
    outcomes = _outcomes(("a", "passed"))
    assert outcomes.judge(Row("000-1", "000", "s", "r", ("a",), "Hedera", "why")) == OPEN
    assert outcomes.judge(Row("000-1", "000", "s", "r")) == FAILED


def test_one_parameter_may_be_named() -> None:
    row = Row("000-1", "000", "s", "r", ("b[1]",))
    assert _outcomes(("b[1]", "passed"), ("b[2]", "failed")).judge(row) == PROVED
    assert _outcomes(("b[2]", "passed")).judge(row) == NOT_RUN


@pytest.mark.parametrize("node", ["f::t", "f::t[a@b]", "f::t[x]", "f@x::t[a]"])
def test_only_the_group_of_xdist_is_removed(node: str) -> None:
    assert without_group(node) == node
    assert without_group(f"{node}@group") == node


def test_the_table_names_what_is_red_and_counts_everything() -> None:
    rows = (
        Row("9-1", "9", "One", "It works", ("a",)),
        Row("9-2", "9", "One", "It is fast", ("b",)),
        Row("9-3", "9", "Two", "It scales", (), "Hedera", "no network"),
    )
    lines = report([Seed("9", "Nine", rows)], _outcomes(("a", "passed")), whole=False)
    assert lines[:2] == ["9-2     not run   One: It is fast", " " * 18 + "not run: b"]
    assert lines[-1].split() == ["all", "3", "1", "1", "0", "1", "0"]
    whole = report([Seed("9", "Nine", rows)], _outcomes(("a", "passed")), whole=True)
    assert [line.split()[0] for line in whole if line.startswith("9-")] == ["9-1", "9-2", "9-3"]
    text = page([Seed("9", "Nine", rows)])
    assert "| 9-3 | Two | It scales | **open** (Hedera): no network |" in text
    assert "| all | 3 | 2 | 1 |" in text


def _run(folder: Path, source: str, *arguments: str, row: str = "", **environment: str) -> tuple[int, str]:
    """Run one file of tests in a folder of its own, with one row that names `test_a` of it; exit code and output."""
    (folder / "rows").mkdir()
    table = 'title = "T"\n[[rows]]\nsection = "S"\nrequirement = "R"\ntests = ["test_it.py::test_a"]\n'
    (folder / "rows" / "9.toml").write_text(table + row)
    (folder / "test_it.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = .\n")
    plugins = ["tests.seeds.proofs", "xdist", "no:cacheprovider"]
    options = [part for plugin in plugins for part in ("-p", plugin)]
    command = [sys.executable, "-m", "pytest", "-q", *options, "--seed-rows", str(folder / "rows"), *arguments]
    # Loading the plugins of everything that is installed takes longer than the run.
    plain = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": "", "REDKEY_TEST_LONG": ""}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **plain, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("def test_a(): pass", 0, "proved"),
        ("def test_a(): assert False", 1, "failed"),
        ("def test_b(): pass", 1, "not run"),
        ("import pytest\ndef test_a(): pytest.skip('no Node')", 0, "skipped"),
    ],
)
def test_a_run_with_workers_fails_when_a_row_is_red(source: str, code: int, said: str, tmp_path: Path) -> None:
    found, output = _run(tmp_path, source, "--seed-table", "-n", "1")
    assert found == code, output
    assert f"9-1     {said}" in output


@pytest.mark.parametrize(("row", "long", "code"), [("", "", 1), ("long = true\n", "", 0), ("long = true\n", "1", 1)])
def test_a_skipped_row_fails_a_run_that_checks_for_others(row: str, long: str, code: int, tmp_path: Path) -> None:
    source = "import pytest\ndef test_a(): pytest.skip('no Node')"
    found, output = _run(tmp_path, source, "--seed-table", row=row, CI="true", REDKEY_TEST_LONG=long)
    assert found == code, output
    assert "9-1     skipped" in output


@pytest.mark.parametrize(
    ("arguments", "code"), [((), 1), (("-k", "test_b"), 0), (("test_it.py",), 0), (("--collect-only",), 0)]
)
def test_a_run_of_the_whole_suite_demands_every_row_and_a_narrower_one_does_not(
    arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    found, output = _run(tmp_path, "def test_b(): pass", *arguments)
    assert found == code, output
    assert ("requirements of the seeds" in output) == bool(code)
