"""Every fixture of Agent Wire 1.0, Agent Cards and steps gives the result in its name and expectations.json.

Which ways there are to be wrong is derived from the schemas, so a new field without an invalid fixture fails here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from redkey.errors import Finding, WireRefused
from redkey.wire import files
from redkey.wire.card import read_card, validate_card
from redkey.wire.decode import decode
from redkey.wire.legacy import read_wire_1_0, validate_wire_1_0
from redkey.wire.lint import lint_card, lint_wire, read_registry
from redkey.wire.schema import compile_schema
from redkey.wire.step import check_step, validate_step
from tests.wire.derive import Way, keywords, ways

# Longer texts are broken in memory only: a fixture of megabytes teaches nobody anything.
LONGEST_FIXTURE_TEXT = 4096
REGISTRY = read_registry(files.load("fixtures/cards/registry.json"))


@dataclass(frozen=True)
class Family:
    """A folder of fixtures, and the check for each stage."""

    folder: str
    judge: Callable[[str, Any], list[Finding]]
    lint: Callable[[Any], list[Finding]]
    # schema file -> the fixtures that together have every property of it.
    full: dict[str, tuple[str, ...]]
    strict: Callable[[str, Any], list[Finding]]
    # Keywords that older forms may break: the tolerant reader mends those documents (see migrations/).
    tolerated: frozenset[str] = frozenset()


def _check_step(name: str, value: Any) -> list[Finding]:
    return [finding for finding in check_step(value)[1] if finding.severity == "error"]


def _check_card(name: str, value: Any) -> list[Finding]:
    if name.startswith("registry"):
        return compile_schema("definitions/cards/registry.schema.json").findings(value)
    return validate_card(value)


FAMILIES = {
    "1.0": Family(
        "fixtures/agent-wire/v1.0",
        lambda name, value: validate_wire_1_0(value),
        lambda value: lint_wire(read_wire_1_0(value)),
        {
            f"definitions/wire/{kind}.schema.json": (f"{kind}.valid.json",)
            for kind in ("brief", "inbox", "complete", "blocked", "claim")
        },
        lambda schema, value: compile_schema(schema).findings(value),
    ),
    "cards": Family(
        "fixtures/cards",
        _check_card,
        lambda value: lint_card(read_card(value), REGISTRY),
        {
            "definitions/cards/agent-card.schema.json": ("card.valid.json", "card.valid-example-list.json"),
            "definitions/cards/registry.schema.json": ("registry.json",),
        },
        lambda schema, value: compile_schema(schema).findings(value),
    ),
    "steps": Family(
        "fixtures/agent-protocol",
        _check_step,
        lambda value: [],
        {
            "definitions/step/input.schema.json": ("input.valid.json", "input.valid-path-list.json"),
            "definitions/step/output.schema.json": ("output.valid.json",),
        },
        lambda schema, value: validate_step(value, "input" if "input" in schema else "output"),
        frozenset(
            {
                "definitions/step/input.schema.json#/additionalProperties",
                "definitions/step/input.schema.json#/$defs/context/additionalProperties",
                "definitions/step/input.schema.json#/$defs/task/additionalProperties",
                "definitions/step/output.schema.json#/additionalProperties",
                "definitions/step/output.schema.json#/$defs/artifact/required/operation",
            }
        ),
    ),
}


def _load(family: Family, name: str) -> Any:
    return decode((files.root() / family.folder / name).read_bytes())


def _names(word: str) -> list[tuple[str, str]]:
    return [
        (key, name)
        for key, family in FAMILIES.items()
        for name in files.names(family.folder, ".json")
        if f".{word}" in name
    ]


def _expectations(family: Family) -> dict[str, dict[str, str]]:
    expected: dict[str, dict[str, str]] = _load(family, "expectations.json")
    return expected


def _derived() -> list[tuple[str, str, Way]]:
    return [
        (key, schema, way)
        for key, family in FAMILIES.items()
        for schema, full in family.full.items()
        for name in full
        for way in ways(schema, _load(family, name))
    ]


@pytest.mark.parametrize(("key", "name"), _names("valid"))
def test_a_valid_fixture_is_valid_and_breaks_no_rule(key: str, name: str) -> None:
    family = FAMILIES[key]
    value = _load(family, name)
    assert family.judge(name, value) == []
    assert family.lint(value) == []


@pytest.mark.parametrize(("key", "name"), _names("invalid"))
def test_an_invalid_fixture_fails_for_the_expected_reason(key: str, name: str) -> None:
    family = FAMILIES[key]
    expected = _expectations(family)[name]
    found = family.judge(name, _load(family, name))
    assert (expected["code"], expected["pointer"]) in {(finding.code, finding.pointer) for finding in found}
    # Only what the name says is wrong: everything that was found is about that one place.
    assert {finding.pointer for finding in found} == {expected["pointer"]}


@pytest.mark.parametrize(("key", "name"), _names("lint"))
def test_a_lint_fixture_is_valid_and_breaks_the_one_rule(key: str, name: str) -> None:
    family = FAMILIES[key]
    expected = _expectations(family)[name]
    value = _load(family, name)
    assert family.judge(name, value) == []
    assert [(finding.code, finding.pointer) for finding in family.lint(value)] == [
        (expected["code"], expected["pointer"])
    ]


@pytest.mark.parametrize("key", FAMILIES)
def test_expectations_name_exactly_the_fixtures_that_are_not_valid(key: str) -> None:
    family = FAMILIES[key]
    stages = {"invalid": {"schema", "semantic"}, "lint": {"lint"}}
    expected = _expectations(family)
    assert {name for _, name in _names("invalid") + _names("lint") if _ == key} == set(expected)
    for name, reason in expected.items():
        assert reason["stage"] in stages["lint" if ".lint-" in name else "invalid"]


@pytest.mark.parametrize(("key", "schema", "way"), _derived(), ids=lambda item: getattr(item, "location", None))
def test_the_schema_refuses_every_derived_way_to_be_wrong(key: str, schema: str, way: Way) -> None:
    found = {(finding.code, finding.pointer) for finding in FAMILIES[key].strict(schema, way.document)}
    assert (way.code, way.pointer) in found


@pytest.mark.parametrize("key", FAMILIES)
def test_no_keyword_of_the_schemas_is_left_unbroken(key: str) -> None:
    family = FAMILIES[key]
    broken = {way.location for name, _, way in _derived() if name == key}
    assert set().union(*(keywords(schema) for schema in family.full)) == broken


@pytest.mark.parametrize("key", FAMILIES)
def test_every_required_field_enum_and_bound_has_an_invalid_fixture(key: str) -> None:
    family = FAMILIES[key]
    shown = {
        (reason["code"].replace("unknown_version", "schema_const"), reason["pointer"])
        for reason in _expectations(family).values()
    }
    # An unknown type is told apart before any schema is asked.
    shown |= {("schema_enum", "/type"), ("schema_const", "/type")} if ("unknown_type", "/type") in shown else set()
    by_place: dict[str, set[tuple[str, str]]] = {}
    for name, _, way in _derived():
        if name == key and way.code != "schema_type" and len(json.dumps(way.document)) < 8 * LONGEST_FIXTURE_TEXT:
            by_place.setdefault(way.location, set()).add((way.code, way.pointer))
    missing = {place for place, any_of in by_place.items() if any_of.isdisjoint(shown)}
    assert missing - family.tolerated == set()


@pytest.mark.parametrize(("key", "name"), [pair for pair in _names("valid") if pair[0] != "steps"])
def test_a_typed_form_carries_everything_that_its_document_says(key: str, name: str) -> None:
    value = _load(FAMILIES[key], name)
    form = read_wire_1_0(value) if key == "1.0" else read_card(value)
    told = msgspec.to_builtins(form)
    assert _without_nulls(told) == _without_nulls({part: value[part] for part in value if part != "wire"})


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list | tuple) else value


def test_a_refused_document_carries_all_its_findings() -> None:
    value = _load(FAMILIES["1.0"], "claim.valid.json")
    value["payload"] = {"task_id": "0.0.1", "unexpected": 1}
    with pytest.raises(WireRefused) as refused:
        read_wire_1_0(value)
    assert [finding.pointer for finding in refused.value.findings()] == [
        "/payload/agent",
        "/payload/role",
        "/payload/unexpected",
    ]
