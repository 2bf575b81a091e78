"""The worlds that are loaded: read from rows on first use, kept up with what others write, let go when idle.

A world is lent to the unit of its topic and changes inside that unit only. It comes back when the unit is committed;
when the commit fails, it is dropped. While a unit that runs in a thread has it, questions are answered by a copy that
follows the commits.
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
_COPIES = 64


class Loan:
    """A world on loan to a unit: None until the unit has loaded it."""

    __slots__ = ("loaded_at", "news", "topic", "world")

    def __init__(self, topic: str, world: World | None, loaded_at: int) -> None:
        self.topic, self.world = topic, world
        # Up to where the world was loaded from rows: what an agent was told before stands there and not in memory.
        self.loaded_at = loaded_at
        # What others have committed, which those who wait have not heard of yet.
        self.news = Changes()

    def enter(self, unit: Unit) -> World:
        """The world at the head, for a unit that may change it."""
        world = self.world
        if world is None:
            world = self.world = load_world(unit, self.topic)
            self.loaded_at = world.sequence
            # What was offered before it was loaded is not known: whoever waits looks again.
            self.news.reopened = True
        elif unit.head(self.topic).sequence != world.sequence:
            _catch_up(unit, self.topic, world, self.news)
        _check_rules(world)
        return world


class Worlds:
    """The worlds of one store, the most recently used last."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store
        self._loaded: dict[str, World] = {}
        # Up to where each world was loaded from rows.
        self._loaded_at: dict[str, int] = {}
        # What was committed and those who wait have not heard of yet.
        self._news: dict[str, Changes] = {}
        # Copies for questions that come while a unit has the world.
        self._copies: dict[str, World] = {}
        # Workspaces that were used since the idle ones were last let go.
        self._recent: set[str] = set()
        # Workspaces that this process let go: when something will be due in them, and the time of their last record.
        self._asleep: dict[str, tuple[int, int]] = {}
        # The time of a workspace's last record, and the monotonic time when it was first seen here.
        self._seen: dict[str, tuple[int, int]] = {}

    def get(self, topic: str) -> World | None:
        """The world if it is loaded and no unit has it, as this process left it."""
        return self._loaded.get(topic)

    def lend(self, topic: str) -> Loan:
        """Hand the world of a topic to the unit that will run; nobody else has it until it is taken back or dropped."""
        return Loan(topic, self._loaded.pop(topic, None), self._loaded_at.get(topic, 0))

    def take_back(self, loan: Loan, changes: Changes | None) -> None:
        """The unit is durable: keep its world, and what it changed for those who wait."""
        topic, world = loan.topic, loan.world
        if world is None:
            return
        news = self._news.get(topic)
        if news is None:
            news = self._news[topic] = Changes()
        for told in (loan.news, changes):
            if told is not None:
                news.offers += told.offers
                news.reopened |= told.reopened
        self._loaded_at[topic] = loan.loaded_at
        self._keep(topic, world)

    def news(self, topic: str) -> Changes:
        """What those who wait in a loaded world have not heard of yet; whoever tells them takes it out."""
        return self._news[topic]

    def peek(self, topic: str, head: int) -> World:
        """The world at the last commit, for questions that need no unit; do not change it.

        `head` is what the store knows to be the head.
        """
        world = self._loaded.pop(topic, None)
        if world is None:
            with self._store.snapshot() as snapshot:
                world = load_world(snapshot, topic)
            self._loaded_at[topic], self._news[topic] = world.sequence, Changes()
            # What was offered before it was loaded is not known: whoever waits looks again.
            self._news[topic].reopened = True
        elif head > world.sequence:
            _catch_up(self._store, topic, world, self._news[topic])
        _check_rules(world)
        return self._keep(topic, world)

    def peek_beside(self, topic: str, head: int) -> World:
        """The same while a unit has the world: a copy, which nothing is decided by."""
        world = self._copies.pop(topic, None)
        if world is None:
            with self._store.snapshot() as snapshot:
                world = load_world(snapshot, topic)
        elif head > world.sequence:
            _catch_up(self._store, topic, world, Changes())
        _check_rules(world)
        self._copies[topic] = world
        if len(self._copies) > _COPIES:
            del self._copies[next(iter(self._copies))]
        return world

    def drop(self, loan: Loan) -> None:
        """The unit failed: forget its world, which is ahead of the ledger."""
        self._news.pop(loan.topic, None)
        if loan.world is not None:
            # What was due in it is found when it is loaded again, at the next tick at the latest.
            self._asleep[loan.topic] = 1, 0

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
        self._loaded[topic] = world
        self._recent.add(topic)
        self._asleep.pop(topic, None)
        return world

    def _let_go(self, topic: str) -> None:
        self._news.pop(topic, None)
        self._copies.pop(topic, None)
        world = self._loaded.pop(topic)
        when = next_time(world)
        if when:
            self._asleep[topic] = when, world.timestamp


def _check_rules(world: World) -> None:
    if world.workspace.rules > RULES:
        raise UpgradeNeeded(f"workspace {world.workspace.workspace_id} is under rules {world.workspace.rules}")


def _catch_up(reader: Reader, topic: str, world: World, news: Changes) -> None:
    """Fold what others wrote; their units wrote the rows already."""
    changes = Changes()
    while records := reader.read(topic, world.sequence, _PAGE):
        for record in records:
            fold_record(world, changes, record, reader)
        changes.rows.clear()
    news.offers += changes.offers
    news.reopened |= changes.reopened
