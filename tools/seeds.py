"""The table of the five seed documents: every requirement, and the tests that prove it.

The rows are data: one file for each seed under tests/seeds/rows. `python -m tools.seeds` writes docs/seeds.md from
them, `make verify` proves it current. `make seeds` runs exactly the named tests and prints the table with the result of
each row; tests/seeds/proofs.py judges the rows of every run.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = "tests/seeds/rows"
PAGE = "docs/seeds.md"
_HEAD = """\
<!-- Written by `python -m tools.seeds`; `make verify` proves it current. -->
# What is implemented

RedKey is built from five documents, the seeds. This page lists each of their requirements in our own words, and the
tests that prove it. `make seeds` runs exactly these tests and prints the table with the result of each row; `make test`
fails when a named test is missing or did not run. A row without a test is `open`, with the reason. Open rows are never
counted as done, and a test holds their number.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement of a seed: proved by tests, or open with a reason."""

    id: str
    seed: str
    section: str
    requirement: str
    tests: tuple[str, ...] = ()
    open: str = ""
    why: str = ""
    # Its tests run with the long tests only; elsewhere it is shown as skipped, and is not proved.
    long: bool = False


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed document and its rows, in the order of the document."""

    name: str
    title: str
    rows: tuple[Row, ...]


def seeds(folder: Path = ROOT / ROWS) -> list[Seed]:
    """Read the rows of every seed."""
    documents = []
    for path in sorted(folder.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        rows = tuple(
            Row(
                id=f"{path.stem}-{number}",
                seed=path.stem,
                section=row.pop("section"),
                requirement=row.pop("requirement"),
                tests=tuple(row.pop("tests", ())),
                **row,
            )
            for number, row in enumerate(table["rows"], 1)
        )
        documents.append(Seed(path.stem, table["title"], rows))
    return documents


def named_tests(documents: Iterable[Seed]) -> list[str]:
    """List every test that a row names, once."""
    return sorted({test for seed in documents for row in seed.rows for test in row.tests})


def page(documents: list[Seed]) -> str:
    """Render docs/seeds.md."""
    counts = ["| seed | requirements | proved by tests | open |", "|---|---:|---:|---:|"]
    tables = []
    for seed in documents:
        opened = sum(bool(row.open) for row in seed.rows)
        total = len(seed.rows)
        counts.append(f"| [{seed.name}](#{_anchor(seed)}) {seed.title} | {total} | {total - opened} | {opened} |")
        lines = [f"## {seed.name} {seed.title}", "", "| row | section | requirement | proved by |", "|---|---|---|---|"]
        lines += [
            f"| {row.id} | {_cell(row.section)} | {_cell(row.requirement)} | {_proof(row)} |" for row in seed.rows
        ]
        tables.append("\n".join(lines))
    total = sum(len(seed.rows) for seed in documents)
    opened = sum(bool(row.open) for seed in documents for row in seed.rows)
    counts.append(f"| all | {total} | {total - opened} | {opened} |")
    return "\n\n".join([_HEAD.rstrip(), "\n".join(counts), *tables]) + "\n"


def _anchor(seed: Seed) -> str:
    """Return the anchor that a Markdown viewer gives the heading of a seed."""
    heading = f"{seed.name} {seed.title}".lower()
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" * (letter == " ") for letter in heading)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _proof(row: Row) -> str:
    if row.open:
        return f"**open** ({row.open}): {_cell(row.why)}"
    proof = "<br>".join(f"`{_cell(test.removeprefix('tests/'))}`" for test in row.tests)
    return f"in the long tests: {proof}" if row.long else proof


def generated() -> dict[str, bytes]:
    """Return the page by its path from the root of the repository."""
    return {PAGE: page(seeds()).encode()}


def main(arguments: list[str]) -> int:
    """Write the page; with `run`, run the named tests and print the table."""
    if arguments[:1] == ["run"]:
        options = ["--seed-table", "-q", "-n", "2", "--dist", "loadgroup", *arguments[1:]]
        return pytest.main([*options, *named_tests(seeds())])
    for name, data in generated().items():
        (ROOT / name).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
