"""What bringing an older step envelope into today's form gives: the new value, and what was changed or lost.

The mapping patterns of seed 003 are in `step_legacy_input` and `step_legacy_output`. Each change has a code of
the table here and a pointer into the older form. An envelope of today's form is not touched, not even in its
mistakes: those are the schema's to name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.errors import Finding, pointer

CHANGES: dict[str, str] = {
    "legacy_mode": "{name} is the task's action today",
    "legacy_task": "a task is an object today; the text is taken as its {place}",
    "legacy_action": "no action was named; the fields are those of {action}",
    "legacy_params": "{name} is one of the task's params today",
    "legacy_paths": "{name} is one of the paths today, under {place}",
    "legacy_context": "{name} is part of the context today",
    "legacy_prior_context": "{name} is the prior_context today",
    "legacy_assumed": "the older form does not say {name}; {value} is taken",
    "legacy_recommendation": "next_recommendation is called recommendation today",
    "legacy_overwrite": "the operation overwrite is called update today",
    "legacy_operation": "an artifact without operation is taken as {operation}",
    "legacy_summary": "{name} is the summary today",
    "legacy_notes": "{name} is summed up in the notes today",
    "legacy_state_updates": "state_updates belong into the index file; {outcome}",
    "legacy_lost": "lost: {what}",
}

# The bounds of the schemas on free lines (notes, prior_context), their number, and the number of artifacts.
LINE_LENGTH = 1000
LINES = 64
ARTIFACTS = 256
# An older form has a handful of fields of its own. What has more is a hostile document and no form of ours,
# and the schema, which tells of the first few, may have it.
OWN_FIELDS = 64


class Migrated(msgspec.Struct, frozen=True):
    """An envelope in today's form, and what was changed or lost on the way."""

    value: Any
    changes: tuple[Finding, ...] = ()


class Changes(list[Finding]):
    """The changes of one migration, in order."""

    def note(self, code: str, *path: str | int, **details: object) -> None:
        self.append(Finding(code, pointer(list(path)), CHANGES[code].format(**details), "warning"))

    def add_lines(self, lines: list[Any], added: list[str], *path: str | int) -> None:
        """Append lines within the bounds of the schema, and tell what those cut off."""
        room = max(0, LINES - len(lines))
        if len(added) > room:
            self.note("legacy_lost", *path, what=f"there is room for {LINES} lines and no more")
        for line in added[:room]:
            if len(line) > LINE_LENGTH:
                self.note("legacy_lost", *path, what=f"the end of a line of {len(line):,} characters")
                line = line[: LINE_LENGTH - 1] + "…"
            if line:
                lines.append(line)
