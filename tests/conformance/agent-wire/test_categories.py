"""Every event type has exactly one normalised category, and its schema asks for exactly that state."""

from __future__ import annotations

from collections import Counter

import pytest

from redkey.wire import files
from redkey.wire.catalogue import CONTRACTS, FIXTURES, SCHEMAS, catalogue, contract
from tools.shapes import event_shape

TABLE = contract("event-state-map.json")

# The design's table, written a second time on purpose: the contract must say the same.
CATEGORIES = {
    "submitted": {
        "task.created",
        "task.available",
        "task.released",
        "task.lease_expired",
        "task.stalled",
        "task.unblocked",
    },
    "working": {
        "task.claimed",
        "task.started",
        "artifact.ready",
        "task.lease_extended",
        "task.plan.created",
        "task.usage_reported",
        "task.progress",
    },
    "blocked": {"task.blocked"},
    "completed": {"task.complete"},
    "failed": {"task.failed"},
    "cancelled": {"task.cancelled"},
}
TERMINAL = {"completed", "failed", "cancelled"}


@pytest.mark.parametrize("event", catalogue())
def test_every_event_maps_to_exactly_one_normalised_category(event: str) -> None:
    homes = [category for category, events in CATEGORIES.items() if event in events] or ["informational"]
    assert [TABLE["events"][event]["category"]] == homes
    assert homes[0] in TABLE["categories"]


@pytest.mark.parametrize("event", catalogue())
def test_the_schema_asks_for_the_state_of_the_category(event: str) -> None:
    kind, shape = catalogue()[event], event_shape(event)
    if kind.category == "informational":
        assert shape["properties"]["state"] is False
        assert kind.state is None
        return
    expected = {"category": kind.category, "terminal": kind.category in TERMINAL}
    assert kind.state == expected
    assert shape["properties"]["state"] == {"const": expected}
    assert "state" in shape["required"]


def test_no_event_is_listed_twice() -> None:
    # JSON takes the last of two equal keys; the text must not have any.
    text = (files.root() / CONTRACTS / "event-state-map.json").read_text()
    assert all(text.count(f'"{event}":') == 1 for event in catalogue())
    named = Counter(event for events in CATEGORIES.values() for event in events)
    assert set(named.values()) == {1}


def test_the_envelope_lists_exactly_the_types_of_the_catalogue() -> None:
    envelope = files.load(f"{SCHEMAS}/envelope.schema.json")
    assert envelope["properties"]["type"]["enum"] == list(catalogue())


def test_the_state_schema_knows_exactly_the_categories_that_carry_a_state() -> None:
    state = files.load(f"{SCHEMAS}/state.schema.json")
    carried = [name for name, category in TABLE["categories"].items() if category["state"]]
    assert state["properties"]["category"]["enum"] == carried
    assert {name for name in TABLE["categories"] if TABLE["categories"][name]["terminal"]} == TERMINAL


@pytest.mark.parametrize("event", catalogue())
def test_a_type_stands_on_the_streams_that_the_catalogue_names(event: str) -> None:
    stream = event_shape(event)["properties"]["stream"]["properties"]["stream_id"]
    patterns = [part["pattern"] for part in stream.get("anyOf", [stream])]
    assert tuple(pattern[1:].split(":")[0] for pattern in patterns) == catalogue()[event].streams


def test_task_states_of_fixtures_follow_the_category() -> None:
    for event, kind in catalogue().items():
        wire = files.load(f"{FIXTURES}/{event.replace('.', '-').replace('_', '-')}.valid.json")
        assert wire.get("state") == kind.state
