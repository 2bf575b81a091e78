"""JSON decoding: what two parsers could read differently is refused with a code and a place, in limited time."""

from __future__ import annotations

import json
import time
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redkey.errors import JsonRefused
from redkey.wire.canonical import LARGEST_INTEGER, canonical
from redkey.wire.decode import DEPTH_LIMIT, SIZE_LIMIT, _judge, decode
from tests.wire.arbitrary import json_values

MEGABYTE = 1024 * 1024

REFUSED = {
    "empty": (b"", "json_syntax", ""),
    "blank": (b" \n", "json_syntax", ""),
    "prose": (b"task.started by quinn", "json_syntax", ""),
    "cut off": (b'{"a": [1, 2', "json_syntax", ""),
    "two documents": (b"{}{}", "json_syntax", ""),
    "single quotes": (b"{'a': 1}", "json_syntax", ""),
    "trailing comma": (b"[1,]", "json_syntax", ""),
    "comment": (b"{} // done", "json_syntax", ""),
    "leading zero": (b"[01]", "json_syntax", ""),
    "plus sign": (b"[+1]", "json_syntax", ""),
    "bare point": (b"[.5]", "json_syntax", ""),
    "control character": (b'"a\nb"', "json_syntax", ""),
    "bad escape": (b'"\\x41"', "json_syntax", ""),
    "a key twice": (b'{"a": {"b/c~": {"k": 1, "k": 2}}}', "json_duplicate_key", "/a/b~1c~0/k"),
    "a key twice in a list": (b'[1, {"k": 1, "l": 2, "k": 1}]', "json_duplicate_key", "/1/k"),
    "a key twice by escape": (b'{"k": 1, "\\u006b": 2}', "json_duplicate_key", "/k"),
    "NaN": (b'{"a": NaN}', "json_number", "/a"),
    "Infinity": (b"[0, Infinity]", "json_number", "/1"),
    "-Infinity": (b"[[-Infinity]]", "json_number", "/0/0"),
    "infinite float": (b'{"a": 1e400}', "json_number", "/a"),
    "2^53": (b'{"a": 9007199254740992}', "json_number", "/a"),
    "-2^53": (b'{"a": -9007199254740992}', "json_number", "/a"),
    "2^64": (b"[18446744073709551616]", "json_number", "/0"),
    "a thousand digits": (b"[" + b"9" * 1000 + b"]", "json_number", "/0"),
    "a million digits": (b"9" * MEGABYTE, "json_number", ""),
    "2^53 as a float": (b"[9007199254740992.0]", "json_number", "/0"),
    "1e300": (b"[1e300]", "json_number", "/0"),
    "1e+300": (b"[1e+300]", "json_number", "/0"),
    "1E16": (b"[1E16]", "json_number", "/0"),
    "high surrogate": (b'{"a": "\\ud800"}', "json_surrogate", "/a"),
    "low surrogate": (b'["\\udc00"]', "json_surrogate", "/0"),
    "surrogates swapped": (b'["\\udc00\\ud800"]', "json_surrogate", "/0"),
    "surrogate in a key": (b'{"a": {"\\ud800": 1}}', "json_surrogate", "/a"),
    "surrogate key twice": (b'{"\\ud800": 1, "\\ud800": 1}', "json_duplicate_key", ""),
    "surrogate in bytes": (b'"\xed\xa0\x80"', "json_utf8", ""),
    "latin 1": (b'"caf\xe9"', "json_utf8", ""),
    "UTF-16": ('{"a": 1}'.encode("utf-16-le"), "json_nul", ""),
    "byte order mark": (b"\xef\xbb\xbf{}", "json_bom", ""),
    "NUL": (b'{"a": "\x00"}', "json_nul", ""),
    "NUL after the end": (b"{}\x00", "json_nul", ""),
    "compact escaped NUL": (b'{"a":"\\u0000"}', "json_nul", "/a"),
    "escaped NUL": (b'{"a": ["x\\u0000"]}', "json_nul", "/a/0"),
    "escaped NUL in a key": (b'{"a": {"\\u0000": 1}}', "json_nul", "/a"),
    "one level too deep": (b"[" * (DEPTH_LIMIT + 1) + b"]" * (DEPTH_LIMIT + 1), "json_too_deep", ""),
    "2,000 levels": (b'{"a":' * 2000 + b"1" + b"}" * 2000, "json_too_deep", ""),
    "100,000 levels": (b"[" * 100_000 + b"]" * 100_000, "json_too_deep", ""),
    "100,000 levels of objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "json_too_deep", ""),
    "100,000 levels, never closed": (b"[" * 100_000, "json_too_deep", ""),
    "one byte too large": (b" " * (SIZE_LIMIT + 1), "json_too_large", ""),
    "50 MB": (b"[" + b"1," * (25 * MEGABYTE) + b"1]", "json_too_large", ""),
}

