"""Servers under load in turns: short slices, one server after the other, summed up for each.

What else a shared machine does changes within seconds, so two servers are comparable only when their slices alternate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.clocks import Spent
from bench.load import Lane, drive
from bench.served import Served

WARM_SECONDS = 0.2


class Turns:
    """A server with its connections, and the sum of what its slices did and cost."""

    def __init__(self, server: Served, lanes: Sequence[Lane]) -> None:
        self._server, self._lanes = server, lanes
        self.works, self.seconds, self.client_seconds, self.spent = 0, 0.0, 0.0, Spent()
        # Seconds of each request, and microseconds of the server's process for a piece of work in each slice.
        self.requests: list[float] = []
        self.each: list[float] = []
        drive(lanes, WARM_SECONDS)

    def take(self, seconds: float) -> None:
        """One slice."""
        before = self._server.spent
        load = drive(self._lanes, seconds)
        cost = self._server.spent - before
        self.works, self.spent = self.works + len(load.works), self.spent + cost
        self.seconds, self.client_seconds = self.seconds + load.seconds, self.client_seconds + load.client_seconds
        self.requests += load.requests
        self.each.append(cost.process / len(load.works) / 1e3)

    def microseconds(self, nanoseconds: int) -> float:
        """A part of what was spent, for one piece of work."""
        return nanoseconds / self.works / 1e3


def alternate(turns: Mapping[str, Turns], slices: int, seconds: float, first: int = 0) -> None:
    """Let every server have so many slices. Each time another one begins: who comes first may have it easier."""
    for number in range(slices):
        for name in turned(list(turns), first + number):
            turns[name].take(seconds)


def turned(names: list[str], number: int) -> list[str]:
    """The names in order, from another one on each time."""
    at = number % len(names)
    return names[at:] + names[:at]
