"""Every reducer case under agent-wire/: ordered wires in, exact state out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redkey.wire.canonical import canonical
from redkey.wire.catalogue import catalogue
from redkey.wire.validate import too_large, validate
from tests.harness.replays import replay
from tests.reducers import case

by_file = pytest.mark.parametrize("path", case.CASES, ids=lambda path: path.stem)


@by_file
def test_case_reduces_to_the_exact_state(path: Path) -> None:
    given = case.load(path)
    wires = case.Builder().wires(given["events"])
    found = case.outcome(replay(wires), wires)
    assert case.mismatch({"void": []} | given["expected"], found) == []


@by_file
def test_case_has_the_shape_of_the_seed_and_valid_wires(path: Path) -> None:
    given = case.load(path)
    assert list(given) == ["name", "events", "expected"]
    assert given["expected"]
    for wire in case.Builder().wires(given["events"]):
        assert validate(wire) == []
        assert too_large(canonical(wire)) == []


@by_file
def test_case_is_right_for_every_prefix_and_after_a_round_trip(path: Path) -> None:
    wires = case.Builder().wires(case.load(path)["events"])
    whole = canonical(replay(wires).as_json())
    for places in range(len(wires) + 1):
        begun = replay(wires, places=places)
        for wire in wires[places:]:
            begun.apply(wire)
        assert canonical(begun.as_json()) == whole
    assert canonical(replay(json.loads(json.dumps(wires))).as_json()) == whole


def test_cases_have_names_of_their_own() -> None:
    names = [case.load(path)["name"] for path in case.CASES]
    assert len(names) == len(set(names)) >= 50


def test_every_type_of_the_catalogue_has_a_default_payload_that_is_valid() -> None:
    assert set(case.TEMPLATES["payloads"]) == set(catalogue())
    for event in catalogue():
        assert validate(case.Builder().wire(event)) == []


def test_a_mismatch_is_seen() -> None:
    assert case.mismatch({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}) == []
    assert case.mismatch({"a": {}}, {"a": {"c": 2}}) == ["/a is {'c': 2}, expected {}"]
    assert case.mismatch({"a": 1}, {"a": True}) == ["/a is True, expected 1"]
    assert case.mismatch({"a": [1]}, {"a": [1, 2]}) == ["/a is [1, 2], expected [1]"]
    assert case.mismatch({"a": 1}, {}) == ["/a is missing"]
