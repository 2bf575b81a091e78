"""Acts: what is written beside commands, each in a unit of its own.

A checkpoint, an upload, a draft or a new workspace is no command of a workspace's world. Such work is a function of
a unit of one topic, or of a unit on the whole store. In a server it passes the coordinator like everything that is
written (`Coordinator.act`). Commands that work on a data directory by themselves, and a server before it has a
coordinator, open its unit directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

from redkey.errors import RedKeyError
from redkey.ledger.ports import SequencedStore, StoreUnit, Unit

T = TypeVar("T")


class Perform(Protocol):
    """Does some work in a unit of its own and returns its result once the unit is durable."""

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        """Work on one topic."""
        ...

    def on_store(self, work: Callable[[StoreUnit], T]) -> T:
        """Work on the whole store."""
        ...


class directly:  # noqa: N801 - reads as the word it is
    """Open units on the store itself: for a server that has no coordinator yet, and for offline commands."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        """Work on one topic."""
        with self._store.write(topic) as unit:
            return work(unit)

    def on_store(self, work: Callable[[StoreUnit], T]) -> T:
        """Work on the whole store."""
        with self._store.write_store() as unit:
            return work(unit)


class Act(Generic[T]):
    """Work that waits for its unit, and the future of its result.

    `topic` is empty for work on the whole store. `joins` says that it may share a commit with other acts: then it may
    be done twice, because the first commit failed.
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
        """`enter` opens the unit that `work` is done in."""
        self.topic, self._enter, self._work, self.joins = topic, enter, work, joins
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    @property
    def over(self) -> bool:
        """True when it was answered, or its caller was cancelled."""
        return self.future.done()

    def run(self, store: SequencedStore) -> None:
        """Do it now. What the work raises rolls the unit back; WriterBusy when another process has the lock."""
        with self._enter(store) as unit:
            self._result = self._work(unit)

    def succeed(self) -> None:
        """Answer with the result of the work: it is durable."""
        if not self.over:
            self.future.set_result(self._result)

    def fail(self, failure: RedKeyError) -> None:
        """Answer with the reason why nothing was done."""
        if not self.over:
            self.future.set_exception(failure)


def on_topic(topic: str, work: Callable[[Unit], T], *, wait: bool, joins: bool = False) -> Act[T]:
    """An act on one topic; with `wait` it waits for the writer lock, which only a thread may do."""
    return Act(topic, lambda store: store.write(topic, wait=wait), work, joins=joins)


def on_store(work: Callable[[StoreUnit], T], *, wait: bool) -> Act[T]:
    """An act on the whole store."""
    return Act("", lambda store: store.write_store(wait=wait), work)


def new_topic(fact: str, *, wait: bool) -> Act[str]:
    """The act that creates a topic, or finds the one that has this fact."""

    def create(store: SequencedStore) -> str:
        return store.create_topic(fact=fact, wait=wait)

    return Act("", nullcontext, create)


AnyAct = Act[Any]
