"""Small, fast and steady: what the page may weigh and how long it may take."""

from __future__ import annotations

import gzip
import os
import subprocess
import time
from importlib.resources import files
from typing import Any

import pytest

from redkey.client import RedKey
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import Scene
from tools import studio
from tools.node import find_node

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
MOST_SCRIPT_BYTES = 120_000
TASKS = 5000
EVENT_SECONDS = 60 if LONG else 6
EVENTS_A_SECOND = 200
# What a frame, and the first paint, may take. On machines that are shared with other tests the medians are judged.
FRAME_MS = 50
PAINT_MS = 300
# Counts how long each frame takes.
WATCH = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const frame = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


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
    painted = []
    for _ in range(5):
        tab = open_tab()
        tab.page.goto(f"{tab.server.url}/studio/")
        tab.sees("API key")
        entries: Any = tab.page.evaluate(
            "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)"
        )
        painted.append(float(entries[0]))
    record_property("proven", f"Studio: first paint after {sorted(painted)[2]:.0f} ms (median of 5; aim {PAINT_MS})")
    if LONG:
        assert sorted(painted)[2] < PAINT_MS


def test_many_tasks_scroll(tab: Tab, rk: RedKey, scene: Scene, record_property: pytest.RecordProperty) -> None:
    queue = rk.queues.create(name="crowd").queue_id
    for start in range(0, TASKS, 500):
        rk.tasks.create_many(queue, [{"title": f"Task {start + number}"} for number in range(500)])
    tab.go(f"queue/{queue}")
    tab.sees(f"{TASKS:,} tasks")
    assert tab.page.locator("[role=listitem]").count() < 60
    tab.page.evaluate(WATCH)
    tab.page.get_by_role("list", name="Tasks of this queue").hover()
    for _ in range(30):
        tab.page.mouse.wheel(0, 6000)
        tab.page.evaluate("() => new Promise(requestAnimationFrame)")
    frames = sorted(tab.page.evaluate("window.frames_ms"))
    record_property("proven", f"Studio: {TASKS:,} tasks scroll, longest frame {frames[-1]:.0f} ms (aim {FRAME_MS})")
    assert frames[len(frames) // 2] < FRAME_MS


def test_a_stream_of_events_holds_nothing_up(
    tab: Tab, rk: RedKey, scene: Scene, record_property: pytest.RecordProperty
) -> None:
    """Tasks are created and cancelled, three events each, so many a second, while Now is open."""
    queue = rk.queues.create(name="stream").queue_id
    tab.page.evaluate(WATCH)
    heap = "performance.memory ? performance.memory.usedJSHeapSize : 0"
    before = tab.page.evaluate(heap)
    began, sent = time.monotonic(), 0
    while (passed := time.monotonic() - began) < EVENT_SECONDS:
        if sent < passed * EVENTS_A_SECOND:
            sent += 2 * len(rk.tasks.create_many(queue, [{"title": f"S{sent + n}"} for n in range(25)]).items)
        else:
            tab.page.wait_for_timeout(20)
    last = next(iter(rk.ledger.query(order="desc", limit=1))).sequence
    tab.page.get_by_label(f"Receipt of record {last}", exact=True).wait_for()
    frames = sorted(tab.page.evaluate("window.frames_ms"))
    after = tab.page.evaluate(heap)
    rate = sent / (time.monotonic() - began)
    record_property(
        "proven",
        f"Studio: {rate:.0f} events a second for {EVENT_SECONDS} s, longest frame {frames[-1]:.0f} ms "
        f"(aim {FRAME_MS}), memory {before / 1e6:.0f} to {after / 1e6:.0f} MB",
    )
    assert frames[len(frames) // 2] < FRAME_MS
