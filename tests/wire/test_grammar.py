"""The grammars of closed schemas: they accept only what the validator accepts, and there is one for every type."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, catalogue
from redkey.wire.grammar import Inexpressible, Rule, _between, _value, grammar_of
from redkey.wire.plain_pattern import UNBOUNDED, width_of
from redkey.wire.schema import checker_of, compile_schema, uri_of
from tests.wire.arbitrary import gone_wrong
from tests.wire.derive import ways
from tools.derive import file_stem
from tools.largest import largest

Wire = dict[str, Any]
EVENTS = list(catalogue())
GOLDEN = {event: files.load(f"{FIXTURES}/{file_stem(event)}.valid.json") for event in EVENTS}


@cache
def _grammar(event: str) -> re.Pattern[bytes]:
    grammar = grammar_of(uri_of(catalogue()[event].schema))
    assert grammar is not None
    return grammar


def _matches(event: str, value: Any) -> bool:
    return _grammar(event).fullmatch(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)) is not None


def _fits(event: str, value: Any) -> bool:
    return compile_schema(catalogue()[event].schema).is_valid(value)


@pytest.mark.parametrize("event", EVENTS)
def test_every_type_has_a_grammar_that_knows_its_wires(event: str) -> None:
    assert _matches(event, GOLDEN[event])


@pytest.mark.parametrize("event", EVENTS)
def test_the_grammar_accepts_no_violation_of_a_schema(event: str) -> None:
    schema = catalogue()[event].schema
    for way in ways(schema, GOLDEN[event]):
        assert not _matches(event, way.document), way.location


@pytest.mark.parametrize("event", EVENTS)
def test_the_largest_wire_matches_unless_it_has_extensions(event: str) -> None:
    for wire in largest(event):
        # Extensions and costs with an exponent take the slow way.
        assert _matches(event, wire) == (
            "extensions" not in wire and b'"cost_usd"' not in orjson.dumps(wire["payload"])
        )


@given(gone_wrong(list(GOLDEN.values())), st.sampled_from(EVENTS))
def test_what_a_grammar_accepts_is_valid_and_canonical(value: Any, event: str) -> None:
    named = value.get("type") if isinstance(value, dict) else None
    event = named if isinstance(named, str) and named in GOLDEN else event
    if _matches(event, value):
        assert _fits(event, value)
        assert canonical(value) == orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@given(st.sampled_from(EVENTS), st.data())
def test_bytes_with_one_changed_character_match_only_if_they_are_valid(event: str, data: st.DataObject) -> None:
    message = bytearray(canonical(GOLDEN[event]))
    at = data.draw(st.integers(0, len(message) - 1))
    message[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from([b'"', b"\\", b"0", b"}", b",", b"Z"]))
    if _grammar(event).fullmatch(bytes(message)):
        value = orjson.loads(bytes(message))
        assert _fits(event, value)
        assert canonical(value) == bytes(message)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**8))
def test_a_range_is_exactly_its_numbers(one: int, other: int, number: int) -> None:
    low, high = sorted((one, other))
    matches = re.compile(_between(low, high)).fullmatch
    for value in (low, high, low - 1, high + 1, number):
        assert bool(matches(str(value))) == (low <= value <= high)


EDGES = [0.0, 1.0, 1e-5, 9e-6, 0.1, 999_999.5, 1e6, 1_000_000.5]


@given(st.floats(0, 2e6) | st.sampled_from(EDGES) | st.integers(0, 2 * 10**6))
def test_an_accepted_fraction_is_written_as_in_the_rfc(value: float) -> None:
    schema = {"type": "number", "minimum": 0, "maximum": 1_000_000}
    text = orjson.dumps(value)
    if re.fullmatch(_value([Rule(schema, "")]).encode(), text):
        assert checker_of(schema).is_valid(value)
        assert canonical(value) == text


@pytest.mark.parametrize(
    ("pattern", "width"),
    [
        ("^[0-7][0-9A-Z]{25}$", (26, 26)),
        ("^(?:agt_[a-z]{3}|[a-z][a-z0-9-]{0,29})$", (1, 30)),
        (r"^[0-9]{1,5}\.[0-9]+$", (3, UNBOUNDED)),
        (r"^[ !#-\[\]-~]*$", (0, UNBOUNDED)),
    ],
)
def test_a_plain_pattern_has_a_width(pattern: str, width: tuple[int, int]) -> None:
    assert width_of(pattern) == (pattern[1:-1], width)


@pytest.mark.parametrize(
    "pattern",
    ["^[!-~]+$", '^"$', "^a.b$", "^[^a]$", r"^\w+$", "^a|b$", "a", "^(a)$", "^(?:a$", "^é$", "^a**$", r"^[\x00-z]$"],
)
def test_a_pattern_that_may_match_escaped_text_is_refused(pattern: str) -> None:
    assert width_of(pattern) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 5},
        {"type": "object", "properties": {"a": {"type": "boolean"}}},
        {"type": "integer", "minimum": -5, "maximum": 5},
        {"type": "array", "items": {"type": "boolean"}, "maxItems": 2, "uniqueItems": True},
        {"type": "object", "additionalProperties": False, "minProperties": 1},
        {"type": ["string", "null"], "pattern": "^a$"},
        {"not": {"type": "string"}},
    ],
)
def test_what_a_grammar_cannot_express_is_left_to_the_validator(schema: Any) -> None:
    with pytest.raises(Inexpressible):
        _value([Rule(schema, "")])
