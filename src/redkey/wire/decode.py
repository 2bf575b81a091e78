"""Decode JSON, and refuse whatever two parsers could read differently.

Duplicate keys, NaN and Infinity, numbers beyond 2^53, lone surrogates, a byte order mark, NUL and nesting
beyond a bound are refused before anything is hashed, each with a code and, if there is one, a pointer. Time and memory
are bounded by the size limit, which is checked first.

The standard library's parser with strict hooks decides. orjson is tried before it: if everything in the text is also in
the value that it read, and the value is plain, then the text has none of the above.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import orjson

from redkey.errors import JsonRefused, pointer
from redkey.wire.canonical import LARGEST_INTEGER, is_plain
from redkey.wire.load import PIECE_BYTES, load

DEPTH_LIMIT = 64
SIZE_LIMIT = 1024 * 1024

# Every digit becomes 0 and every sign of a fraction or an exponent a point: a search for two patterns is then faster
# than one regular expression.
_NUMBERS = bytes.maketrans(b"123456789eE", b"000000000..")
_MANY_DIGITS = b"0" * 16
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_SHOWN = 40

# The place of a value: the place of its parent, and the step from there.
_Place = tuple["_Place", str | int] | None


def decode(data: bytes, *, size_limit: int = SIZE_LIMIT, depth_limit: int = DEPTH_LIMIT) -> Any:
    """Decode JSON; raise `JsonRefused` with a code that says why not. Whole numbers become integers."""
    if len(data) > size_limit:
        raise JsonRefused(f"{len(data):,} bytes of JSON; the limit is {size_limit:,}", code="json_too_large")
    try:
        value = orjson.loads(data) if len(data) <= PIECE_BYTES else load(data)
    except orjson.JSONDecodeError:
        return _judge(data, depth_limit)
    if data.count(b"{") + data.count(b"[") <= depth_limit:
        # Without a fraction, an exponent or sixteen digits in a row, every number is a safe integer.
        digits = data.translate(_NUMBERS)
        plain = data.isascii() and b"0." not in digits and _MANY_DIGITS not in digits
        if (plain or is_plain(value)) and _is_whole(value, data):
            return value
    return _judge(data, depth_limit)


def _is_whole(value: Any, data: bytes) -> bool:
    """Return whether the value has everything of the text: no duplicate key, and nothing unsafe written as \\u."""
    written = orjson.dumps(value)
    # A compact encoder writes exactly the same bytes.
    if written == data:
        return b"\\u0000" not in data
    # Without such escapes, every colon of the text separates a key from its value or is part of a string. If a
    # duplicate key was dropped, the text has more colons than the value encoded again.
    return b"\\u" not in data and data.count(b":") == written.count(b":")


class _Mark(msgspec.Struct, frozen=True):
    """Marks a wrong part of the decoded value, so that the walk over it finds the place."""

    code: str
    message: str
    key: tuple[str, ...] = ()


def _judge(data: bytes, depth_limit: int) -> Any:
    if data.startswith(b"\xef\xbb\xbf"):
        raise JsonRefused("the text begins with a byte order mark; send plain UTF-8", code="json_bom")
    if b"\x00" in data:
        raise JsonRefused(f"the text contains the character NUL (at byte {data.index(0)})", code="json_nul")
    try:
        text = data.decode()
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except UnicodeDecodeError as cause:
        raise JsonRefused(f"the bytes are not UTF-8 (at byte {cause.start})", code="json_utf8") from cause
    except json.JSONDecodeError as cause:
        where = f"line {cause.lineno}, column {cause.colno}"
        raise JsonRefused(f"not JSON: {cause.msg[:1].lower()}{cause.msg[1:]} ({where})") from cause
    except RecursionError as cause:
        raise _too_deep(depth_limit) from cause
    _refuse_marks(value, depth_limit)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Mark:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    # The first duplicate key; there is one, because the object has fewer members than the text has pairs.
    key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    place = () if _UNSAFE.search(key) else (key,)  # A pointer must be encodable text.
    return _Mark("json_duplicate_key", f"the key {key[:_SHOWN]!r} is repeated in one object", place)


def _integer(digits: str) -> int | _Mark:
    if len(digits) > 17 or abs(int(digits)) > LARGEST_INTEGER:
        return _Mark("json_number", f"the integer {digits[:_SHOWN]} is beyond 2^53 - 1; send it as a string")
    return int(digits)


def _float(text: str) -> float | int | _Mark:
    value = float(text)
    if not value.is_integer():
        if abs(value) == float("inf"):
            return _Mark("json_number", f"the number {text[:_SHOWN]} is beyond what a double can hold")
        return value
    if abs(value) > LARGEST_INTEGER:
        return _Mark("json_number", f"the number {text[:_SHOWN]} is beyond 2^53 - 1; send it as a string")
    # 1.0 and 1 are the same number with one canonical form, so they are the same value here too.
    return int(value)


def _constant(name: str) -> _Mark:
    return _Mark("json_number", f"{name} is not JSON")


def _refuse_marks(value: Any, depth_limit: int) -> None:
    """Walk the value without recursion, and refuse the first wrong part with its pointer."""
    # A place links to its parent: written out, the pointers of a hostile document would fill the memory.
    pending: list[tuple[Any, _Place]] = [([value], None)]
    for _ in range(depth_limit + 1):
        below: list[tuple[Any, _Place]] = []
        for container, place in pending:
            parts = enumerate(container) if type(container) is list else container.items()
            for step, part in parts:
                kind = type(part)
                if type(step) is str and _UNSAFE.search(step):
                    raise _unsafe(step, place)
                if kind is str:
                    if _UNSAFE.search(part):
                        raise _unsafe(part, (place, step))
                elif kind is dict or kind is list:
                    below.append((part, (place, step)))
                elif kind is _Mark:
                    raise JsonRefused(part.message, code=part.code, pointer=_pointer((place, step), *part.key))
        if not below:
            return
        pending = below
    raise _too_deep(depth_limit)


def _unsafe(text: str, place: _Place) -> JsonRefused:
    if "\x00" in text:
        return JsonRefused("a string contains the character NUL", code="json_nul", pointer=_pointer(place))
    return JsonRefused("a string contains half of a surrogate pair", code="json_surrogate", pointer=_pointer(place))


def _pointer(place: _Place, *last: str) -> str:
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(step)
    # The outermost step is the index in the list that the walk began with.
    return pointer([*reversed(steps[:-1]), *last])


def _too_deep(limit: int) -> JsonRefused:
    return JsonRefused(f"the JSON is nested deeper than {limit} levels", code="json_too_deep")
