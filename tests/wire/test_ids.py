"""Ids and stream ids: created, derived and parsed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.wire import files
from redkey.wire.catalogue import FIXTURES, SCHEMAS
from redkey.wire.ids import (
    SUBJECT_FIELD,
    Stream,
    crockford,
    derived_ulid,
    event_id,
    hashed_ulid,
    parse_stream,
    stated,
    task_stream,
    ulid,
    wire_id_of,
)

TYPES = files.load(f"{SCHEMAS}/types.schema.json")["$defs"]
STREAMS = files.load(f"{SCHEMAS}/stream.schema.json")["$defs"]
milliseconds = st.integers(0, 2**48 - 1)
random_bytes = st.binary(min_size=10, max_size=10)


def _fits(name: str, text: str) -> bool:
    return re.fullmatch(TYPES[name]["pattern"], text) is not None


def test_the_time_that_the_ulid_specification_spells_and_the_ends_of_the_range() -> None:
    assert ulid(1469918176385, bytes(10)) == "01ARYZ6S41" + "0" * 16
    assert ulid(2**48 - 1, b"\xff" * 10) == "7" + "Z" * 25
    assert ulid(0, bytes(10)) == "0" * 26


@given(milliseconds, random_bytes)
def test_a_ulid_is_spelled_as_the_schemas_ask(time: int, randomness: bytes) -> None:
    text = ulid(time, randomness)
    assert _fits("ulid", text)
    assert _fits("wire_id", f"wire_{text}")
    assert int.from_bytes(time.to_bytes(6) + randomness) == _number(text)


def _number(text: str) -> int:
    number = 0
    for character in text:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(character)
    return number


@given(milliseconds, milliseconds, random_bytes, random_bytes)
def test_ulids_sort_by_time(one: int, two: int, first: bytes, second: bytes) -> None:
    if one < two:
        assert ulid(one, first) < ulid(two, second)


@given(st.integers(1, 8).flatmap(lambda fives: st.binary(min_size=5 * fives, max_size=5 * fives)))
def test_crockford_spells_bytes(data: bytes) -> None:
    assert len(crockford(data)) == len(data) * 8 // 5
    assert _number(crockford(data)) == int.from_bytes(data)


def test_the_same_cause_gives_the_same_id_and_another_gives_another() -> None:
    ids = [derived_ulid(1, *cause) for cause in (("a", "b"), ("a", "b"), ("a", "c"), ("ab",), ("a", "b", ""))]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4
    assert derived_ulid(2, "a", "b")[10:] == ids[0][10:]


@given(st.lists(st.binary(), min_size=2, max_size=2, unique=True))
def test_hashes_without_a_time_differ_in_their_first_characters(data: list[bytes]) -> None:
    one, other = map(hashed_ulid, data)
    assert hashed_ulid(data[0]) == one
    assert re.fullmatch(TYPES["agent_id"]["pattern"], f"agt_{one}")
    # What tables on a terminal show of an id.
    assert one[:8] != other[:8]


@given(milliseconds, random_bytes)
def test_wires_and_events_share_a_ulid(time: int, randomness: bytes) -> None:
    wire_id = f"wire_{ulid(time, randomness)}"
    assert event_id(wire_id) == f"evt_{wire_id[5:]}"
    assert wire_id_of(event_id(wire_id)) == wire_id


@pytest.mark.parametrize("kind", STREAMS)
@given(data=st.data())
def test_every_stream_id_is_taken_apart(kind: str, data: st.DataObject) -> None:
    stream_id = data.draw(st.from_regex(STREAMS[kind]["pattern"].removesuffix("$") + r"\Z"))
    stream = parse_stream(stream_id)
    assert stream.kind == kind
    if kind == "task":
        assert task_stream(stream.subject, stream.attempt) == stream_id
        assert _fits("task_id", stream.subject)
    else:
        assert stream.attempt == 0
        assert f"{kind}:{stream.subject}" == stream_id


def test_the_seeds_stream_of_a_native_id() -> None:
    assert parse_stream("task:0.0.8830671:attempt:1") == Stream("task", "0.0.8830671", 1)


@pytest.mark.parametrize("event", ["task-started", "agent-lost", "role-granted", "queue-updated", "workflow-paused"])
def test_what_a_wire_says_by_its_stream(event: str) -> None:
    wire: dict[str, Any] = files.load(f"{FIXTURES}/{event}.valid.json")
    stream = parse_stream(wire["stream"]["stream_id"])
    assert stated(wire, SUBJECT_FIELD[stream.kind]) == stream.subject
    assert stated(wire, "attempt") == (stream.attempt or None)
    assert stated(wire, "gate_id") is None


def test_the_payload_comes_before_the_stream() -> None:
    wire: dict[str, Any] = files.load(f"{FIXTURES}/task-claim-attempted.valid.json")
    assert stated(wire, "task_id") == "0.0.8830671"
    assert stated(wire, "attempt") == 1
    assert stated(wire, "agent_id") == parse_stream(wire["stream"]["stream_id"]).subject
