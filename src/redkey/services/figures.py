"""Figures of the work, for operators: what happened in this process, and how much waits, by queue and role.

Events are counted as they are committed. What waits is read from the worlds when the figures are requested, once for
each change of a workspace; a workspace that is not in memory keeps its last figures.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from redkey.ledger.ports import SequencedStore
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, SECOND, World
from redkey.services.coordinator import Coordinator
from redkey.services.outcome import Settled

UNIT_SIZES = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000)
COMMIT_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
# In a workspace with more live tasks, the lists of claim-next are counted, which may hold tasks that were just claimed.
_COUNTED_TASKS = 50_000
# How many workspaces are read from the store for one answer.
_READ_AT_ONCE = 20


class Histogram:
    """Counts of observations in buckets."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Happened:
    """What this process committed: records by type, units by size, commits by time."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.units, self.commits = Histogram(UNIT_SIZES), Histogram(COMMIT_SECONDS)

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Count one unit."""
        self.units.observe(len(records))
        self.types.update([record.event.type for record in records])


class Waiting(msgspec.Struct, frozen=True):
    """Tasks of one queue that one role may claim, and since when the oldest of them is available (nanoseconds)."""

    queue: str
    role: str
    tasks: int
    oldest: int


class WorkFigures(msgspec.Struct, frozen=True):
    """The figures of one workspace at a sequence."""

    sequence: int
    waiting: tuple[Waiting, ...]
    states: dict[str, int]
    workers: int


class Work:
    """The figures of all workspaces."""

    def __init__(self, store: SequencedStore, coordinator: Coordinator) -> None:
        self._store, self._coordinator = store, coordinator
        self._known: dict[str, WorkFigures] = {}

    def read(self) -> Iterable[WorkFigures]:
        """Return the figures of every workspace, as new as its world in memory."""
        left = _READ_AT_ONCE
        for topic in self._store.topics():
            world = self._coordinator.loaded(topic)
            if world is None and topic not in self._known and left:
                left -= 1
                world = self._coordinator.peek(topic)
            known = self._known.get(topic)
            if world is not None and (known is None or known.sequence != world.sequence):
                self._known[topic] = _figures(world)
        return self._known.values()


def _figures(world: World) -> WorkFigures:
    # The time of a world is that of its last record.
    seen = sum(
        agent.active and not agent.lost and world.timestamp - agent.last_act_at < LOST_AFTER_NANOSECONDS
        for agent in world.agents.values()
    )
    found: dict[tuple[str, str], tuple[int, int]] = {}
    states: Counter[str] = Counter()
    if len(world.tasks) <= _COUNTED_TASKS:
        for task in world.tasks.values():
            states[task.state] += 1
            if task.state == "available":
                _add(found, task.queue_id, task.roles, 1, task.created_at)
    else:
        for queue, heaps in world.heaps.items():
            for (roles, _), heap in heaps.items():
                _add(found, queue, roles, len(heap), world.tasks[heap[0][2]].created_at)
    waiting = (Waiting(queue, role, tasks, oldest) for (queue, role), (tasks, oldest) in found.items())
    return WorkFigures(world.sequence, tuple(waiting), dict(states), seen)


def _add(
    found: dict[tuple[str, str], tuple[int, int]], queue: str, roles: tuple[str, ...], tasks: int, oldest: int
) -> None:
    before = found.get((queue, "+".join(roles)), (0, oldest))
    found[queue, "+".join(roles)] = before[0] + tasks, min(before[1], oldest)


def age_seconds(oldest: int, now: int) -> float:
    """Return how long ago a time was; 0 if the clock stepped back."""
    return max(0, now - oldest) / SECOND
