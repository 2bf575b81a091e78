"""What the page's main thread does, by Chromium's trace.

Tasks are judged by the processor time that they took, not by the clock: on a machine that runs other tests too, a task
of 5 ms may wait 200 ms for its turn. A frame is drawn in one task, so no frame takes longer than the longest task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

_CATEGORY = "disabled-by-default-devtools.timeline"


@dataclass
class MainThread:
    """The tasks of the main thread, in milliseconds of processor time, the longest first; there after the block."""

    tasks: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return self.tasks[0]

    @property
    def total(self) -> float:
        return sum(self.tasks)


@contextmanager
def main_thread(page: Page) -> Iterator[MainThread]:
    """Trace the page for the length of a block."""
    session = page.context.new_cdp_session(page)
    events: list[dict[str, Any]] = []
    ended: list[object] = []
    session.on("Tracing.dataCollected", lambda sent: events.extend(sent["value"]))
    session.on("Tracing.tracingComplete", lambda told: ended.append(told))
    config = {"includedCategories": [_CATEGORY], "excludedCategories": ["*"]}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
    found = MainThread()
    yield found
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(20)
    session.detach()
    threads = {_thread(one) for one in events if one["name"] == "thread_name" and _is_page(one)}
    tasks = [one for one in events if one["name"] == "RunTask" and _thread(one) in threads]
    found.tasks = sorted((one["tdur"] / 1000 for one in tasks if "tdur" in one), reverse=True)
    assert found.tasks, "the trace has no tasks of the page"


def _thread(event: dict[str, Any]) -> tuple[int, int]:
    return event["pid"], event["tid"]


def _is_page(event: dict[str, Any]) -> bool:
    return bool(event["args"]["name"] == "CrRendererMain")


def heap_megabytes(page: Page) -> float:
    """Return how much memory the page's script holds after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return float(used) / 1e6
