"""The tally of a run: how many tasks ended how."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """The outcomes of a run's claims and claim attempts."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    blocked: int = 0
    released: int = 0
    # The owner cancelled the task while it was held.
    cancelled: int = 0
    # The hold was lost before its verdict was accepted, so its results changed nothing.
    lost: int = 0
    # Lost races, and claims that were not allowed.
    missed: int = 0
    rejected: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count(self, what: str) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
