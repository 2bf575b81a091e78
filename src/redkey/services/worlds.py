"""The loaded worlds: read from rows on first use, updated with what others write, unloaded when idle.

A world is lent to the unit of its topic and changes inside that unit only. It is returned when the unit is committed;
if the commit fails, it is dropped. While a unit in a thread has it, questions are answered by a copy that follows the
commits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from redkey import fibers
from redkey.commands.due import next_time
from redkey.errors import UpgradeNeeded
from redkey.ledger.ports import Reader, SequencedStore, Unit
from redkey.ledger.record import LOCAL_PAYER
from redkey.readmodel.ingest import fold_record
from redkey.readmodel.structure import structure_ref
from redkey.readmodel.world_loading import load_world
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.world import RULES, World
from redkey.services.outcome import Settled

WORLDS_LIMIT = 1000
_PAGE = 1000
_COPIES = 64
_LAST = 2**63 - 1


class Loan:
    """A world on loan to a unit: None until the unit has loaded it."""

    __slots__ = ("loaded_at", "news", "topic", "world")

    def __init__(self, topic: str, world: World | None, loaded_at: int) -> None:
        self.topic, self.world = topic, world
        # The place up to which the world was loaded from rows: earlier outcomes of agents are in rows, not in memory.
        self.loaded_at = loaded_at
        # Commits of other processes that the waiters have not been notified of yet.
        self.news = Changes()

    def enter(self, unit: Unit) -> World:
        """Return the world at the head, for a unit that may change it."""
        world = self.world
        if world is None:
            world = self.world = load_world(unit, self.topic)
            self.loaded_at = world.sequence
            # What was offered before it was loaded is not known: all waiters try again.
            self.news.reopened = True
        elif unit.head(self.topic).sequence != world.sequence:
            _catch_up(unit, self.topic, world, self.news)
        _check_rules(world)
        return world

    def approach(self, store: SequencedStore) -> None:
        """Read what others have committed, before a unit begins or instead of one; in a thread, without a lock."""
        if self.world is not None:
            _catch_up(store, self.topic, self.world, self.news)
            return
        with store.snapshot() as snapshot:
            self.world = load_world(snapshot, self.topic)
        self.loaded_at = self.world.sequence
        self.news.reopened = True

    def is_far_behind(self, head: int) -> bool:
        """True if others have committed more than a unit should read while it holds the lock."""
        return self.world is not None and head - self.world.sequence > _PAGE


class Worlds:
    """The worlds of one store, the most recently used last."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store
        self._loaded: dict[str, World] = {}
        # The place up to which each world was loaded from rows.
        self._loaded_at: dict[str, int] = {}
        # Commits that the waiters have not been notified of yet.
        self._news: dict[str, Changes] = {}
        # Copies for questions, where units run in threads; one caller at a time updates each to the head.
        self._copies: dict[str, World] = {}
        self._turns = fibers.Turns()
        # What this process has committed since a copy was last read: it need not be read again.
        self._committed: dict[str, deque[Settled]] = {}
        # Workspaces that were used since the last unloading of idle ones.
        self._recent: set[str] = set()
        # Workspaces that this process unloaded: when something will be due in them, and the time of their last record.
        self._asleep: dict[str, tuple[int, int]] = {}
        # The time of a workspace's last record, and the monotonic time when it was first seen here.
        self._seen: dict[str, tuple[int, int]] = {}

    def get(self, topic: str) -> World | None:
        """Return the world if it is loaded and no unit has it, as this process left it."""
        return self._loaded.get(topic)

    def lend(self, topic: str) -> Loan:
        """Lend the world of a topic to the next unit; no other code has it until it is taken back or dropped."""
        return Loan(topic, self._loaded.pop(topic, None), self._loaded_at.get(topic, 0))

    def take_back(self, loan: Loan, changes: Changes | None) -> None:
        """Take back the world of a durable unit, and note what it changed for waiters."""
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
        """Return the changes of a loaded world that waiters have not been notified of; the caller that notifies them
        removes them.
        """
        return self._news[topic]

    def peek(self, topic: str, head: int) -> World:
        """Return the world at the last commit, for questions that need no unit; do not change it.

        `head` is what the store knows to be the head.
        """
        world = self._loaded.pop(topic, None)
        if world is None:
            with self._store.snapshot() as snapshot:
                world = load_world(snapshot, topic)
            self._loaded_at[topic], self._news[topic] = world.sequence, Changes()
            # What was offered before it was loaded is not known: all waiters try again.
            self._news[topic].reopened = True
        elif head > world.sequence:
            _catch_up(self._store, topic, world, self._news[topic])
        _check_rules(world)
        return self._keep(topic, world)

    def peek_beside(self, topic: str, head: int) -> World:
        """Return the world as `peek` does, where units run in threads: a copy, by which nothing is decided."""
        with self._turns.of(topic) as is_alone:
            world = self._copies.pop(topic, None) if is_alone else None
            if world is None:
                with self._store.snapshot() as snapshot:
                    world = load_world(snapshot, topic)
            else:
                _fold_own(world, self._committed[topic])
                if head > world.sequence:
                    _catch_up(self._store, topic, world, Changes(), head)
            _check_rules(world)
            if is_alone:
                self._copies[topic] = world
                self._committed.setdefault(topic, deque(maxlen=_PAGE))
                if len(self._copies) > _COPIES:
                    self._drop_copy(next(iter(self._copies)))
            return world

    def follow(self, topic: str, records: Sequence[Settled]) -> None:
        """Keep what was committed here in memory for the copy of a workspace, if it has one."""
        kept = self._committed.get(topic)
        if kept is not None:
            kept.extend(records)

    def _drop_copy(self, topic: str) -> None:
        self._copies.pop(topic, None)
        self._committed.pop(topic, None)

    def drop(self, loan: Loan) -> None:
        """Forget the world of a failed unit, which is ahead of the ledger."""
        self._news.pop(loan.topic, None)
        if loan.world is not None:
            # What was due in it is found when it is loaded again, with the next tick at the latest.
            self._asleep[loan.topic] = 1, 0

    def due(self, wall: int, monotonic: int) -> list[str]:
        """Return the workspaces in which something may be due, loaded or not, each judged by its own time."""
        awake = {topic: (next_time(world), world.timestamp) for topic, world in self._loaded.items()}
        return [
            topic
            for topic, (when, last) in (awake | self._asleep).items()
            if when and when <= max(wall, self._ledger_time(topic, last, monotonic))
        ]

    def _ledger_time(self, topic: str, last: int, monotonic: int) -> int:
        """Return about the time that a new record would get: a workspace's ledger may be ahead of the wall clock."""
        seen = self._seen.get(topic)
        if seen is None or seen[0] != last:
            seen = self._seen[topic] = last, monotonic
        return last + monotonic - seen[1]

    def let_go_idle(self, awaited: Collection[str]) -> None:
        """Unload the worlds that were not used since this was last called, except those with waiters."""
        recent, self._recent = self._recent, set()
        for topic in [topic for topic in self._loaded if topic not in recent and topic not in awaited]:
            self._let_go(topic)

    def let_go_surplus(self, awaited: Collection[str]) -> None:
        """Unload the worlds used longest ago if there are too many."""
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
        self._drop_copy(topic)
        world = self._loaded.pop(topic)
        when = next_time(world)
        if when:
            self._asleep[topic] = when, world.timestamp


def _check_rules(world: World) -> None:
    if world.workspace.rules > RULES:
        raise UpgradeNeeded(f"workspace {world.workspace.workspace_id} is under rules {world.workspace.rules}")


def _fold_own(world: World, committed: deque[Settled]) -> None:
    """Fold what this process has committed, if it follows the world and nothing else must be read for it."""
    changes = Changes()
    while committed and committed[0].sequence <= world.sequence + 1:
        one = committed[0]
        if one.sequence > world.sequence:
            if structure_ref(one.event.payload) is not None:
                return
            fold(world, changes, one.event, one.sequence, one.timestamp, LOCAL_PAYER)
        committed.popleft()


def _catch_up(reader: Reader, topic: str, world: World, news: Changes, head: int = _LAST) -> None:
    """Fold what others wrote, up to a known head at least; their units wrote the rows already."""
    changes = Changes()
    while world.sequence < head and (records := reader.read(topic, world.sequence, _PAGE)):
        for record in records:
            fold_record(world, changes, record, reader)
        changes.rows.clear()
    news.offers += changes.offers
    news.reopened |= changes.reopened
