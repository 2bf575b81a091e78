"""The literal examples of the seeds, as files under tests/seeds/examples: read as they were written.

Some examples show alternatives in one value ("pass | fail") or name what belongs in a place ("ISO8601"). `spellings`
gives the documents that such an example stands for, one alternative changed at a time.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "examples"
# What the seeds write where a real document has a value.
PLACEHOLDERS: dict[str, Any] = {
    "agent_slug": "quinn",
    "role_slug": "developer",
    "output_contract_slug": "code_commit",
    "ISO8601": "2026-04-28T00:00:00Z",
    "0.0.XXXXX": "0.0.8830671",
    "string": "text",
    "null": None,
    "1.0": "1.0",
}


def example(name: str) -> Any:
    """Return an example as the seed prints it."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def alternatives(value: str) -> list[Any]:
    """Return the values that a text of a seed stands for."""
    parts = [part.strip().strip("'") for part in value.split(" | ")] if " | " in value else [value]
    return [PLACEHOLDERS.get(part, part) for part in parts]


def leaves(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the places of a document that hold neither an object nor a list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield place, value
        return
    for key, item in items:
        yield from leaves(item, (*place, key))


def put(document: Any, place: tuple[str | int, ...], value: Any) -> Any:
    """Return a copy of a document with another value at a place."""
    changed = copy.deepcopy(document)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return changed


def spellings(document: Any) -> list[Any]:
    """Return the documents that an example stands for; the first has the first alternative everywhere."""
    texts = [(place, alternatives(value)) for place, value in leaves(document) if isinstance(value, str)]
    first = document
    for place, values in texts:
        first = put(first, place, values[0])
    return [first, *(put(first, place, value) for place, values in texts for value in values[1:])]


def without(document: dict[str, Any], *place: str) -> dict[str, Any]:
    """Return a copy of a document without the field at a place."""
    changed = copy.deepcopy(document)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    del inner[place[-1]]
    return changed


def fields(value: Any) -> Any:
    """Return the names of the fields of a document, as a tree."""
    return {name: fields(item) for name, item in value.items()} if isinstance(value, dict) else None
