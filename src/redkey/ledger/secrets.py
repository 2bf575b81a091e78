"""Find secrets in text before it is recorded: what is on the ledger cannot be removed.

Only known shapes are searched, with a prefix, a form or a checksum (`secret_shapes`). Randomness is no criterion: every
hash, ULID and signature looks random, and this system is full of them. A finding has a name and a place, never the
secret itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from redkey.errors import Finding, pointer
from redkey.ledger.secret_shapes import SHAPES, Shape

# Characters by how rare they are in ordinary text: a mark is searched only where its rarest character is.
_SELDOM = "~$+=_/.-" + "7890654321" + "QZXJVKYUWGPFHBDMLNEOCRISTA" + ":" + "qzxjkvwybfgphmuldcnrostiae"


def _by_seldomest() -> list[tuple[str, list[tuple[str, list[int]]]]]:
    """The marks of secrets by their seldomest character, each with the shapes that it may begin."""
    shapes: dict[str, list[int]] = {}
    for index, shape in enumerate(SHAPES):
        for mark in shape.marks:
            shapes.setdefault(mark, []).append(index)
    groups: dict[str, list[tuple[str, list[int]]]] = {}
    for mark, indexes in shapes.items():
        groups.setdefault(min(mark, key=_SELDOM.index), []).append((mark, indexes))
    return [*groups.items()]


_MARKS = _by_seldomest()
# The types that are text or may contain it.
_TELLING = (str, dict, list, tuple)


class Secret(NamedTuple):
    """A secret that was found: the name of its shape and its place, never the secret itself."""

    pattern: str
    pointer: str

    def finding(self, under: str = "") -> Finding:
        text = f"this looks like a secret ({self.pattern}); send a reference to it instead"
        return Finding("secret_detected", under + self.pointer, text)


def find_secrets(value: Any) -> Iterator[Secret]:
    """Yield the secrets in the texts and field names of a JSON value: the first of each text."""
    # A search for fixed marks is much cheaper than one for shapes, and most values have none.
    shapes = _possible("\n".join(_words(value)))
    if shapes:
        for text, path in _texts(value):
            if (name := _first(shapes, text)) is not None:
                yield Secret(name, pointer(path))


def find_secret(value: Any) -> Secret | None:
    """Return the first secret in a JSON value; None if there is none."""
    return next(find_secrets(value), None)


def secret_in(text: str) -> str | None:
    """Return the name of the shape of a secret in a text; None if there is none."""
    return _first(_possible(text), text)


def _possible(text: str) -> Sequence[Shape]:
    """The shapes that the marks in a text may begin."""
    found: set[int] = set()
    for seldom, marks in _MARKS:
        if seldom in text:
            for mark, shapes in marks:
                if mark in text:
                    found.update(shapes)
    return [SHAPES[index] for index in sorted(found)]


def _first(shapes: Sequence[Shape], text: str) -> str | None:
    for shape in shapes:
        for match in shape.regex.finditer(text):
            if shape.check is None or shape.check(match):
                return shape.name
    return None


def _words(value: Any) -> list[str]:
    """Yield every text of a JSON value, in any order, without recursion."""
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
    """Yield every text of a JSON value with its place, in order, without recursion."""
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
