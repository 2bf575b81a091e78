"""Migrate older outputs of a step to the current form.

`next_recommendation` is `recommendation`; the operation `overwrite`, or none, is `update`; `result` and an
agent's own fields are summarised in `summary` and `notes`; `state_updates` belong in the index file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from redkey.wire.step_legacy import ARTIFACTS, OWN_FIELDS, Changes, Migrated
from redkey.wire.step_paths import normal

FIELDS = ("success", "summary", "artifacts", "notes", "recommendation")
# Fields that distinguish an output from an input.
SIGNS = frozenset({*FIELDS, "next_recommendation", "state_updates", "result"})


class IndexFile(msgspec.Struct, frozen=True):
    """The current index file of the workflow, which receives `state_updates`."""

    path: str
    content: str


def migrate_output(
    value: Any, *, index: IndexFile | None = None, exists: Callable[[str], bool] = lambda path: True
) -> Migrated:
    """Convert an output to the current form.

    `index` receives the `state_updates` of older outputs; without it they are only summarised. `exists` decides whether
    an artifact without operation is an update or a creation.
    """
    if not isinstance(value, dict) or not isinstance(value.get("notes") or [], list):
        return Migrated(value)
    if len(value) > OWN_FIELDS:
        return Migrated(value)
    older = _Older(value)
    older.migrate_artifacts(exists)
    if "next_recommendation" in value:
        older.rename_recommendation(value["next_recommendation"])
    if "result" in value:
        older.take_result(value["result"])
    if "state_updates" in value:
        older.take_state_updates(value["state_updates"], index)
    for name, item in value.items():
        if name not in SIGNS:
            older.sum_up(name, item, name)
    return older.finish()


class _Older:
    """The migration of one older output."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.new = {name: value[name] for name in FIELDS if name in value}
        self.notes: list[Any] = list(value.get("notes") or [])
        self.changes = Changes()

    def migrate_artifacts(self, exists: Callable[[str], bool]) -> None:
        artifacts = self.value.get("artifacts")
        if not isinstance(artifacts, list) or len(artifacts) > ARTIFACTS:
            return
        mended: list[Any] = []
        for at, artifact in enumerate(artifacts):
            if isinstance(artifact, dict) and isinstance(artifact.get("path"), str):
                if artifact.get("operation") == "overwrite":
                    self.changes.note("legacy_overwrite", "artifacts", at, "operation")
                    artifact = {**artifact, "operation": "update"}
                elif artifact.get("operation") is None:
                    operation = "update" if exists(artifact["path"]) else "create"
                    self.changes.note("legacy_operation", "artifacts", at, operation=operation)
                    artifact = {**artifact, "operation": operation}
            mended.append(artifact)
        self.new["artifacts"] = mended

    def rename_recommendation(self, older: Any) -> None:
        if self.new.setdefault("recommendation", older) == older:
            self.changes.note("legacy_recommendation", "next_recommendation")
        else:
            self.changes.note(
                "legacy_lost", "next_recommendation", what="recommendation has another value, which is kept"
            )

    def take_result(self, result: Any) -> None:
        if isinstance(result, str):
            if "summary" not in self.new:
                self._take_summary(result, "result")
            elif result != self.new["summary"]:
                self.sum_up("result", result, "result")
        elif isinstance(result, dict) and len(result) <= OWN_FIELDS:
            for name, item in result.items():
                if name in ("summary", "message") and isinstance(item, str) and "summary" not in self.new:
                    self._take_summary(item, "result", name)
                else:
                    self.sum_up(name, item, "result", name)
        elif result is not None:
            self.sum_up("result", result, "result")

    def take_state_updates(self, updates: Any, index: IndexFile | None) -> None:
        if not updates:
            self.changes.note("legacy_state_updates", "state_updates", outcome="they were empty")
            return
        artifacts = self.new.get("artifacts", [])
        written = _find_index(artifacts, index)
        if written is not None:
            outcome = f"the artifact {written} already contains them"
        elif index is not None and isinstance(artifacts, list):
            content = f"{index.content.rstrip()}\n\n## State updates\n\n```json\n{_pretty(updates)}\n```\n"
            artifact = {"path": index.path, "operation": "update", "content": content.lstrip()}
            self.new["artifacts"] = [*artifacts, artifact]
            outcome = f"they were appended to {index.path}"
        else:
            outcome = "without that file they were summarised in the notes"
            if isinstance(updates, dict) and len(updates) <= OWN_FIELDS:
                for name, item in updates.items():
                    self.sum_up(name, item, "state_updates", name)
            else:
                self.sum_up("state_updates", updates, "state_updates")
        self.changes.note("legacy_state_updates", "state_updates", outcome=outcome)

    def sum_up(self, name: str, item: Any, *path: str) -> None:
        """Summarise a field in one note, as seed 003 does."""
        line, is_whole = _sum_up(name, item)
        self.changes.note("legacy_notes", *path, name=name)
        if not is_whole:
            self.changes.note("legacy_lost", *path, what="the note has the number of entries, not their text")
        self.changes.add_lines(self.notes, [line], *path)

    def finish(self) -> Migrated:
        if not self.changes:
            return Migrated(self.value)
        if "summary" not in self.new and isinstance(self.new.get("success"), bool):
            self._assume("summary", "The step succeeded." if self.new["success"] else "The step failed.")
        if "artifacts" not in self.new:
            self._assume("artifacts", [])
        if self.notes:
            self.new["notes"] = self.notes
        return Migrated(self.new, tuple(self.changes))

    def _take_summary(self, text: str, *path: str) -> None:
        self.new["summary"] = text
        self.changes.note("legacy_summary", *path, name=".".join(path))

    def _assume(self, name: str, value: Any) -> None:
        self.new[name] = value
        self.changes.note("legacy_assumed", name, name=name, value=orjson.dumps(value).decode())


def _find_index(artifacts: Any, index: IndexFile | None) -> str | None:
    """Return the path of the index file among the artifacts: that of `index`, or any file of the usual name."""
    for artifact in artifacts if isinstance(artifacts, list) else []:
        path = artifact.get("path") if isinstance(artifact, dict) else None
        if isinstance(path, str):
            plain = normal(path)
            if plain == normal(index.path) if index else plain.split("/")[-1] == "index.md":
                return path
    return None


def _sum_up(name: str, item: Any) -> tuple[str, bool]:
    """Return a field as one line, and whether the line has all of it."""
    called = name.replace("_", " ").strip()
    title = called.removesuffix(" report").capitalize()
    if isinstance(item, list) and called.endswith("s"):
        return f"{len(item)} {called[:-1] if len(item) == 1 else called} detected", not item
    if isinstance(item, list) or (
        isinstance(item, dict) and any(isinstance(part, dict | list) for part in item.values())
    ):
        return f"{title}: {len(item)} {'entry' if len(item) == 1 else 'entries'}", not item
    if isinstance(item, dict):
        return f"{title}: " + ", ".join(_entry(key, part) for key, part in item.items()), True
    return f"{title}: {_plain(item)}", True


def _entry(key: str, part: Any) -> str:
    called = key.replace("_", " ")
    if isinstance(part, int | float) and not isinstance(part, bool):
        return f"{_plain(part)} {called}"
    return f"{called} {_plain(part)}"


def _plain(item: Any) -> str:
    return item if isinstance(item, str) else orjson.dumps(item).decode()


def _pretty(item: Any) -> str:
    return orjson.dumps(item, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