ACCEPTED: dict[bytes, Any] = {
    b"null": None,
    b" {} ": {},
    b'{"a": 1, "b": [true, null]}': {"a": 1, "b": [True, None]},
    b"9007199254740991": LARGEST_INTEGER,
    b"-9007199254740991": -LARGEST_INTEGER,
    b"0.1": 0.1,
    b"-0": 0,
    b'"\\\\u0000"': "\\u0000",
    b'"\\ud83d\\ude00"': "😀",
    b'"\xf0\x9f\x98\x80"': "😀",
    b'"[[[[{{{{"': "[[[[{{{{",
    b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT: json.loads("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_parsers_disagree_about_is_refused_with_code_and_place(case: str) -> None:
    data, code, pointer = REFUSED[case]
    with pytest.raises(JsonRefused) as refused:
        decode(data)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)
    assert refused.value.message
    assert len(refused.value.message) < 200
    refused.value.message.encode()


@pytest.mark.parametrize("data", ACCEPTED, ids=lambda data: data[:20].decode())
def test_strict_json_is_read(data: bytes) -> None:
    assert decode(data) == ACCEPTED[data]


@pytest.mark.parametrize("data", [b"[1.0]", b"[1e0]", b"[10e-1]", b"[1]", b"[ 1.0 ]"])
def test_a_whole_number_is_an_integer_however_it_is_written(data: bytes) -> None:
    (number,) = decode(data)
    assert type(number) is int
    assert number == 1


def test_limits_can_be_set() -> None:
    assert decode(b"[[]]", size_limit=4, depth_limit=2) == [[]]
    for data in (b"[[ ]]", b"[[[]]]"):
        with pytest.raises(JsonRefused):
            decode(data, size_limit=4, depth_limit=2)
    with pytest.raises(JsonRefused, match="deeper than 2"):
        decode(b"[[[]]]", depth_limit=2)


# Documents of just the allowed size that are as bad as they can be made.
HOSTILE = {
    "quotes that never close": b"{" * 65 + b'"' + b'\\"' * (SIZE_LIMIT // 2 - 40),
    "a long key over a long list": b'{"' + b"k" * 500_000 + b'":[' + b"1," * 200_000 + b"1]}",
    "a long key over long texts": b'{"' + b"k" * 500_000 + b'":[' + b'"",' * 150_000 + b"NaN]}",
    "empty lists": b"[" + b"[]," * 340_000 + b"[]]",
    "keys twice": b'{"":1' + b',"":1' * 200_000 + b"}",
    "many keys": b"{" + b",".join(b'"%d":1' % number for number in range(90_000)) + b"}",
    "backslashes": b'"' + b"\\\\" * 500_000 + b'\\u0000"',
    "blanks": b" " * (SIZE_LIMIT - 2) + b"{}",
    "a float without end": b"0." + b"1" * (SIZE_LIMIT - 2),
    "a tree": b"[" * 60 + b"[" + b"[[[],[]],[[],[]]]," * 50_000 + b"1]" + b"]" * 60,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_time_and_memory_are_bounded_for_the_worst_documents(case: str) -> None:
    data = HOSTILE[case]
    assert len(data) <= SIZE_LIMIT
    tracemalloc.start()
    began = time.process_time()
    with suppress(JsonRefused):
        decode(data)
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Far above what it takes, far below what a quadratic step would take.
    assert spent < 20
    assert peak < 300 * MEGABYTE


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789.eE+-\\u null\x00é', max_size=40).map(str.encode))
@example(b"\xef\xbb\xbf")
@example(b'{"a":1,"a":1}')
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    refusal = None
    try:
        value = decode(data)
    except JsonRefused as refused:
        refusal = refused
    if refusal is None:
        assert value == json.loads(data)
        assert canonical(decode(canonical(value))) == canonical(value)
    else:
        assert refusal.code.startswith("json_")
        assert refusal.pointer == "" or refusal.pointer.startswith("/")


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(part) for key, part in value.items()}
    return [_types(part) for part in value] if isinstance(value, list) else (type(value), value)


@given(json_values, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_the_short_way_and_the_judge_agree(value: Any, separators: tuple[str, str], ascii_only: bool) -> None:
    data = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
    if b"\\u0000" in data:
        return
    assert _types(decode(data)) == _types(_judge(data, DEPTH_LIMIT))


@given(json_values, st.sampled_from([None, 2]), st.booleans())
def test_spaces_and_escapes_change_nothing(value: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    with suppress(JsonRefused):
        assert decode(text.encode()) == _judge(text.encode(), DEPTH_LIMIT)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "a": "\\u003a"}',
        b'{"a": ":", "a": 1}',
        b'{"a": {"b": 1}, "a": ":"}',
        b'{"a:": 1, "a:": 1}',
        b'{"a": [{"b": 1, "b": "::"}], "c": ":"}',
    ],
)
def test_no_colon_hides_a_duplicate_key(text: bytes) -> None:
    with pytest.raises(JsonRefused) as refused:
        decode(text)
    assert refused.value.code == "json_duplicate_key"
