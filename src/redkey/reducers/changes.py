"""What a fold brings with it beside the world: the rows to write, and what those who wait for a task should hear of.

The world holds folded state and nothing else. Whoever folds hands in a `Changes` and takes from it what it needs: a
unit writes the rows and wakes waiters after its commit, a replay compares the rows, others let it go.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from redkey.reducers.entities import Requirement


class Offer(NamedTuple):
    """A place where claim-next finds a task: a queue, and what its tasks there ask of an agent."""

    queue_id: str
    requirement: Requirement


class Changes:
    """What some records changed, in the order of the records."""

    __slots__ = ("offers", "reopened", "rows")

    def __init__(self) -> None:
        # (kind, key) -> the entity, where the world does not keep it; its row must be written.
        self.rows: dict[tuple[str, str], msgspec.Struct | None] = {}
        # One for each task that became available.
        self.offers: list[Offer] = []
        # Who may claim has changed: everybody who waits should ask again.
        self.reopened = False

    def touch(self, kind: str, key: str, entity: msgspec.Struct | None = None) -> None:
        """The entity's row must be written; the entity is given when the world does not keep it."""
        self.rows[kind, key] = entity
