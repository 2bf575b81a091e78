"""Every planted bug is found by simulation, within a bounded number of seeds."""

from __future__ import annotations

import pytest

from tests.bugzoo.bugs import BUGS
from tests.bugzoo.hunt import seeds_to_find
from tests.bugzoo.network_bugs import NETWORK_BUGS

MOST_SEEDS = 60


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    count, told = seeds_to_find(name, MOST_SEEDS)
    assert count, f"{name} was not found in {MOST_SEEDS} seeds"
    print(f"{name}: found after {count} seeds: {told}")


@pytest.mark.parametrize("name", NETWORK_BUGS)
def test_a_planted_bug_of_the_network_is_found(name: str) -> None:
    count, told = seeds_to_find(name, MOST_SEEDS, network=True)
    assert count, f"{name} was not found in {MOST_SEEDS} seeds"
    print(f"{name}: found after {count} seeds: {told}")


def test_nothing_is_found_where_nothing_was_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUGS, "none", lambda patch: None)
    monkeypatch.setitem(NETWORK_BUGS, "none", lambda patch: None)
    assert seeds_to_find("none", 20) == (0, "")
    assert seeds_to_find("none", 5, network=True) == (0, "")


def test_the_zoo_is_large_enough() -> None:
    assert len(BUGS) >= 20
