"""Live: what happens is seen without loading again, also after the server was away."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from redkey.client import RedKey
from tests.harness.server import begin, serving
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import Scene


def test_work_is_seen_as_it_happens(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("Seen at once")
    tab.sees("Seen at once")
    row = tab.page.locator(".task").filter(has_text="Seen at once")
    row.get_by_text("ready").wait_for()
    held = scene.hold(task, "eve")
    row.get_by_text("in progress").wait_for()
    row.get_by_text("lease").wait_for()
    held.complete(summary="Done.")
    row.wait_for(state="detached")
    tab.page.get_by_text("eve completed").first.wait_for()


def test_a_run_moves_as_its_tasks_do(tab: Tab, rk: RedKey, scene: Scene) -> None:
    tab.go(f"run/{scene.tasks['run']}")
    tab.page.get_by_text("4 of 5 tasks completed").wait_for()
    gate = next(one for one in rk.gates.list() if one.task_id == scene.tasks["edit"])
    rk.gates.approve(gate.gate_id)
    tab.page.get_by_text("5 of 5 tasks completed").wait_for()
    tab.page.locator("h1").get_by_text("completed").wait_for()


def test_the_page_goes_on_after_a_restart(open_tab: OpenTab, tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        tab = open_tab(first).login()
        with RedKey(url=first.url, api_key=first.key) as rk:
            queue = rk.queues.create(name="long").queue_id
            rk.tasks.create(queue, title="Before the restart")
        tab.sees("Before the restart")
        first.stop()
    tab.sees("reconnecting…")
    again = begin(tmp_path, "--port", str(urlsplit(first.url).port))
    try:
        with RedKey(url=again.url, api_key=again.key) as rk:
            rk.tasks.create(queue, title="After the restart")
        tab.sees("After the restart")
        tab.page.get_by_text("live", exact=True).wait_for()
        assert tab.page.locator(".task").filter(has_text="Before the restart").count() == 1
    finally:
        tab.page.close()
        again.stop()
    tab.errors.clear()  # The browser writes of every refused connection itself.


def test_a_page_whose_file_does_not_come_offers_to_load_again(open_tab: OpenTab) -> None:
    """As after an update of the server: the files of the page that is open are gone."""
    tab = open_tab()
    tab.page.route("**/files/rest-*.js", lambda route: route.abort())
    tab.login()
    tab.page.goto(f"{tab.server.url}/studio/#/race")
    tab.sees("This page could not be loaded")
    tab.page.unroute_all()
    tab.page.get_by_role("button", name="Load again").click()
    tab.sees("Do I have too many agents for a role?")
    tab.errors.clear()  # The browser writes of the request that failed.
