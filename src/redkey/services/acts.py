"""Acts: what is written beside commands, each in a unit of its own.

A checkpoint, an upload, a draft or a new workspace is no command of a workspace's world. Such work is a function of
a unit. In a server it passes the coordinator like everything that is written (`Coordinator.act`). Commands that work
on a data directory by themselves, and a server before it has a coordinator, open its unit directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from redkey.errors import RedKeyError
from redkey.ledger.ports import SequencedStore, Unit

T = TypeVar("T")


class Perform(Protocol):
    """Does some work in a unit of its own and returns its result once the unit is durable."""

    def __call__(self, work: Callable[[Unit], T]) -> T: ...


def directly(store: SequencedStore) -> Perform:
    """Open units on the store itself: for a server that has no coordinator yet, and for offline commands."""

    def perform(work: Callable[[Unit], T]) -> T:
        with store.write() as unit:
            return work(unit)

    return perform


class Act(Generic[T]):
    """Work that waits for its unit, and the future of its result."""

    __slots__ = ("_work", "future")

    def __init__(self, work: Callable[[Unit], T]) -> None:
        self._work = work
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    @property
    def over(self) -> bool:
        """True when it was answered, or its caller was cancelled."""
        return self.future.done()

    def run(self, store: SequencedStore) -> None:
        """Do it now. What the work raises rolls the unit back; WriterBusy when another process has the lock."""
        with store.write(wait=False) as unit:
            result = self._work(unit)
        self.future.set_result(result)

    def fail(self, failure: RedKeyError) -> None:
        """Answer with the reason why nothing was done."""
        if not self.over:
            self.future.set_exception(failure)
