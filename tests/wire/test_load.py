"""Large JSON in pieces: the same value, or the same error, as parsing the whole text."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redkey.wire.load import PIECE_BYTES, load
from tests.wire.arbitrary import json_values

MARKS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\xff"]
PARTS = [*MARKS, b"1", b"null", b'"a"', b'"\\u00e4"', b'"\\ud800"', b'"\\udc00"']


def outcome(data: bytes, piece_bytes: int = 0) -> Any:
    """Return the value of a text, with the order of its keys; or that it is invalid."""
    try:
        value = load(data, piece_bytes) if piece_bytes else orjson.loads(data)
    except orjson.JSONDecodeError:
        return ValueError
    return orjson.dumps(value)


@given(json_values, st.booleans(), st.sampled_from([None, 1]), st.integers(1, 9))
def test_a_value_is_the_same_in_pieces_of_any_size(value: Any, ascii_only: bool, indent: int | None, size: int) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    assert outcome(data, size) == outcome(data)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join), st.integers(1, 4))
def test_what_is_no_json_is_refused_in_pieces_too(data: bytes, size: int) -> None:
    assert outcome(data, size) == outcome(data)
    for text in (b'{"a":1,"b":2,%b}' % data, b"[1,2,3,%b]" % data, b'{"a":[%b],"b":{"c":%b}}' % (data, data)):
        assert outcome(text, size) == outcome(text)


@pytest.mark.parametrize(
    "value",
    [
        {f"{index:x}": 0 for index in range(20_000)},
        [f"one, {index}" for index in range(20_000)],
        {"title": "t", "input": {"deep": {"flat": {f"k{index}": [index] for index in range(10_000)}}}},
        ["x" * 200_000, {"y": ",".join("0" * 100_000)}],
    ],
)
def test_no_call_of_a_parser_gets_much_more_than_a_piece(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    data, sizes = json.dumps(value).encode(), []
    loads = orjson.loads

    def counted(text: bytes) -> Any:
        sizes.append(len(text))
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counted)
    assert load(data) == value
    largest_text = max(len(part) for part in data.split(b'"')) + 8
    assert max(sizes) <= max(2 * PIECE_BYTES + 2, largest_text)


def test_the_last_value_of_a_duplicate_key_counts_at_its_first_place() -> None:
    data = b'{"a":1,"b":2,"c":3,"a":4}'
    assert outcome(data, 1) == outcome(data)
