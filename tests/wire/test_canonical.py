"""Canonical bytes: the published data of RFC 8785, an independent implementation, and what cannot be written."""

from __future__ import annotations

import enum
import json
import math
import struct
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import JsonRefused
from redkey.wire import files
from redkey.wire.canonical import LARGEST_INTEGER, canonical, is_plain, number
from redkey.wire.catalogue import FIXTURES
from tests.wire.arbitrary import json_values

# RFC 8785, appendix B: IEEE 754 doubles in hexadecimal and how they are written.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

# Input and output of the RFC's examples (3.2.2, 3.2.3) and of the test data published with it.
DOCUMENTS = {
    "values": (
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
             "literals": [null, true, false]}""",
        "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b333333333333333333"
        "2e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c7530303"
        "0665c6e4127425c225c5c5c5c5c222f227d",
    ),
    "weird": (
        r"""{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\u000a": "Newline", "1": "One",
             "\u0080": "Control\u007f", "\ud83d\ude02": "Smiley", "\u00f6": "Latin Small Letter O With Diaeresis",
             "\ufb33": "Hebrew Letter Dalet With Dagesh", "</script>": "Browser Challenge"}""",
        '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge","\x80":"Control\x7f",'
        '"ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😂":"Smiley",'
        '"\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
    "french": (
        """{"peach": "This sorting order", "péché": "is wrong according to French",
            "pêche": "but canonicalization MUST", "sin": "ignore locale"}""",
        '{"peach":"This sorting order","péché":"is wrong according to French",'
        '"pêche":"but canonicalization MUST","sin":"ignore locale"}',
    ),
    "structures": (
        r"""{"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty", "a": { },
             "111": [ {"e": "yes","E": "no" } ], "A": { }}""",
        r'{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ),
    "arrays": ('[56, {"d": true, "10": null, "1": [ ]}]', '[56,{"1":[],"10":null,"d":true}]'),
    "unicode": (r'{"Unnormalized Unicode":"A\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'),
}

SORTED_KEYS = ["Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign"]
SORTED_KEYS += ["Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh"]


@pytest.mark.parametrize("bits", NUMBERS)
def test_numbers_of_appendix_b(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert number(value) == NUMBERS[bits]
    assert canonical([value]) == f"[{NUMBERS[bits]}]".encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_have_no_form(value: float) -> None:
    for write in (number, lambda item: canonical({"a": [item]})):
        with pytest.raises(JsonRefused) as refused:
            write(value)
        assert refused.value.code == "json_number"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_the_published_test_data(name: str) -> None:
    source, expected = DOCUMENTS[name]
    wanted = bytes.fromhex(expected) if name == "values" else expected.encode()
    assert canonical(json.loads(source)) == wanted
    assert rfc8785.dumps(json.loads(source)) == wanted


def test_the_sorting_example_of_the_rfc() -> None:
    source = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical(source)).values()) == SORTED_KEYS


finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    json_values | finite | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=12,
)


@given(values)
def test_it_agrees_with_an_independent_implementation(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(finite)
def test_numbers_agree_with_an_independent_implementation_and_read_back(value: float) -> None:
    assert number(value).encode() == rfc8785.dumps(value)
    assert float(number(value)) == value


@given(values)
def test_what_is_plain_is_written_by_the_short_way(value: Any) -> None:
    if is_plain(value):
        assert orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == rfc8785.dumps(value)


@given(json_values)
def test_canonical_bytes_read_back_and_are_their_own_canonical_form(value: Any) -> None:
    once = canonical(value)
    again = json.loads(once)
    assert again == value
    assert canonical(again) == once


def test_wires_are_plain() -> None:
    for name in files.names(FIXTURES, ".valid.json"):
        assert is_plain(files.load(f"{FIXTURES}/{name}")), name


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


def test_tuples_and_enums_are_written_as_what_they_are() -> None:
    assert canonical((1, Colour.RED, Size.SMALL, {"a": (None,)})) == b'[1,"red",1,{"a":[null]}]'


def test_tuples_are_as_plain_as_lists() -> None:
    assert is_plain({"parts": ({"text": "x"}, 1, None)})
    assert not is_plain((2**53,))
    assert canonical({"b": (1, "x"), "a": ()}) == b'{"a":[],"b":[1,"x"]}'


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def test_values_deeper_than_the_encoder_goes_are_written_or_refused() -> None:
    assert canonical(_nested(300)) == b"[" * 301 + b"]" * 301
    with pytest.raises(JsonRefused) as refused:
        canonical(_nested(100_000))
    assert refused.value.code == "json_too_deep"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (LARGEST_INTEGER + 1, "json_number"),
        (-LARGEST_INTEGER - 1, "json_number"),
        ([10**5000], "json_number"),
        ("\ud800", "json_surrogate"),
        ({"a": ["\udfff"]}, "json_surrogate"),
        ({"\ud800": 1}, "json_surrogate"),
        ({"é": "\ud800"}, "json_surrogate"),
        ({1: 2}, "json_type"),
        ({"a": {None: 1}}, "json_type"),
        (b"bytes", "json_type"),
        ({1, 2}, "json_type"),
        (object(), "json_type"),
    ],
    ids=lambda part: part if isinstance(part, str) and part.isascii() else type(part).__name__,
)
def test_what_is_no_json_is_refused_with_a_code(value: Any, code: str) -> None:
    with pytest.raises(JsonRefused) as refused:
        canonical(value)
    assert refused.value.code == code
