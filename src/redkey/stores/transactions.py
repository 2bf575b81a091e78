"""Units over transactions, for stores whose writers share one lock: one unit a transaction, or several together.

A store brings `_transaction`; here stand the units of the ports: of one topic, on the whole store, and the creation of
topics. It also keeps who wants to hear of commits of others, and up to which head each watched topic was told.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from redkey.errors import StoreMisused
from redkey.ledger.ports import Doubt


class TransactionUnit(Protocol):
    """What is open in a transaction: the topic that may be written now, or the whole store."""

    topic: str | None
    is_store: bool

    def create_topic(self, topic: str | None, fact: str) -> str: ...


Opened = TypeVar("Opened", bound=TransactionUnit)


class Transactions(Generic[Opened]):
    """The writing side of an inline store."""

    # A commit takes about 0.2 ms; handing it to a thread takes longer.
    inline = True

    def __init__(self) -> None:
        # Heads of watched topics that the subscribers know.
        self._told: dict[str, int] = {}
        self._subscribers: list[Callable[[str, int], None]] = []

    @abstractmethod
    def _transaction(self, wait: bool) -> AbstractContextManager[Opened]:
        """A transaction, or the one that this thread has open for several units."""

    @contextmanager
    def write(self, topic: str, *, wait: bool = True) -> Iterator[Opened]:
        with self._transaction(wait) as unit:
            unit.topic = topic
            try:
                yield unit
            finally:
                unit.topic = None

    @contextmanager
    def write_store(self, *, wait: bool = True) -> Iterator[Opened]:
        with self._transaction(wait) as unit:
            unit.is_store = True
            try:
                yield unit
            finally:
                unit.is_store = False

    @contextmanager
    def together(self, *, wait: bool = True) -> Iterator[None]:
        with self._transaction(wait):
            yield

    def create_topic(self, topic: str | None = None, *, fact: str = "", wait: bool = True) -> str:
        with self._transaction(wait) as unit:
            return unit.create_topic(topic, fact)

    def resolve(self, doubt: Doubt) -> Literal["committed", "failed"]:
        raise StoreMisused("a commit of this store is never in doubt", code="no_doubt")

    def subscribe(self, heard: Callable[[str, int], None]) -> Callable[[], None]:
        self._subscribers.append(heard)
        return partial(self._subscribers.remove, heard)

    def _tell(self, head_of: Callable[[str], int]) -> None:
        """Tell the subscribers of every watched topic whose head has moved."""
        for topic, told in list(self._told.items()):
            head = head_of(topic)
            if head > told:
                self._told[topic] = head
                for heard in tuple(self._subscribers):
                    heard(topic, head)


def refuse_second(unit: TransactionUnit) -> None:
    """Refuse a unit while this thread has another one open."""
    if unit.topic is not None or unit.is_store:
        raise StoreMisused("this thread has a unit open already; end it first", code="unit_open")
