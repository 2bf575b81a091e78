"""The tally of a run: how many tasks ended how."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What became of the claims that a run made, and of those that it tried to make."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    blocked: int = 0
    released: int = 0
    # Cancelled by the owner of the task while it was held.
    cancelled: int = 0
    # Held, and lost before the end was told: their results changed nothing.
    lost: int = 0
    # Races that others won, and claims that were not allowed.
    missed: int = 0
    rejected: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count(self, what: str) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
