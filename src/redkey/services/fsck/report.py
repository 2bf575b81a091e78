"""What fsck found: faults by name, up to a bound, with full counts."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

# The number of findings kept for each code; the counts continue.
LISTED = 1000


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault, or (as a note) one fact that is correct and worth knowing."""

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
        # Errors by code; and the number of things checked, by what they are.
        self.errors: Counter[str] = Counter()
        self.figures: Counter[str] = Counter()

    @property
    def clean(self) -> bool:
        return not self.errors

    def add(self, code: str, message: str, topic: str = "", sequence: int = 0) -> None:
        """Add a fault."""
        self.errors[code] += 1
        if len(self.faults) < LISTED:
            self.faults.append(Fault(code, message, topic, sequence))

    def note(self, code: str, message: str, topic: str = "", sequence: int = 0) -> None:
        """Add a note."""
        if len(self.notes) < LISTED:
            self.notes.append(Fault(code, message, topic, sequence, "note"))
