"""Servers under load in turns: short slices, one server after the other, summed up for each.

The load of a shared machine changes within seconds, so two servers are comparable only if their slices alternate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.clocks import Spent
from bench.load import Lane, drive
from bench.served import Served

WARM_SECONDS = 0.2


class Turns:
    """A server with its connections, and the sums of its slices."""

    def __init__(self, server: Served, lanes: Sequence[Lane]) -> None:
        self._server, self._lanes = server, lanes
        self.works, self.seconds, self.client_seconds, self.spent = 0, 0.0, 0.0, Spent()
        # Seconds of each request, and microseconds of the server's process per piece of work in each slice.
        self.requests: list[float] = []
        self.each: list[float] = []
        drive(lanes, WARM_SECONDS)

    def take(self, seconds: float) -> None:
        """Run one slice."""
        before = self._server.spent
        load = drive(self._lanes, seconds)
        cost = self._server.spent - before
        self.works, self.spent = self.works + len(load.works), self.spent + cost
        self.seconds, self.client_seconds = self.seconds + load.seconds, self.client_seconds + load.client_seconds
        self.requests += load.requests
        self.each.append(cost.process / len(load.works) / 1e3)

    def microseconds(self, nanoseconds: int) -> float:
        """A part of the processor time, per piece of work."""
        return nanoseconds / self.works / 1e3


def alternate(turns: Mapping[str, Turns], slices: int, seconds: float, first: int = 0) -> None:
    """Run a number of slices on every server. Each round starts with another one, because the first may be faster."""
    for number in range(slices):
        for name in turned(list(turns), first + number):
            turns[name].take(seconds)


def turned(names: list[str], number: int) -> list[str]:
    """The names in order, starting with another one each time."""
    at = number % len(names)
    return names[at:] + names[:at]
