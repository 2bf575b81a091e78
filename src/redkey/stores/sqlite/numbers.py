"""A cache of topic numbers: a committed number never changes and is never removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redkey.stores.sqlite.schema import SQL

# Entries of one generation; at most two are kept.
GENERATION = 16_384


class Numbers:
    """A bounded map in two generations: when the young one is full, the old one is dropped.

    Entries in use stay, because a lookup in the old generation moves the entry to the young one.
    """

    __slots__ = ("_old", "_young")

    def __init__(self) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def find(self, topic: str, fetch: Callable[[str, tuple[str]], list[Any]]) -> int | None:
        """Return the number of a topic, from the database if it is not known; None if there is no such topic."""
        number = self._young.get(topic)
        if number is None:
            number = self._old.get(topic)
            if number is None:
                rows = fetch(SQL["topic_number"], (topic,))
                number = rows[0][0] if rows else None
            if number is not None:
                self.put(topic, number)
        return number

    def put(self, topic: str, number: int) -> None:
        if len(self._young) >= GENERATION:
            self._old, self._young = self._young, {}
        self._young[topic] = number

    def clear(self) -> None:
        self._young, self._old = {}, {}
