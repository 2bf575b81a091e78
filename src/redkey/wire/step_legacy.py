"""The result of migrating an older step envelope: the new value, and what was changed or lost.

The mapping patterns of seed 003 are in `step_legacy_input` and `step_legacy_output`. Each change has a code from the
table here and a pointer into the older form. An envelope of the current form is not changed, even if it is invalid:
the schema reports its errors.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.errors import Finding, pointer

CHANGES: dict[str, str] = {
    "legacy_mode": "{name} became the task's action",
    "legacy_task": "a task is now an object; the text became its {place}",
    "legacy_action": "the task had no action; its fields are those of {action}",
    "legacy_params": "{name} became a param of the task",
    "legacy_paths": "{name} moved to paths, as {place}",
    "legacy_context": "{name} moved to context",
    "legacy_prior_context": "{name} became prior_context",
    "legacy_assumed": "the older form has no {name}; {value} is used",
    "legacy_recommendation": "next_recommendation was renamed to recommendation",
    "legacy_overwrite": "the operation overwrite was renamed to update",
    "legacy_operation": "an artifact without operation became {operation}",
    "legacy_summary": "{name} became the summary",
    "legacy_notes": "{name} was summarised in the notes",
    "legacy_state_updates": "state_updates belong in the index file; {outcome}",
    "legacy_lost": "lost: {what}",
}

# The limits in the schemas: lines of notes and prior_context, their length, and the number of artifacts.
LINE_LENGTH = 1000
LINES = 64
ARTIFACTS = 256
# An older form has few fields of its own. A document with more is hostile: it is not migrated, and the schema reports
# its first errors.
OWN_FIELDS = 64


class Migrated(msgspec.Struct, frozen=True):
    """An envelope in the current form, and what was changed or lost."""

    value: Any
    changes: tuple[Finding, ...] = ()


class Changes(list[Finding]):
    """The changes of one migration, in order."""

    def note(self, code: str, *path: str | int, **details: object) -> None:
        self.append(Finding(code, pointer(list(path)), CHANGES[code].format(**details), "warning"))

    def add_lines(self, lines: list[Any], added: list[str], *path: str | int) -> None:
        """Append lines within the limits of the schema, and note what was cut off."""
        room = max(0, LINES - len(lines))
        if len(added) > room:
            self.note("legacy_lost", *path, what=f"lines after the first {LINES}")
        for line in added[:room]:
            if len(line) > LINE_LENGTH:
                self.note("legacy_lost", *path, what=f"the end of a line of {len(line):,} characters")
                line = line[: LINE_LENGTH - 1] + "…"
            if line:
                lines.append(line)
