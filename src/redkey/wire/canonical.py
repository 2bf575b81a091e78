"""Canonical bytes by RFC 8785: the one encoding that is hashed, stored and sent.

Almost every value is plain: orjson's sorted encoding of it is already what the RFC asks for, and one walk over the
value is enough to know. Every other value is written here by the rules of the RFC.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import orjson

from redkey.errors import JsonRefused

LARGEST_INTEGER = 2**53 - 1

_SORTED = orjson.OPT_SORT_KEYS


def canonical(value: Any) -> bytes:
    """Encode a JSON value as RFC 8785 bytes."""
    try:
        if is_plain(value):
            return orjson.dumps(value, option=_SORTED)
    except (orjson.JSONEncodeError, RecursionError):
        pass  # The slow way below finds the same error, and names it.
    parts: list[str] = []
    try:
        _write(value, parts.append)
        return "".join(parts).encode()
    except RecursionError as cause:
        raise JsonRefused("the JSON is nested too deep", code="json_too_deep") from cause
    except (orjson.JSONEncodeError, UnicodeEncodeError) as cause:
        raise JsonRefused("a string contains half of a surrogate pair", code="json_surrogate") from cause


def is_plain(value: Any) -> bool:
    """Return whether orjson's sorted encoding of the value is its RFC 8785 encoding."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            # orjson sorts by code points, the RFC by UTF-16 code units; for ASCII that is the same.
            if type(key) is not str or not key.isascii():
                return False
            kind = type(item)
            if kind is str or kind is bool or (kind is int and -LARGEST_INTEGER <= item <= LARGEST_INTEGER):
                continue
            if not is_plain(item):
                return False
        return True
    if kind is int:
        return -LARGEST_INTEGER <= value <= LARGEST_INTEGER  # type: ignore[no-any-return]
    if kind is list or kind is tuple:
        return all(type(item) is str or is_plain(item) for item in value)
    if kind is float:
        # In this range both write the digits out and neither has a fraction to drop.
        return 1e-5 <= abs(value) < 1e15 and not value.is_integer()
    return kind is str or kind is bool or value is None


def _write(value: Any, put: Callable[[str], object]) -> None:
    if value is None or value is True or value is False:
        put("null" if value is None else "true" if value else "false")
    elif isinstance(value, str):
        put(orjson.dumps(value).decode())
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise JsonRefused("an integer is beyond 2^53 - 1; send it as a string", code="json_number")
        put(str(value))
    elif isinstance(value, float):
        put(number(value))
    elif isinstance(value, dict):
        _write_object(value, put)
    elif isinstance(value, list | tuple):
        put("[")
        for index, item in enumerate(value):
            if index:
                put(",")
            _write(item, put)
        put("]")
    else:
        raise JsonRefused(f"{type(value).__name__} is not a JSON value", code="json_type")


def _write_object(value: dict[str, Any], put: Callable[[str], object]) -> None:
    if not all(isinstance(key, str) for key in value):
        raise JsonRefused("an object has a key that is not a string", code="json_type")
    put("{")
    # RFC 8785 sorts by UTF-16 code units, which is not the order of code points beyond U+D7FF.
    for index, key in enumerate(sorted(value, key=lambda text: text.encode("utf-16-be"))):
        if index:
            put(",")
        put(orjson.dumps(key).decode())
        put(":")
        _write(value[key], put)
    put("}")


def number(value: float) -> str:
    """Write a number as ECMAScript does: the shortest digits that read back the same."""
    if not math.isfinite(value):
        raise JsonRefused(f"{value} is not JSON", code="json_number")
    if value == 0:
        return "0"
    sign, (digits, exponent) = "-" if value < 0 else "", _shortest(abs(value))
    point = len(digits) + exponent
    if 0 < point <= 21:
        whole = digits.ljust(point, "0")
        return sign + whole[:point] + ("." + whole[point:] if len(whole) > point else "")
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + power


def _shortest(value: float) -> tuple[str, int]:
    """Return the shortest round-trip digits of a positive float, and their power of ten."""
    mantissa, _, power = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or 0) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    return kept, exponent + len(digits) - len(kept)
