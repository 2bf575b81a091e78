"""Acts: writes that are not commands, each in a unit of its own.

A checkpoint, an upload, a draft or a new workspace is not a command of a workspace's world. Such work is a function of
a unit of one topic, or of a unit of the whole store. In a server it goes through the coordinator like every other write
(`Coordinator.act`). Commands that work on a data directory by themselves open its unit directly, and so does a server
that has no coordinator yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar, cast

from redkey.errors import CommitInDoubt, RedKeyError, StoreError
from redkey.ledger.ports import Doubt, SequencedStore, StoreUnit, Unit

T = TypeVar("T")
# How long to wait before asking again how a commit in doubt ended, while the database cannot be reached.
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


class Perform(Protocol):
    """Run work in a unit of its own and return its result once the unit is durable."""

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        """Run work on one topic."""
        ...

    def on_store(self, work: Callable[[StoreUnit], T]) -> T:
        """Run work on the whole store."""
        ...


class directly:  # noqa: N801 - reads as the word it is
    """Open units on the store itself: for a server that has no coordinator yet, and for offline commands."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        """Run work on one topic."""
        return self._surely(lambda: self._store.write(topic), work)

    def on_store(self, work: Callable[[StoreUnit], T]) -> T:
        """Run work on the whole store."""
        return self._surely(self._store.write_store, work)

    def _surely(self, enter: Callable[[], AbstractContextManager[Any]], work: Callable[[Any], T]) -> T:
        """Run the work in a unit. If its commit is in doubt, find out how it ended, and run the work again if it
        failed.
        """
        while True:
            result: list[T] = []
            try:
                with enter() as unit:
                    result.append(work(unit))
                return result[0]
            except CommitInDoubt as lost:
                if self._resolved(cast(Doubt, lost.doubt)) == "committed":
                    return result[0]

    def _resolved(self, doubt: Doubt) -> str:
        for pause in _PAUSES:
            try:
                return self._store.resolve(doubt)
            except StoreError:
                time.sleep(pause)
        return self._store.resolve(doubt)


class Act(Generic[T]):
    """Work that waits for its unit, and the future of its result.

    `topic` is empty for work on the whole store. `joins` means that the act may share a commit with other acts: then it
    may run twice, because the first commit failed.
    """

    __slots__ = ("_enter", "_result", "_work", "future", "joins", "topic")

    def __init__(
        self,
        topic: str,
        enter: Callable[[SequencedStore], AbstractContextManager[Any]],
        work: Callable[[Any], T],
        *,
        joins: bool = False,
    ) -> None:
        """`enter` opens the unit that `work` runs in."""
        self.topic, self._enter, self._work, self.joins = topic, enter, work, joins
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    @property
    def over(self) -> bool:
        """True if the act has a result, or its caller was cancelled."""
        return self.future.done()

    def run(self, store: SequencedStore) -> None:
        """Run the work now. An exception from it rolls the unit back; WriterBusy if another process holds the lock."""
        with self._enter(store) as unit:
            self._result = self._work(unit)

    def succeed(self) -> None:
        """Give the result to the caller: it is durable."""
        if not self.over:
            self.future.set_result(self._result)

    def fail(self, failure: RedKeyError) -> None:
        """Raise the failure at the caller: nothing was written."""
        if not self.over:
            self.future.set_exception(failure)


def on_topic(topic: str, work: Callable[[Unit], T], *, wait: bool, joins: bool = False) -> Act[T]:
    """Create an act on one topic; with `wait` it blocks on the writer lock, which only a thread may do."""
    return Act(topic, lambda store: store.write(topic, wait=wait), work, joins=joins)


def on_store(work: Callable[[StoreUnit], T], *, wait: bool) -> Act[T]:
    """Create an act on the whole store."""
    return Act("", lambda store: store.write_store(wait=wait), work)


def new_topic(fact: str, topic: str | None = None, *, wait: bool) -> Act[str]:
    """Create an act that creates a topic, or finds the one that has this fact."""

    def create(store: SequencedStore) -> str:
        return store.create_topic(topic, fact=fact, wait=wait)

    return Act("", nullcontext, create)


AnyAct = Act[Any]
