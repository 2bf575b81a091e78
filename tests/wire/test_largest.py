"""The largest valid wire of every event type, built from its schema, is within the size limit of the ledger."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, SCHEMAS, catalogue
from redkey.wire.rules import ENTRIES_LIMIT
from redkey.wire.validate import MESSAGE_LIMIT, read, validate
from tools.largest import build, largest, widest
from tools.longest import longest
from tools.shapes import event_shape

Wire = dict[str, Any]
WIRES = [(event, index) for event in catalogue() for index in range(len(largest(event)))]


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every part of a wire with its path."""
    yield path, value
    if isinstance(value, dict | list):
        for step, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*path, step))


def _grown(value: Any) -> Any:
    """Return the value with one more character or item."""
    match value:
        case str():
            return value + value[-1]
        case dict():
            return value | {"another": 1}
        case [str() as first, *_]:
            return [*value, first[:-2] + "7Q"]
        case []:
            return ["A"]
        case int() if not isinstance(value, bool):
            return value + 1
    return None


def _shape_at(shape: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if "const" in shape:
            return {}
        if isinstance(step, int):
            shape = shape["items"]
        else:
            shape = shape["properties"][step] if "properties" in shape else shape["additionalProperties"]
    return shape


@pytest.mark.parametrize(("event", "index"), WIRES)
def test_the_largest_wire_is_valid_and_fits(event: str, index: int) -> None:
    wire = largest(event)[index]
    assert validate(wire) == []
    assert len(canonical(wire)) <= MESSAGE_LIMIT
    assert read(canonical(wire)) == wire


@pytest.mark.parametrize(("event", "index"), WIRES)
def test_nothing_in_it_can_grow_by_one(event: str, index: int) -> None:
    wire = largest(event)[index]
    for path, part in _places(wire):
        grown = _grown(part)
        if grown is None:
            continue
        changed = copy.deepcopy(wire)
        if not path:
            changed = grown
        else:
            holder: Any = changed
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = grown
        assert validate(changed), path


@pytest.mark.parametrize(("event", "index"), WIRES)
def test_every_bound_is_reached(event: str, index: int) -> None:
    shape, wire = event_shape(event), largest(event)[index]
    for path, part in _places(wire):
        if "extensions" in path:
            continue
        rule = _shape_at(shape, path)
        if isinstance(part, str) and "maxLength" in rule and path[-1] not in ("stream_id", "to"):
            assert len(part) == rule["maxLength"], path
        elastic = event in ("task.created", "task.complete") or path[-1:] in (
            ("reference_task_ids",),
            ("derived_from",),
        )
        if isinstance(part, list) and not elastic:
            assert len(part) == rule["maxItems"], path


@pytest.mark.parametrize(("event", "index"), WIRES)
def test_it_has_no_room_for_an_extension(event: str, index: int) -> None:
    wire = largest(event)[index]
    extensions = {**wire.get("extensions", {}), "a2a.b": 1, "a2a.c": "x"}
    assert [finding.code for finding in validate({**wire, "extensions": extensions})] == ["wire_too_large"]


@pytest.mark.parametrize("event", catalogue())
def test_every_type_takes_extensions_of_any_json(event: str) -> None:
    wire = copy.deepcopy(_golden(event))
    wire["extensions"] = {"dev.redkey.trace": {"span": ["a", 1, 2.5, None], "sampled": True}, "a2a.x": "é"}
    assert validate(wire) == []
    assert read(canonical(wire)) == wire
    for wrong in ({"trace": 1}, {"redkey.x": None}, [1]):
        assert validate({**wire, "extensions": wrong}), wrong


@pytest.mark.parametrize("event", [name for name in catalogue() if name.startswith(("task.", "artifact."))])
def test_every_task_and_artifact_type_takes_the_whole_stream_block_of_the_seed(event: str) -> None:
    wire = copy.deepcopy(_golden(event))
    wire["stream"] |= {
        "correlation_id": "project:knowledgevault-m01r",
        "causation_id": "wire_01KQZ1PQV06K4AWE4AM61WR83Z",
        "reference_task_ids": ["0.0.8830669"],
        "parent_task_id": "0.0.8830668",
    }
    assert validate(wire) == []


def _golden(event: str) -> Wire:
    name = f"{event.replace('.', '-').replace('_', '-')}.valid.json"
    wire: Wire = files.load(f"{FIXTURES}/{name}")
    return wire


@pytest.mark.parametrize(("event", "index"), WIRES)
def test_every_optional_field_is_there_unless_another_excludes_it(event: str, index: int) -> None:
    shape, wire = event_shape(event), widest(event)[index]
    allowed = {name for name, part in shape["properties"].items() if part is not False}
    assert wire.keys() == allowed
    every = {name for other in widest(event) for name in other["payload"]}
    assert every == {name for name, part in shape["properties"]["payload"]["properties"].items() if part is not False}
    streams = {name for other in widest(event) for name in other["stream"]}
    names = shape["properties"]["stream"]["properties"]
    assert streams | {"parent_task_id"} >= {name for name, part in names.items() if part is not False}


def test_a_created_task_has_three_alternatives() -> None:
    inline, plan, structure = (
        next(wire["payload"] for wire in largest("task.created") if name in wire["payload"])
        for name in ("outputs", "plan_task", "structure_ref")
    )
    assert inline.keys() & {"workflow_id", "plan_task", "structure_ref"} == set()
    assert plan.keys() & {"roles", "outputs", "structure_ref"} == set()
    assert structure.keys() & {"roles", "outputs", "workflow_id"} == set()


def test_the_entries_of_a_created_task_are_shared_in_the_largest_way() -> None:
    wire = next(wire for wire in widest("task.created") if "outputs" in wire["payload"])
    lists = [wire["payload"][name] for name in ("roles", "capabilities", "waits_for", "outputs")]
    entries = sum(map(len, lists)) + len(wire["stream"]["reference_task_ids"]) + ("parent_task_id" in wire["stream"])
    assert entries == ENTRIES_LIMIT
    assert all(isinstance(names, list) for names in lists), "empty lists take room too"


def test_the_committed_largest_wires_are_these() -> None:
    lines = (files.root() / FIXTURES / "derived" / "largest.jsonl").read_bytes().splitlines()
    assert lines == [canonical(wire) for event in catalogue() for wire in largest(event)]
    assert max(map(len, lines)) <= MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("pattern", "limit", "length"),
    [
        ("^clm_[0-7][0-9A-F]{25}$", 99, 30),
        ("^(?:system|(?:agent|runner):[a-z][a-z-]{0,31})$", 38, 38),
        ("^[a-z][a-z0-9_-]{0,15}:[A-Z][A-Z._-]*$", 40, 40),
        ("^[0-9]{4}(?:\\.[0-9]{1,9})?Z$", 99, 15),
        ("^a+$", 7, 7),
    ],
)
def test_the_longest_text_of_a_pattern(pattern: str, limit: int, length: int) -> None:
    texts = {longest(pattern, limit, variant) for variant in range(3)}
    checker = build({"type": "string", "pattern": pattern, "maxLength": limit})
    assert checker in texts
    assert {len(text) for text in texts} == {length}


def test_the_types_have_tight_bounds() -> None:
    for name, rule in files.load(f"{SCHEMAS}/types.schema.json")["$defs"].items():
        if rule.get("type") == "string":
            assert len(longest(rule["pattern"], 10_000 if name != "context_id" else 40)) >= rule["maxLength"], name
