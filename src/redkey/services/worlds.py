"""The worlds that are loaded: read from rows on first use, kept up with what others write, let go when idle.

A world changes inside a unit only; whoever ran the unit drops the worlds it changed when the commit fails.
"""

from __future__ import annotations

from collections.abc import Collection

from redkey.commands.due import next_time
from redkey.errors import UpgradeNeeded
from redkey.ledger.ports import Reader, SequencedStore, Unit
from redkey.readmodel.ingest import fold_record
from redkey.readmodel.rows import load_world
from redkey.reducers.changes import Changes
from redkey.reducers.world import RULES, World

WORLDS_LIMIT = 1000
_PAGE = 1000
# How often a world is read outside a unit before others are kept from writing meanwhile.
_TRIES = 3


class Worlds:
    """The worlds of one store, the most recently used last."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store
        self._loaded: dict[str, World] = {}
        # Up to where each world was loaded from rows: what an agent was told before stands there and not in memory.
        self._loaded_at: dict[str, int] = {}
        # What was committed and those who wait have not heard of yet.
        self._news: dict[str, Changes] = {}
        # The version of the store at which a world was last found to be at the head.
        self._confirmed: dict[str, int] = {}
        # Workspaces that were used since the idle ones were last let go.
        self._recent: set[str] = set()
        # Workspaces that are not loaded: when something will be due in them, and the time of their last record.
        self._asleep: dict[str, tuple[int, int]] = {}
        # The time of a workspace's last record, and the monotonic time when it was first seen here.
        self._seen: dict[str, tuple[int, int]] = {}

    def get(self, topic: str) -> World | None:
        """The world if it is loaded, as this process left it."""
        return self._loaded.get(topic)

    def enter(self, unit: Unit, topic: str) -> World:
        """The world at the head, for a unit that may change it."""
        world = self._loaded.pop(topic, None)
        if world is None:
            world = self._loads(topic, load_world(unit, topic))
        elif unit.head(topic).sequence != world.sequence:
            self._catch_up(unit, topic, world)
        return self._keep(topic, world)

    def loaded_at(self, topic: str) -> int:
        """Up to where the world was loaded from rows."""
        return self._loaded_at[topic]

    def tell(self, topic: str, changes: Changes) -> None:
        """Keep what a unit has committed for those who wait."""
        news = self._news[topic]
        news.offers += changes.offers
        news.reopened |= changes.reopened

    def news(self, topic: str) -> Changes:
        """What those who wait in a loaded world have not heard of yet; whoever tells them takes it out."""
        return self._news[topic]

    def peek(self, topic: str, version: int) -> World:
        """The world at the last commit, for questions that need no unit; do not change it.

        `version` is the store's, asked before anything is read: who commits in between changes it once more.
        """
        world = self._loaded.pop(topic, None)
        if world is None:
            world = self._loads(topic, self._load_steady(topic))
        elif self._confirmed.get(topic) != version and self._store.head(topic).sequence != world.sequence:
            self._catch_up(self._store, topic, world)
        self._keep(topic, world)
        self._confirmed[topic] = version
        return world

    def drop(self, topic: str) -> None:
        """Forget a world that may be ahead of its commit."""
        self._confirmed.pop(topic, None)
        self._news.pop(topic, None)
        if self._loaded.pop(topic, None) is not None:
            # What was due in it is found when it is loaded again, at the next tick at the latest.
            self._asleep[topic] = 1, 0

    def due(self, wall: int, monotonic: int) -> list[str]:
        """The workspaces in which something may be due, loaded or not, each judged by its own time."""
        awake = {topic: (next_time(world), world.timestamp) for topic, world in self._loaded.items()}
        return [
            topic
            for topic, (when, last) in (awake | self._asleep).items()
            if when and when <= max(wall, self._ledger_time(topic, last, monotonic))
        ]

    def _ledger_time(self, topic: str, last: int, monotonic: int) -> int:
        """About what a record of the workspace would be stamped with: its ledger may be ahead of the wall clock."""
        seen = self._seen.get(topic)
        if seen is None or seen[0] != last:
            seen = self._seen[topic] = last, monotonic
        return last + monotonic - seen[1]

    def let_go_idle(self, awaited: Collection[str]) -> None:
        """Let go of the worlds that nobody used since this was last called, and nobody waits in."""
        recent, self._recent = self._recent, set()
        for topic in [topic for topic in self._loaded if topic not in recent and topic not in awaited]:
            self._let_go(topic)

    def let_go_surplus(self, awaited: Collection[str]) -> None:
        """Let go of the worlds used longest ago when there are too many."""
        surplus = len(self._loaded) - WORLDS_LIMIT
        if surplus > 0:
            for topic in [topic for topic in self._loaded if topic not in awaited][:surplus]:
                self._let_go(topic)

    def _keep(self, topic: str, world: World) -> World:
        if world.workspace.rules > RULES:
            raise UpgradeNeeded(f"workspace {world.workspace.workspace_id} is under rules {world.workspace.rules}")
        self._loaded[topic] = world
        self._recent.add(topic)
        self._asleep.pop(topic, None)
        return world

    def _let_go(self, topic: str) -> None:
        self._confirmed.pop(topic, None)
        self._news.pop(topic, None)
        world = self._loaded.pop(topic)
        when = next_time(world)
        if when:
            self._asleep[topic] = when, world.timestamp

    def _loads(self, topic: str, world: World) -> World:
        # What was offered before it was loaded is not known: whoever waits looks again.
        self._loaded_at[topic], self._news[topic] = world.sequence, Changes()
        self._news[topic].reopened = True
        return world

    def _load_steady(self, topic: str) -> World:
        """Rows are many reads; only when nobody wrote in between do they tell of one moment."""
        for _ in range(_TRIES):
            world = load_world(self._store, topic)
            if self._store.head(topic).sequence == world.sequence:
                return world
        with self._store.write() as unit:
            return load_world(unit, topic)

    def _catch_up(self, reader: Reader, topic: str, world: World) -> None:
        """Fold what others wrote; their units wrote the rows already."""
        changes = Changes()
        while records := reader.read(topic, world.sequence, _PAGE):
            for record in records:
                fold_record(world, changes, record, reader)
            changes.rows.clear()
        self.tell(topic, changes)
