"""Migrate older inputs of a step to the current form.

The mode of a dual-mode agent is `task.action`, an agent's own fields are `task.params`, file references are
`paths`, the place in the workflow is `context`, and earlier decisions are `prior_context`.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from redkey.wire.step_legacy import OWN_FIELDS, Changes, Migrated

FIELDS = ("context", "paths", "task", "prior_context")
_CONTEXT = ("feature_id", "workflow", "iteration")
_TASK = ("action", "params")
_MODES = ("mode", "action")
_PRIOR = ("prior_decisions", "prior_notes")
_PATHS = ("feature_root", "spec", "index", "constitution", "checks", "check_module", "plan_context", "context_files")
_PATH_SUFFIX = re.compile(r"_(?:path|file)(s?)$")
# The fields that identify older agents, and their action; the first match counts.
_ACTIONS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"force_number", "force_short_name"}), "scaffold"),
    (frozenset({"bounds", "brownfield_overrides"}), "discover"),
    (frozenset({"gaps"}), "classify_gaps"),
    (frozenset({"answers"}), "apply_answers"),
    (frozenset({"artifact_type", "phase"}), "validate"),
    (frozenset({"feature_description"}), "write_spec"),
)
# Fields that distinguish an input from an output.
SIGNS = frozenset({*FIELDS, *_CONTEXT, *_MODES, "config"}).union(*(signs for signs, _ in _ACTIONS))
# The context of an older form that has no field of a context.
_UNKNOWN_PLACE = {"feature_id": None, "workflow": "unknown", "iteration": 1}


def migrate_input(value: Any) -> Migrated:
    """Convert an input to the current form."""
    if not _is_older(value):
        return Migrated(value)
    older = _Older(value)
    for name in [name for name in older.context if name not in _CONTEXT]:
        older.place(older.context.pop(name), "context", name)
    for name in [name for name in older.task if name not in _TASK]:
        older.put(older.params, older.task.pop(name), "legacy_params", "task", name)
    for name, item in value.items():
        if name not in FIELDS:
            older.place(item, name)
    return older.finish()


def _is_older(value: Any) -> bool:
    """Return whether this is an older form whose parts have the shapes that the migration expects."""
    if not isinstance(value, dict):
        return False
    context, paths, task = value.get("context", {}), value.get("paths", {}), value.get("task", {})
    if not (isinstance(context, dict) and isinstance(paths, dict) and isinstance(task, dict | str)):
        return False
    if not isinstance(value.get("prior_context") or [], list):
        return False
    own = [name for name in value if name not in FIELDS] + [name for name in context if name not in _CONTEXT]
    if isinstance(task, dict):
        if not isinstance(task.get("params", {}), dict):
            return False
        own += [name for name in task if name not in _TASK]
    return isinstance(task, str) or 0 < len(own) <= OWN_FIELDS


class _Older:
    """The migration of one older input."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.changes = Changes()
        self.context: dict[str, Any] = dict(value.get("context", {}))
        self.paths: dict[str, Any] = dict(value.get("paths", {}))
        self.task: dict[str, Any] = {}
        self.params: dict[str, Any] = {}
        self.prior: list[Any] = list(value.get("prior_context") or [])
        task = value.get("task", {})
        if isinstance(task, str):
            is_action = re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", task) is not None
            self.changes.note("legacy_task", "task", place="action" if is_action else "param description")
            (self.task if is_action else self.params)["action" if is_action else "description"] = task
        else:
            self.task = dict(task)
            self.params = dict(task.get("params", {}))

    def place(self, item: Any, *path: str) -> None:
        """Move one field of the older form to its current place."""
        name = path[-1]
        few = isinstance(item, dict) and len(item) <= OWN_FIELDS
        if name == "config" and few:
            for key, part in item.items():
                self.place(part, *path, key)
        elif name in _CONTEXT and len(path) == 1:
            self.put(self.context, item, "legacy_context", *path)
        elif name in _MODES and isinstance(item, str):
            self.put(self.task, item, "legacy_mode", *path, place="action")
        elif name == "params" and few:
            for key, part in item.items():
                self.put(self.params, part, "legacy_params", *path, key)
        elif name in _PRIOR:
            self.changes.note("legacy_prior_context", *path, name=name)
            entries = item if isinstance(item, list) else [item]
            lines = [line if isinstance(line, str) else orjson.dumps(line).decode() for line in entries]
            self.changes.add_lines(self.prior, lines, *path)
        elif (place := _path_name(name)) is not None and _is_path(item):
            self.put(self.paths, item, "legacy_paths", *path, place=place)
        else:
            self.put(self.params, item, "legacy_params", *path)

    def put(self, target: dict[str, Any], item: Any, code: str, *path: str, place: str | None = None) -> None:
        name = path[-1]
        place = place or name
        if place in target and target[place] != item:
            self.changes.note("legacy_lost", *path, what=f"{place} exists with another value, which is kept")
            return
        target[place] = item
        self.changes.note(code, *path, name=name, place=place)

    def finish(self) -> Migrated:
        if "action" not in self.task:
            self._infer_action()
        self.task["params"] = self.params
        if not self.context:
            self.context = dict(_UNKNOWN_PLACE)
            for name, item in _UNKNOWN_PLACE.items():
                self.changes.note("legacy_assumed", "context", name, name=name, value=orjson.dumps(item).decode())
        new: dict[str, Any] = {"context": self.context, "paths": self.paths, "task": self.task}
        if self.prior or "prior_context" in self.value:
            new["prior_context"] = self.prior
        return Migrated(new, tuple(self.changes))

    def _infer_action(self) -> None:
        for signs, action in _ACTIONS:
            if not signs.isdisjoint(self.params):
                self.task["action"] = action
                self.changes.note("legacy_action", "task", "action", action=action)
                return


def _path_name(name: str) -> str | None:
    """Return the name in `paths` for a field; None if its name does not name a file."""
    if name in _PATHS:
        return name
    shorter = _PATH_SUFFIX.sub(r"\1", name)
    return shorter if shorter != name else None


def _is_path(item: Any) -> bool:
    texts = item if isinstance(item, list) else [item]
    return all(isinstance(text, str) and 0 < len(text) <= 1024 and "\n" not in text for text in texts)
