"""Every page: it opens, it fits, it can be read by everybody, and it meets no error."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

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


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
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


@pytest.mark.parametrize("width", [320, 390])
def test_every_page_fits_a_narrow_screen(open_tab: OpenTab, scene: Scene, width: int) -> None:
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
    tab.page.get_by_role("link", name="bob missed Fact check 1 to ada").wait_for()
