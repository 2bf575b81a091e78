"""What fsck found: faults by name, bounded, with counts that are not."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

# Nobody reads more than these; the counts go on.
LISTED = 1000


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong, or (as a note) one that is right and should be known."""

    code: str
    message: str
    topic: str = ""
    sequence: int = 0
    severity: Literal["error", "note"] = "error"


class Report:
    """All findings of one run."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.notes: list[Fault] = []
        # Errors by code; what was looked at, by what it is.
        self.errors: Counter[str] = Counter()
        self.figures: Counter[str] = Counter()

    @property
    def clean(self) -> bool:
        return not self.errors

    def add(self, code: str, message: str, topic: str = "", sequence: int = 0) -> None:
        """Something is wrong."""
        self.errors[code] += 1
        if len(self.faults) < LISTED:
            self.faults.append(Fault(code, message, topic, sequence))

    def note(self, code: str, message: str, topic: str = "", sequence: int = 0) -> None:
        """Something is as it may be, and worth knowing."""
        if len(self.notes) < LISTED:
            self.notes.append(Fault(code, message, topic, sequence, "note"))
