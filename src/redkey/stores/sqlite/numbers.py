"""A cache of topic numbers: a committed number never changes and is never removed."""

from __future__ import annotations

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

    def get(self, topic: str) -> int | None:
        number = self._young.get(topic)
        if number is None and (number := self._old.get(topic)) is not None:
            self.put(topic, number)
        return number

    def put(self, topic: str, number: int) -> None:
        if len(self._young) >= GENERATION:
            self._old, self._young = self._young, {}
        self._young[topic] = number

    def clear(self) -> None:
        self._young, self._old = {}, {}
