"""Bytes to JSON values, refusing whatever two parsers could read differently.

Duplicate keys, NaN and Infinity, numbers beyond 2^53, lone surrogates, a byte order mark, NUL and
nesting beyond a bound are refused before anything is hashed. Time and memory are bounded by the size
limit, which is checked first.

The fast path is orjson. It tells nothing of duplicate keys, so its result is trusted only when encoding
it again gives the input back, which is so for every compact writer; other input takes the slow path.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import orjson

from redkey.errors import JsonRefused

LARGEST_INTEGER = 2**53 - 1
DEPTH_LIMIT = 64
SIZE_LIMIT = 1024 * 1024

_LONG_DIGITS = re.compile(rb"[0-9]{16}")
_SURROGATE = re.compile("[\ud800-\udfff]")
# What is left of a document when strings are cut out: its brackets tell the depth.
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_BRACKETS = re.compile(rb"[^][{}]+")


def decode(data: bytes, *, size_limit: int = SIZE_LIMIT, depth_limit: int = DEPTH_LIMIT) -> Any:
    """The JSON value of `data`, or `JsonRefused` with a code that says why not."""
    if len(data) > size_limit:
        raise JsonRefused(f"{len(data):,} bytes of JSON; the limit is {size_limit:,}", code="json_too_large")
    if data.startswith(b"\xef\xbb\xbf"):
        raise JsonRefused("the text begins with a byte order mark; send plain UTF-8", code="json_bom")
    if b"\x00" in data or b"\\u0000" in data:
        _refuse_nul(data)
    _check_depth(data, depth_limit)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as cause:
        _refuse_syntax(data, cause)
    if _LONG_DIGITS.search(data) is None and orjson.dumps(value) == data:
        return value
    return _decode_slowly(data)


def _check_depth(data: bytes, limit: int) -> None:
    opened = data.count(b"{") + data.count(b"[")
    if opened <= limit:
        return
    depth = 0
    for bracket in _NOT_BRACKETS.sub(b"", _STRINGS.sub(b"", data)):
        if bracket in b"{[":
            depth += 1
            if depth > limit:
                raise JsonRefused(f"the JSON is nested deeper than {limit} levels", code="json_too_deep")
        else:
            depth -= 1


def _decode_slowly(data: bytes) -> Any:
    value = json.loads(
        data, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
    )
    _check_strings(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonRefused(f"the key {key!r} stands twice in one object", code="json_duplicate_key")
            seen.add(key)
    return made


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > LARGEST_INTEGER:
        raise JsonRefused(f"the integer {digits[:20]} is beyond 2^53 - 1; send it as a string", code="json_number")
    return int(digits)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise JsonRefused(f"the number {text[:20]} is too large", code="json_number")
    if value.is_integer() and abs(value) > LARGEST_INTEGER:
        raise JsonRefused(f"the number {text[:20]} is beyond 2^53 - 1; send it as a string", code="json_number")
    return value


def _constant(name: str) -> NoReturn:
    raise JsonRefused(f"{name} is not JSON", code="json_number")


def _check_strings(value: Any) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                raise JsonRefused("a string holds half of a surrogate pair", code="json_surrogate")
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _refuse_nul(data: bytes) -> None:
    # An escaped backslash before u0000 is harmless text: only a real escape is NUL.
    if b"\x00" in data or re.search(rb"(?<!\\)(?:\\\\)*\\u0000", data):
        raise JsonRefused("the text holds the character NUL", code="json_nul")


def _refuse_syntax(data: bytes, cause: orjson.JSONDecodeError) -> NoReturn:
    try:
        text = data.decode()
    except UnicodeDecodeError as broken:
        raise JsonRefused(f"the bytes are not UTF-8 (at byte {broken.start})", code="json_utf8") from cause
    if "surrogate" in str(cause):
        raise JsonRefused("a string holds half of a surrogate pair", code="json_surrogate") from cause
    try:
        _decode_slowly(data)
    except JsonRefused as refused:
        raise refused from cause
    except (ValueError, RecursionError):
        pass
    line = text.count("\n", 0, cause.pos) + 1
    raise JsonRefused(f"not JSON: {cause.msg.split(':')[0]} (line {line}, character {cause.pos})") from cause
