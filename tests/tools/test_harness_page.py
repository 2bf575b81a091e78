"""The page of the test harnesses names every module of their folder, and no other."""

from __future__ import annotations

import re
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[1] / "harness"


def modules() -> set[str]:
    return {path.stem for path in HARNESS.glob("*.py")} - {"__init__"}


def named(page: str) -> set[str]:
    """Return the words in code marks, without what follows a dot."""
    return {name.partition(".")[0] for name in re.findall(r"`([^`]+)`", page)}


def test_every_module_is_named() -> None:
    assert modules() - named((HARNESS / "README.md").read_text()) == set()


def test_the_first_column_after_the_question_names_only_modules() -> None:
    cells = [line.split("|")[2] for line in (HARNESS / "README.md").read_text().splitlines() if line.startswith("| ")]
    assert len(cells) > 10
    fixtures = {"postgres_url"}
    assert named(" ".join(cells)) - fixtures - modules() == set()
