"""Small, fast and steady: what the page may weigh and how long it may take."""

from __future__ import annotations

import gzip
import os
import subprocess
import time
from importlib.resources import files
from statistics import median
from typing import Any

import pytest

from redkey.client import Claimed, RedKey
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import PLAN, Scene
from tests.studio.trace import heap_megabytes, main_thread
from tools import studio
from tools.node import find_node

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
MOST_SCRIPT_BYTES = 120_000
TASKS = 5000
EVENT_SECONDS = 60 if LONG else 6
EVENTS_A_SECOND = 200
# A plan whose run makes many events with two requests, so that a busy machine keeps up.
STEPS = 36
CROWD: dict[str, Any] = {
    **PLAN,
    "name": "crowd",
    "roles": {"producer": PLAN["roles"]["producer"]},
    "policies": {**PLAN["policies"], "maxParallelTasks": STEPS},
    "tasks": [{**PLAN["tasks"][0], "id": f"step-{number}", "outputs": [f"brief-{number}"]} for number in range(STEPS)],
}
BURST_TASKS = 4000
# What a frame, and the first paint, may take.
FRAME_MS = 50
PAINT_MS = 300
PAINTS = 7
# In a few seconds the lists that the page keeps are not full yet.
MOST_GROWTH = 1.10 if LONG else 1.20


def test_the_script_is_small() -> None:
    scripts = [one for one in (files("redkey.studio") / "assets" / "files").iterdir() if one.name.endswith(".js")]
    assert sum(len(gzip.compress(one.read_bytes(), 9)) for one in scripts) < MOST_SCRIPT_BYTES


@pytest.mark.skipif(not studio.can_build(), reason="the sources of the Studio were not checked: no Node or no packages")
def test_the_sources_have_no_type_error() -> None:
    node = find_node()
    assert node is not None
    check = [
        node.node,
        "node_modules/svelte-check/bin/svelte-check",
        "--tsconfig",
        "./tsconfig.json",
        "--fail-on-warnings",
    ]
    done = subprocess.run(check, cwd=studio.SOURCES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_first_paint_comes_soon(open_tab: OpenTab, record_property: pytest.RecordProperty) -> None:
    """Other tests on this machine can only delay a paint: the best of several says what the page needs."""
    painted, worked = [], []
    for _ in range(PAINTS):
        tab = open_tab()
        with main_thread(tab.page) as thread:
            tab.page.goto(f"{tab.server.url}/studio/")
            tab.sees("API key")
        entries: Any = tab.page.evaluate(
            "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)"
        )
        painted.append(float(entries[0]))
        worked.append(thread.total)
        tab.page.close()
    record_property(
        "proven",
        f"Studio: first paint after {min(painted):.0f} ms, median {median(painted):.0f} ms (aim {PAINT_MS}); "
        f"processor time until the login form {median(worked):.0f} ms",
    )
    assert min(painted) < PAINT_MS
    assert median(worked) < PAINT_MS


def test_many_tasks_scroll(tab: Tab, rk: RedKey, scene: Scene, record_property: pytest.RecordProperty) -> None:
    queue = rk.queues.create(name="crowd").queue_id
    for start in range(0, TASKS, 500):
        rk.tasks.create_many(queue, [{"title": f"Task {start + number}"} for number in range(500)])
    tab.go(f"queue/{queue}")
    tab.sees(f"{TASKS:,} tasks")
    assert tab.page.locator("[role=listitem]").count() < 60
    tasks = tab.page.get_by_role("list", name="Tasks of this queue")
    tasks.hover()
    with main_thread(tab.page) as thread:
        for _ in range(30):
            tab.page.mouse.wheel(0, 6000)
            tab.page.evaluate("() => new Promise(requestAnimationFrame)")
    assert tasks.evaluate("(list) => list.scrollTop") > 100_000
    record_property("proven", f"Studio: {TASKS:,} tasks scroll, longest frame {thread.longest:.0f} ms (aim {FRAME_MS})")
    assert thread.longest < FRAME_MS


def test_a_stream_of_events_holds_nothing_up(
    tab: Tab, rk: RedKey, scene: Scene, record_property: pytest.RecordProperty
) -> None:
    """Runs are started and cancelled and tasks are done, so many events a second, while Now is open."""
    queue = rk.queues.create(name="stream").queue_id
    first, before = _head(rk), 0.0
    last = first
    with main_thread(tab.page) as thread:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < EVENT_SECONDS:
            if not before and passed > EVENT_SECONDS / 2:
                before = heap_megabytes(tab.page)
            if last - first < passed * EVENTS_A_SECOND:
                _work(rk, scene, queue)
                last = _head(rk)
            else:
                tab.page.wait_for_timeout(20)
        rate = (last - first) / (time.monotonic() - began)
        tab.page.get_by_label(f"Receipt of record {last}", exact=True).wait_for()
    after = heap_megabytes(tab.page)
    record_property(
        "proven",
        f"Studio: {rate:.0f} events a second for {EVENT_SECONDS} s, longest frame {thread.longest:.0f} ms "
        f"(aim {FRAME_MS}), main thread busy {thread.total / EVENT_SECONDS / 10:.0f} %, "
        f"memory {before:.1f} to {after:.1f} MB",
    )
    # A slower stream would prove less.
    assert rate > EVENTS_A_SECOND * 0.95
    assert thread.longest < FRAME_MS
    assert after < before * MOST_GROWTH


def _head(rk: RedKey) -> int:
    return next(iter(rk.ledger.query(order="desc", limit=1))).sequence


def _work(rk: RedKey, scene: Scene, queue: str) -> None:
    """Start a run and cancel it, and do two tasks."""
    run = rk.workflows.start(queue, plan=CROWD)
    worker = scene.acting("ada")
    for number in range(2):
        task = rk.tasks.create(queue, title=f"Step {number}")
        claim = worker.tasks.claim(task.task_id, agent_id=scene.agents["ada"])
        assert isinstance(claim, Claimed)
        worker.claims.complete(claim.claim_id, summary="Done.")
    rk.workflows.cancel(run.workflow_id)


def test_a_burst_of_events_holds_nothing_up(
    tab: Tab, rk: RedKey, scene: Scene, record_property: pytest.RecordProperty
) -> None:
    """Thousands of tasks at once: the page folds them a few milliseconds at a time."""
    queue = rk.queues.create(name="burst").queue_id
    tab.go("queues")
    with main_thread(tab.page) as thread:
        for start in range(0, BURST_TASKS, 500):
            rk.tasks.create_many(queue, [{"title": f"Task {start + number}"} for number in range(500)])
        row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name="burst"))
        row.get_by_text(f"{BURST_TASKS:,}", exact=True).wait_for()
    record_property("proven", f"Studio: {BURST_TASKS:,} tasks at once, longest frame {thread.longest:.0f} ms")
    assert thread.longest < FRAME_MS
