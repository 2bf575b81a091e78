"""Planted bugs: ways to be wrong that the crash proofs must find. Each changes this process, a child, for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redkey.stores.sqlite import SqliteStore

ACK_EARLY = False


def acknowledging(store: SqliteStore, acknowledge: Callable[[], None]) -> Any:
    """The store, with units that are acknowledged when their work is done and before they are committed."""

    class Early:
        @contextmanager
        def write(self) -> Iterator[Any]:
            with store.write() as unit:
                yield unit
                unit.flush()
                acknowledge()

    return Early()


def plant(name: str) -> None:
    _PLANTS[name]()


_PLANTS: dict[str, Callable[[], None]] = {}
