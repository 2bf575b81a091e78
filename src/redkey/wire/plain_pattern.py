"""Patterns of strings that match JSON text directly: plain characters only, of known length.

JSON writes most characters as they are and escapes the others, so a schema's pattern can be applied to JSON text only
if it matches no character that is escaped. This module reads the part of regular expressions that our schemas use
(literals, classes, groups, alternatives, repetition) and refuses the rest.
"""

from __future__ import annotations

import re
from functools import cache

# The width that is assumed for an unbounded repetition.
UNBOUNDED = 1 << 30

_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - {'"', "\\"}
_TOKEN = re.compile(
    r"(?P<open>\(\?:)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<one>[A-Za-z0-9_:=/ -]|\\\.|\[(?!\^)(?:[^\\\]\"]|\\[\\\[\]])+\])"
    r"|(?P<times>[*+?]|\{[0-9]+(?:,[0-9]*)?\})"
)
_TIMES = {"*": (0, UNBOUNDED), "+": (1, UNBOUNDED), "?": (0, 1)}

Width = tuple[int, int]


@cache
def width_of(pattern: str) -> tuple[str, Width] | None:
    """Return the pattern without its anchors, and its shortest and longest match; None if it is not plain."""
    if not (pattern.isascii() and pattern.startswith("^") and pattern.endswith("$")):
        return None
    inner = pattern[1:-1]
    try:
        # A bar outside all groups ends the sequence: each side of it would have only one anchor.
        width, end = _sequence(inner, 0)
    except ValueError:
        return None
    return (inner, width) if end == len(inner) else None


def _alternatives(text: str, at: int) -> tuple[Width, int]:
    """Return the width of the alternatives of a group, and where it ends."""
    width, at = _sequence(text, at)
    while text[at : at + 1] == "|":
        other, at = _sequence(text, at + 1)
        width = min(width[0], other[0]), max(width[1], other[1])
    return width, at


def _sequence(text: str, at: int) -> tuple[Width, int]:
    shortest = longest = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup == "times":
            raise ValueError(f"{text[at:]} is not supported")
        if token.lastgroup in ("close", "bar"):
            break
        if token.lastgroup == "open":
            (low, high), at = _alternatives(text, token.end())
            if text[at : at + 1] != ")":
                raise ValueError("a group without an end")
            at += 1
        else:
            _check_plain(token[0])
            low, high, at = 1, 1, token.end()
        times, at = _times(text, at)
        shortest, longest = shortest + low * times[0], min(UNBOUNDED, longest + high * times[1])
    return (shortest, longest), at


def _times(text: str, at: int) -> tuple[Width, int]:
    token = _TOKEN.match(text, at)
    if token is None or token.lastgroup != "times":
        return (1, 1), at
    stated = _TIMES.get(token[0])
    if stated is None:
        low, comma, high = token[0][1:-1].partition(",")
        stated = int(low), int(high) if high else UNBOUNDED if comma else int(low)
    return stated, token.end()


def _check_plain(part: str) -> None:
    """Refuse a literal or class that matches a character that JSON escapes, or no known character."""
    matches = re.compile(part).fullmatch
    # Ranges are written in ASCII and nothing is negated, so nothing beyond ASCII is matched.
    if any(matches(chr(code)) and chr(code) not in _PLAIN for code in range(128)):
        raise ValueError(f"{part} matches a character that JSON escapes")
