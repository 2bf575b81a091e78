"""How far the work has come: the last report of the hold, and how often a holder may report.

The percentage is on the wire, the text is content. A hold has one record each `INTERVAL_SECONDS` at most, so a chatty
worker does not flood the ledger: `wait_nanoseconds` is what a decision asks before it records another.
"""

from __future__ import annotations

from typing import Final

from redkey.reducers.entities import Task
from redkey.reducers.event import Event
from redkey.reducers.world import SECOND, World
from redkey.wire.events import TaskProgress

INTERVAL_SECONDS: Final = 1
# Workspaces under older rules record no progress.
PROGRESS_RULES: Final = 2


def reported(world: World, task: Task, e: Event, p: TaskProgress, before: str) -> None:
    """Keep what the holder said last."""
    task.progress_at = e.timestamp
    task.progress_percent = -1 if p.percent is None else p.percent
    task.progress_sha256 = "" if p.text_ref is None else p.text_ref.sha256


def forget(task: Task) -> None:
    """Begin a new hold: what the last holder said does not count for it."""
    task.progress_at, task.progress_percent, task.progress_sha256 = 0, -1, ""


def wait_nanoseconds(task: Task, now: int) -> int:
    """For how long the hold records no further report; 0 when it does now."""
    return max(0, task.progress_at + INTERVAL_SECONDS * SECOND - now) if task.progress_at else 0
