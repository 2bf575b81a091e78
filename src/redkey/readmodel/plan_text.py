"""The text of plans, task by task. A plan is one document for all its tasks; it is parsed once, and then a task of it
costs one lookup. The store is asked each time, so erased text is never shown from the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from redkey.readmodel.view import Document, Shelf, read_document
from redkey.reducers.entities import Task

# How many bytes of parsed plans are cached; the least recently used ones are dropped.
_KEPT_BYTES = 64 * 1024 * 1024


class PlanText(msgspec.Struct, frozen=True):
    """A plan as it was written, its tasks by id, and the input of one run."""

    plan: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    given: Any = None


class _Kept:
    """A cache of the plans that were read last."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, tuple[int, PlanText]] = OrderedDict()
        self._bytes = 0

    def get(self, sha256: str) -> PlanText | None:
        found = self._texts.get(sha256)
        if found is None:
            return None
        self._texts.move_to_end(sha256)
        return found[1]

    def put(self, sha256: str, size: int, text: PlanText) -> None:
        if sha256 in self._texts:
            return
        self._texts[sha256] = size, text
        self._bytes += size
        while self._bytes > _KEPT_BYTES and len(self._texts) > 1:
            self._bytes -= self._texts.popitem(last=False)[1][0]


_kept = _Kept()


def plan_text(reader: Shelf, topic: str, sha256: str) -> PlanText | None:
    """Read the text of a plan; None if it was erased."""
    facts = reader.content_facts(topic, sha256)
    if facts is None:
        return None
    found = _kept.get(sha256)
    if found is None:
        document = read_document(reader, topic, sha256)
        if document is None:
            return None
        plan: dict[str, Any] = document["plan"]
        found = PlanText(plan, {task["id"]: task for task in plan["tasks"]}, document.get("input"))
        _kept.put(sha256, facts.bytes, found)
    return found


def task_document(reader: Shelf, topic: str, task: Task) -> Document | None:
    """Read the document of a task; for a plan's task, its part of the plan."""
    if not task.plan_task:
        return read_document(reader, topic, task.content_sha256)
    text = plan_text(reader, topic, task.content_sha256)
    return text.tasks.get(task.plan_task, {}) if text is not None else None
