"""Units of work for stores whose writers share one lock: one unit per transaction, or several in one.

A store implements `_transaction`. This module implements the units of the ports: on one topic, on the whole store, and
the creation of topics. It also notifies subscribers when other processes have committed to watched topics.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from redkey.errors import StoreMisused
from redkey.ledger.ports import Doubt, Upload


class TransactionUnit(Protocol):
    """An open transaction, with the topic that may be written now, or the whole store."""

    topic: str | None
    is_store: bool

    def create_topic(self, topic: str | None, fact: str) -> str:
        """Create a topic and return its id."""
        ...


class StagedUpload(Upload, Protocol):
    """An upload, as stores implement it."""

    finished: bool


Opened = TypeVar("Opened", bound=TransactionUnit)
Staged = TypeVar("Staged", bound=StagedUpload)


class Transactions(Generic[Opened]):
    """The writing side of a store whose commits run on the calling thread."""

    # True: a commit takes about 0.2 ms, and passing it to another thread would take longer.
    inline = True

    def __init__(self) -> None:
        # The last head of each watched topic that subscribers were notified of.
        self._notified: dict[str, int] = {}
        self._subscribers: list[Callable[[str, int], None]] = []

    @abstractmethod
    def _transaction(self, wait: bool) -> AbstractContextManager[Opened]:
        """Return a new transaction, or the one that this thread has open for several units."""

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

    def subscribe(self, callback: Callable[[str, int], None]) -> Callable[[], None]:
        self._subscribers.append(callback)
        return partial(self._subscribers.remove, callback)

    def _notify(self, head_of: Callable[[str], int]) -> None:
        """Notify the subscribers of every watched topic whose head has moved."""
        for topic, known in list(self._notified.items()):
            head = head_of(topic)
            if head > known:
                self._notified[topic] = head
                for callback in tuple(self._subscribers):
                    callback(topic, head)


def finished_upload(upload: Upload, kind: type[Staged]) -> Staged:
    """Return an upload that a unit may adopt; raise StoreMisused if it is of another store or not finished."""
    if not isinstance(upload, kind):
        raise StoreMisused("the upload was started by another store", code="upload_foreign")
    if not upload.finished:
        # It may not be durable, and its hash does not cover the bytes still to come.
        raise StoreMisused("the upload is not finished", code="upload_unfinished")
    return upload


def refuse_second(unit: TransactionUnit) -> None:
    """Raise StoreMisused if this thread has another unit open."""
    if unit.topic is not None or unit.is_store:
        raise StoreMisused("this thread has a unit open already; end it first", code="unit_open")
