"""Every page: it opens, it fits, it can be read by everybody, and it meets no error."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import httpx2 as httpx
import pytest

from redkey.client import RedKey
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import Scene

PAGES = {
    "now": "Needs a human",
    "queues": "Oldest ready",
    "queue/queue_studio": "New task here",
    "task/{Book a studio}": "Which city?",
    "task/{edit}": "Review the work",
    "runs": "podcast-episode",
    "run/{run}": "Timeline",
    "plans": "Published plans",
    "approvals": "Edit the script: done.",
    "agents": "cleo",
    "agent/{ada}": "Claims",
    "race": "Do I have too many agents for a role?",
    "ledger": "Verify a receipt",
    "receipt/{event}": "Keys of the log",
    "bus": "New session",
    "usage": "Credits",
    "access": "Create a key",
    "nowhere": "Page not found",
}


def _address(scene: Scene, place: str) -> str:
    kind, _, name = place.partition("/")
    if not name.startswith("{"):
        return place
    if name == "{event}":
        return f"{kind}/{next(iter(scene.rk.ledger.query(order='desc', limit=1))).event_id}"
    known = {**scene.tasks, **scene.agents}
    return f"{kind}/{known[name[1:-1]]}"


def _violations(tab: Tab) -> list[str]:
    script = (files("axe_playwright_python") / "axe.min.js").read_text()
    tab.page.evaluate(script)
    found: Any = tab.page.evaluate("async () => (await axe.run()).violations")
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)])
def test_no_page_has_a_violation_of_accessibility(open_tab: OpenTab, scene: Scene, scheme: str, width: int) -> None:
    tab = open_tab(scheme=scheme, width=width).login()
    wrong: dict[str, list[str]] = {}
    for place, text in PAGES.items():
        tab.go(_address(scene, place))
        tab.sees(text)
        if found := _violations(tab):
            wrong[place] = found
    for key, dialog in (("n", "New task"), ("?", "Keyboard shortcuts")):
        tab.page.keyboard.press(key)
        tab.page.get_by_role("dialog", name=dialog).wait_for()
        if found := _violations(tab):
            wrong[dialog] = found
        tab.page.keyboard.press("Escape")
    assert wrong == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_other_view_has_a_violation(open_tab: OpenTab, rk: RedKey, scene: Scene, scheme: str) -> None:
    """What is seen without a login, on the way to one, and beside the pages."""
    rk.workspaces.set_policy(scene.workspace_id, receipts={"public": True})
    address = _address(scene, "receipt/{event}")
    tab = open_tab(scheme=scheme)
    url = tab.server.url
    link = httpx.post(f"{url}/login-codes", headers={"authorization": f"Bearer {tab.server.key}"})
    wrong: dict[str, list[str]] = {}

    def judged(view: str) -> None:
        if found := _violations(tab):
            wrong[view] = found

    tab.page.goto(f"{url}/{address.replace('receipt/', 'receipts/')}")
    tab.sees("Check it yourself")
    judged("receipt as a page")
    tab.page.goto(f"{url}/studio/#/{address}")
    tab.page.get_by_role("button", name="Verify").click()
    tab.sees("Not proved yet.")
    judged("receipt without a login")
    tab.page.goto(f"{url}/studio/")
    tab.page.get_by_role("button", name="Log in by e-mail").click()
    tab.page.get_by_label("E-mail address").wait_for()
    judged("login page")
    tab.page.goto(link.json()["url"])
    tab.page.get_by_role("button", name="Open the Studio").wait_for()
    judged("login by link")
    tab.page.get_by_role("button", name="Open the Studio").click()
    tab.page.get_by_text("live", exact=True).wait_for()
    tab.page.fill("input[type=search]", "nothing is called so")
    tab.page.keyboard.press("Enter")
    tab.done("Nothing found for", receipt=False)
    tab.go(f"task/{scene.tasks['edit']}")
    tab.page.get_by_role("button", name="Preview").click()
    tab.page.locator(".shown .doc").wait_for()
    judged("preview and notice")
    assert wrong == {}


@pytest.mark.parametrize("width", [320, 390, 2560])
def test_every_page_fits_a_narrow_and_a_wide_screen(open_tab: OpenTab, scene: Scene, width: int) -> None:
    tab = open_tab(width=width).login()
    wide: dict[str, int] = {}
    for place, text in PAGES.items():
        tab.go(_address(scene, place))
        tab.sees(text)
        across = tab.page.evaluate("document.documentElement.scrollWidth")
        if across > width:
            wide[place] = across
    assert wide == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_login_page_has_no_violation(open_tab: OpenTab, scheme: str) -> None:
    tab = open_tab(scheme=scheme)
    tab.page.goto(tab.server.url)
    tab.sees("API key")
    assert _violations(tab) == []


def test_everything_is_reached_by_keyboard(tab: Tab, scene: Scene) -> None:
    tab.page.keyboard.press("?")
    tab.page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("dialog").wait_for(state="detached")
    for letter, heading in (("q", "Queues"), ("r", "Runs"), ("e", "Agents"), ("c", "Race"), ("l", "Ledger")):
        tab.page.keyboard.press("g")
        tab.page.keyboard.press(letter)
        tab.page.get_by_role("heading", level=1, name=heading).wait_for()
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("vector stores")
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("heading", level=1, name="Compare three vector stores").wait_for()
    tab.page.keyboard.press("n")
    tab.page.get_by_role("dialog", name="New task").wait_for()
    tab.page.keyboard.type("Typed at once")
    assert tab.page.get_by_label("Title").input_value() == "Typed at once"


def _tab_to(tab: Tab, name: str) -> None:
    """Press Tab until a control with this name has the focus."""
    page = tab.page
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.locator("*:focus")
        if focused.count() and name in (focused.get_attribute("aria-label") or focused.inner_text()):
            return
    pytest.fail(f"Tab does not lead to {name}")


def test_work_is_done_by_keyboard_alone(tab: Tab, rk: RedKey, scene: Scene) -> None:
    """Approve, move through a run, and open a task of its graph, without a mouse."""
    task = scene.task("Approved by keyboard", approval_gate=True)
    scene.hold(task, "dan").complete(summary="Here.")
    page = tab.page
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.get_by_role("heading", level=1, name="Approvals").wait_for()
    _tab_to(tab, "Approved by keyboard")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=2, name="Approved by keyboard").wait_for()
    _tab_to(tab, "Approve")
    while page.locator("*:focus").inner_text() != "Approve":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    tab.done("Approved.")
    assert rk.tasks.get(task).state == "completed"
    tab.go(f"run/{scene.tasks['run']}")
    _tab_to(tab, "Moment of the run")
    page.keyboard.press("Home")
    tab.sees("Showing record")
    page.keyboard.press("End")
    tab.sees("Showing now")
    _tab_to(tab, "Write the script")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Write the script").wait_for()


def test_a_run_is_drawn_with_its_critical_path_and_its_timeline(tab: Tab, rk: RedKey, scene: Scene) -> None:
    state = rk.workflows.state(scene.tasks["run"])
    tab.go(f"run/{scene.tasks['run']}")
    graph = tab.page.get_by_role("region", name="Graph of the run")
    graph.locator("rect").first.wait_for()
    steps = len(state.tasks)
    assert graph.locator("rect").count() == steps
    assert graph.locator("rect.critical").count() == len(state.critical_path)
    # The two researches are between the same steps: only one of them is on the path.
    assert graph.locator("polyline").count() == steps
    assert graph.locator("polyline.critical").count() == len(state.critical_path) - 1 == 3
    timeline = tab.page.locator("section", has=tab.page.get_by_role("heading", name="Timeline"))
    assert timeline.get_by_role("img", name="Summarise guest and topic: eve").count() == 1
    assert timeline.locator("rect.complete").count() == steps
    left = [float(one.get_attribute("x") or "nan") for one in timeline.locator("rect").all()]
    assert left == sorted(left)
    assert left[0] < left[-1] < 100


def test_a_search_finds_by_the_beginning_of_an_id(tab: Tab, scene: Scene) -> None:
    tab.page.fill("input[type=search]", scene.tasks["Book a studio"][:22])
    tab.page.keyboard.press("Enter")
    tab.page.locator("main h1").first.wait_for()
    tab.page.fill("input[type=search]", "nothing is called so")
    tab.page.keyboard.press("Enter")
    tab.done("Nothing found for", receipt=False)


def test_any_moment_of_a_run_is_shown(tab: Tab, scene: Scene) -> None:
    tab.go(f"run/{scene.tasks['run']}")
    tab.sees("Showing now")
    slider = tab.page.get_by_label("Moment of the run")
    slider.fill("0")
    tab.sees("Showing record")
    tab.page.get_by_text("0 of 5 tasks completed").wait_for()
    tab.page.get_by_role("button", name="Back to now").click()
    tab.page.get_by_text("4 of 5 tasks completed").wait_for()


def test_the_race_names_winner_and_losers(tab: Tab, scene: Scene) -> None:
    tab.go("race")
    tab.sees("Yes, too many: most attempts are missed.")
    tab.page.get_by_text("As a list").click()
    tab.page.get_by_role("link", name="ada won Fact check 1").wait_for()
    missed = tab.page.get_by_role("link", name="bob missed Fact check 1 to ada")
    assert re.search(r", (in the same moment|[\d.]+ s after the winner) \(claim already won\)$", missed.inner_text())
    rejected = tab.page.get_by_role("link", name="cleo was rejected for Fact check 1")
    assert re.search(r"\(\w[\w ]+\)$", rejected.inner_text())
    row = tab.page.get_by_role("row").filter(has_text="researcher")
    assert row.get_by_role("cell").nth(5).inner_text() == "1"
    # The one that may not have the tasks is no rival.
    assert row.get_by_role("cell").nth(2).inner_text() == "3"
    hours = row.get_by_role("img").get_attribute("aria-label") or ""
    assert sum(int(one.split()[1]) for one in hours.split(", ")) == 16
    assert row.get_by_role("cell").nth(4).inner_text() == "16"


def test_the_race_answers_for_each_role(tab: Tab, rk: RedKey, scene: Scene) -> None:
    """One agent for a role is not too many; two agents, of which one often misses, are a few too many."""
    scene.agent("sole", "solo")
    scene.agent("first", "pair")
    scene.agent("late", "pair")
    for number in range(12):
        alone = scene.task(f"Alone {number}", required_roles=["role_solo"])
        scene.hold(alone, "sole").complete(summary="Done.")
        shared = scene.task(f"Shared {number}", required_roles=["role_pair"])
        held = scene.hold(shared, "first")
        if number % 3 == 0:
            scene.acting("late").tasks.claim(shared, agent_id=scene.agents["late"])
        held.complete(summary="Done.")
    tab.go("race")
    row = tab.page.get_by_role("row")
    row.filter(has_text="solo").get_by_text("No, the number is about right.").wait_for()
    row.filter(has_text="pair").get_by_text("A few too many: agents often race for the same task.").wait_for()
    tab.go("queues")
    queue = row.filter(has=tab.page.get_by_role("link", name="studio"))
    assert int(queue.get_by_role("cell").nth(8).inner_text()) >= 20
