"""The cost of large work: each key and each workspace has a budget, and has to wait when it is spent.

Ordinary requests are free: they share the server by taking turns (`redkey.services.turns`). Beyond a free part, a KiB
of body and a task of a plan cost one unit each. A caller with anything left may overdraw, so that no request is too
large for its limit; the next one waits until the debt is paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from redkey.commands.decision import Refused
from redkey.config import Cost

# Budgets that memory knows; the one used longest ago is dropped first.
KEPT = 10_000

# The free part: so little work that no caller notices it.
FREE_BYTES = 64 * 1024
FREE_TASKS = 64


def cost_of_bytes(size: int) -> int:
    """Return the units that a body costs."""
    return max(0, size - FREE_BYTES) // 1024


def cost_of_tasks(count: int) -> int:
    """Return the units that a plan costs."""
    return max(0, count - FREE_TASKS)


class Budgets:
    """A token bucket for each name: a burst of units at once, and a rate in the long run; it may be overdrawn."""

    def __init__(self, per_second: float, burst: float, now: Callable[[], float]) -> None:
        self._per_second, self._burst, self._now = per_second, burst, now
        # name -> units, and the time they were counted; the one used longest ago first.
        self._kept: dict[str, tuple[float, float]] = {}

    def wait_seconds(self, name: str) -> float:
        """Return the seconds until there is something to spend; 0 if there is something now."""
        return max(0.0, -self._units(name) / self._per_second)

    def spend(self, name: str, cost: float) -> None:
        units = self._units(name)
        self._kept.pop(name, None)
        if len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[name] = units - cost, self._now()

    def _units(self, name: str) -> float:
        now = self._now()
        units, counted = self._kept.get(name, (self._burst, now))
        return min(self._burst, units + (now - counted) * self._per_second)


class Costs:
    """The budgets of all keys and workspaces."""

    def __init__(self, limits: Cost, now: Callable[[], float]) -> None:
        self._keys = Budgets(limits.per_second, limits.burst, now) if limits.per_second else None
        self._workspaces = (
            Budgets(limits.workspace_per_second, limits.workspace_burst, now) if limits.workspace_per_second else None
        )

    def check(self, key: str, workspace: str) -> None:
        """Refuse if a key or its workspace has spent too much."""
        for budgets, name, what in ((self._keys, key, "key"), (self._workspaces, workspace, "workspace")):
            wait = budgets.wait_seconds(name) if budgets is not None else 0
            if wait:
                seconds = math.ceil(wait)
                detail = f"This {what} asked for much large work; wait {seconds} s, or send it in smaller requests."
                raise Refused(429, "cost_limited", detail, retry_seconds=seconds)

    def charge(self, key: str, workspace: str, cost: int) -> None:
        """Charge units to a key and to its workspace; Refused if either has spent too much before."""
        self.check(key, workspace)
        for budgets, name in ((self._keys, key), (self._workspaces, workspace)):
            if budgets is not None:
                budgets.spend(name, cost)
