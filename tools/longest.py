"""The longest strings that a pattern and a length limit allow.

Patterns are those of the contract files: anchored, with classes, groups, alternatives and counted repeats. A pattern is
split into alternatives of segments, each a set of characters with a minimum and maximum count.
"""

from __future__ import annotations

import re._constants as sre
import re._parser as parser
from itertools import product
from typing import Any, NamedTuple


class Segment(NamedTuple):
    """Characters of one set, with the least and the greatest count."""

    characters: str
    least: int
    most: int


def longest(pattern: str, limit: int, variant: int = 0) -> str:
    """Return one of the longest strings that match; `variant` selects another one of the same length."""
    filled = [_fill(segments, limit, variant) for segments in _alternatives(list(parser.parse(pattern)), limit)]
    return max((text for text in filled if text is not None), key=len)


def _fill(segments: list[Segment], limit: int, variant: int) -> str | None:
    """Fill the segments; shorten the last ones that can be shorter until the limit is met."""
    counts = [segment.most for segment in segments]
    for index in reversed(range(len(segments))):
        spare = sum(counts) - limit
        if spare > 0:
            counts[index] = max(segments[index].least, counts[index] - spare)
    if sum(counts) > limit:
        return None
    # Variants differ in the last characters.
    text: list[str] = []
    for segment, count in reversed(list(zip(segments, counts, strict=True))):
        for _ in range(count):
            text.append(segment.characters[variant % len(segment.characters)])
            variant //= len(segment.characters)
    return "".join(reversed(text))


def _alternatives(parsed: list[Any], limit: int) -> list[list[Segment]]:
    """Return every way through a parsed pattern, as segments."""
    ways = [_ways(operator, argument, limit) for operator, argument in parsed]
    return [[segment for part in way for segment in part] for way in product(*ways)]


def _ways(operator: Any, argument: Any, limit: int) -> list[list[Segment]]:
    if operator is sre.AT:
        return [[]]
    if operator is sre.LITERAL:
        return [[Segment(chr(argument), 1, 1)]]
    if operator is sre.IN:
        return [[Segment(_characters(argument), 1, 1)]]
    if operator is sre.SUBPATTERN:
        return _alternatives(list(argument[3]), limit)
    if operator is sre.BRANCH:
        return [way for branch in argument[1] for way in _alternatives(list(branch), limit)]
    if operator is sre.MAX_REPEAT:
        least, most, body = argument
        most = min(int(most), limit)
        found = [way * most for way in _alternatives(list(body), limit)]
        single = [Segment(way[0].characters, least, most) for way in _alternatives(list(body), limit) if len(way) == 1]
        return [[segment] for segment in single] or found
    raise NotImplementedError(f"{operator} in a pattern")


def _characters(members: list[Any]) -> str:
    found = []
    for kind, member in members:
        low, high = (member, member) if kind is sre.LITERAL else member
        found += [chr(code) for code in range(low, high + 1)]
    return "".join(found)
