"""Progress of work: the last report of a holder, and how often a holder may report.

The percentage is on the wire, the text is content. A hold gets at most one record per `INTERVAL_SECONDS`, so that a
chatty worker does not flood the ledger: a decision asks `wait_nanoseconds` before it records another report.
"""

from __future__ import annotations

from typing import Final

from redkey.reducers.entities import Task
from redkey.reducers.event import Event
from redkey.reducers.world import SECOND, World
from redkey.wire.events import TaskProgress

INTERVAL_SECONDS: Final = 1
# The first version of the workspace rules that records progress.
PROGRESS_RULES: Final = 2


def reported(world: World, task: Task, e: Event, p: TaskProgress, before: str) -> None:
    """Store the holder's last report."""
    task.progress_at = e.timestamp
    task.progress_percent = -1 if p.percent is None else p.percent
    task.progress_sha256 = "" if p.text_ref is None else p.text_ref.sha256


def forget(task: Task) -> None:
    """Clear the report of the last holder when a new hold begins."""
    task.progress_at, task.progress_percent, task.progress_sha256 = 0, -1, ""


def wait_nanoseconds(world: World, task: Task, now: int) -> int:
    """How long to wait before the hold may record another report; 0 if it may now.

    On a network each report is a message that costs money, so a lease has at most two of them.
    """
    if not task.progress_at:
        return 0
    seconds = task.lease_seconds_held // 2 if world.workspace.is_ordered else INTERVAL_SECONDS
    return max(0, task.progress_at + seconds * SECOND - now)
