"""Secrets in text, found before anything is recorded that cannot be unsaid.

Only shapes that their makers gave a prefix, a form or a checksum are looked for (`secret_shapes`). How random a
text looks is never asked: every hash, ULID and signature looks random, and this system is full of them. What was
found is told by its name and its place, never by its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from redkey.errors import Finding, pointer
from redkey.ledger.secret_shapes import SHAPES, Shape

# Characters by how seldom ordinary text has them: a mark is looked for only where its seldomest one stands.
_SELDOM = "~$+=_/.-" + "7890654321" + "QZXJVKYUWGPFHBDMLNEOCRISTA" + ":" + "qzxjkvwybfgphmuldcnrostiae"


def _by_seldomest() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for mark in {mark for shape in SHAPES for mark in shape.marks}:
        groups.setdefault(min(mark, key=_SELDOM.index), []).append(mark)
    return groups


_MARKS = _by_seldomest()
# What may be, or hold, text.
_TELLING = (str, dict, list, tuple)


class Secret(NamedTuple):
    """A secret that was found: the name of its shape, and where it stands. Never the secret itself."""

    pattern: str
    pointer: str

    def finding(self, under: str = "") -> Finding:
        text = f"this looks like a secret ({self.pattern}); send a reference to it instead"
        return Finding("secret_detected", under + self.pointer, text)


def find_secrets(value: Any) -> Iterator[Secret]:
    """The secrets in a JSON value, in its texts and in the names of its fields: the first of each text."""
    # Looking for fixed marks is much cheaper than looking for shapes, and most values have none.
    shapes = _possible("\n".join(_words(value)))
    if shapes:
        for text, path in _texts(value):
            if (name := _first(shapes, text)) is not None:
                yield Secret(name, pointer(path))


def find_secret(value: Any) -> Secret | None:
    """The first secret in a JSON value; None when there is none."""
    # Most values have no mark of a secret at all.
    return next(find_secrets(value), None) if _possible("\n".join(_words(value))) else None


def secret_in(text: str) -> str | None:
    """The name of the shape of a secret that a text holds; None when it holds none."""
    return _first(_possible(text), text)


def _possible(text: str) -> Sequence[Shape]:
    found = {mark for seldom, marks in _MARKS.items() if seldom in text for mark in marks if mark in text}
    return [shape for shape in SHAPES if not found.isdisjoint(shape.marks)] if found else ()


def _first(shapes: Sequence[Shape], text: str) -> str | None:
    for shape in shapes:
        for match in shape.regex.finditer(text):
            if shape.check is None or shape.check(match):
                return shape.name
    return None


def _words(value: Any) -> list[str]:
    """Every text of a JSON value, in any order, without recursion."""
    words: list[str] = []
    pending = [value]
    for part in pending:
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, dict):
            words.extend(part)
            pending.extend([item for item in part.values() if isinstance(item, _TELLING)])
        elif isinstance(part, list | tuple):
            pending.extend([item for item in part if isinstance(item, _TELLING)])
    return words


def _texts(value: Any) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Every text of a JSON value with its place, in order, without recursion."""
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while pending:
        part, path = pending.pop()
        if isinstance(part, str):
            yield part, path
        elif isinstance(part, dict):
            for name in part:
                yield name, path
            pending.extend((item, (*path, name)) for name, item in reversed(part.items()))
        elif isinstance(part, list | tuple):
            pending.extend((item, (*path, index)) for index, item in reversed(list(enumerate(part))))
