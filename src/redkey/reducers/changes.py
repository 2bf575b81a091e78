"""What a fold produces besides the world: rows to write, and offers that wake agents waiting for a task.

The world holds folded state and nothing else. The caller of a fold passes in a `Changes` and takes from it what it
needs: a unit writes the rows and wakes waiting agents after its commit, a replay compares the rows, others ignore it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from redkey.reducers.entities import Requirement


class Offer(NamedTuple):
    """A place where claim-next finds a task: a queue and the requirements of its tasks."""

    queue_id: str
    requirement: Requirement


class Changes:
    """What some records changed, in the order of the records."""

    __slots__ = ("offers", "reopened", "rows")

    def __init__(self) -> None:
        # (kind, key) -> the entity if the world does not keep it, else None. Each entry is a row to write.
        self.rows: dict[tuple[str, str], msgspec.Struct | None] = {}
        # One offer for each task that became available.
        self.offers: list[Offer] = []
        # Eligibility changed: every agent that waits should ask again.
        self.reopened = False

    def touch(self, kind: str, key: str, entity: msgspec.Struct | None = None) -> None:
        """Mark the entity's row to be written; pass `entity` if the world does not keep it."""
        self.rows[kind, key] = entity
