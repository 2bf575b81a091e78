"""Read large JSON texts in pieces: one call of a parser blocks every other thread until it ends.

The text of a large object or array is split at commas, and each piece is parsed alone. A piece that parses was split
between two members: after a comma inside a string or a nested value, something would be left open. What cannot be split
is split one level deeper, or parsed whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

# A piece is parsed in less than a millisecond.
PIECE_BYTES = 32 * 1024
# How many commas are tried as the end of a piece, and how deep large values are split.
_TRIES = 8
_DEPTH = 8
_SPACE = b" \t\n\r"
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def load(data: bytes, piece_bytes: int = PIECE_BYTES) -> Any:
    """Return what `orjson.loads` returns, or raise its JSONDecodeError."""
    if len(data) <= 2 * piece_bytes:
        return orjson.loads(data)
    try:
        return _load(data, piece_bytes, _DEPTH)
    except (ValueError, msgspec.DecodeError, RecursionError):
        # Parse the whole text: the parser says what is wrong with it.
        return orjson.loads(data)


def _load(data: bytes, piece_bytes: int, depth: int) -> Any:
    if len(data) <= 2 * piece_bytes or not depth:
        return orjson.loads(data)
    text = data.strip(_SPACE)
    if text[:1] == b"{" and text[-1:] == b"}":
        members: dict[str, Any] = {}
        for piece in _pieces(text, piece_bytes):
            if piece is None:
                return {key: _load(bytes(raw), piece_bytes, depth - 1) for key, raw in _members(text).items()}
            members.update(piece)
        return members
    if text[:1] == b"[" and text[-1:] == b"]":
        items: list[Any] = []
        for piece in _pieces(text, piece_bytes):
            if piece is None:
                return [_load(bytes(raw), piece_bytes, depth - 1) for raw in _items(text)]
            items.extend(piece)
        return items
    return orjson.loads(data)


def _pieces(text: bytes, piece_bytes: int) -> Iterator[Any]:
    """Yield the members of an object or array, some at a time; None at the end if it cannot be split further."""
    opening, closing = text[:1], text[-1:]
    begin, end = 1, len(text) - 1
    while end - begin > 2 * piece_bytes:
        comma = begin + piece_bytes
        for _ in range(_TRIES):
            comma = text.find(b",", comma, end)
            if comma < 0:
                yield None
                return
            piece = _parsed(opening + text[begin:comma] + closing)
            # An empty piece would accept a comma with nothing before it.
            if piece:
                break
            comma += 1
        else:
            yield None
            return
        yield piece
        begin = comma + 1
    last = orjson.loads(opening + text[begin:end] + closing)
    if not last:
        raise orjson.JSONDecodeError("a comma without a member after it", "", 0)
    yield last


def _parsed(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
