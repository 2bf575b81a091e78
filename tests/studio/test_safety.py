"""Nothing that agents write runs in the page."""

from __future__ import annotations

from hashlib import sha256

import httpx2 as httpx
import pytest

from redkey.client import RedKey
from tests.harness.server import Server
from tests.studio.conftest import Tab
from tests.studio.scene import Scene

SCRIPT = "<script>window.ran = true</script><img src=x onerror='window.ran = true'>"
SVG = "<svg xmlns='http://www.w3.org/2000/svg' onload='window.ran = true'><script>window.ran = true</script></svg>"


@pytest.mark.parametrize(
    ("media", "text"), [("text/html", SCRIPT), ("image/svg+xml", SVG), ("text/markdown", f"# Hi\n\n{SCRIPT}")]
)
def test_an_artifact_runs_nothing(tab: Tab, scene: Scene, media: str, text: str) -> None:
    task = scene.task(f"With {media}")
    held = scene.hold(task, "ada")
    held.leave("evil", text, media)
    held.complete(summary=SCRIPT)
    tab.go(f"task/{task}")
    tab.page.get_by_role("button", name="Preview").click()
    tab.page.locator(".shown").get_by_text("window.ran").first.wait_for()
    assert tab.page.evaluate("window.ran") is None


def test_an_artifact_is_sent_as_a_file_that_a_browser_does_not_show(server: Server, scene: Scene) -> None:
    """By its own address too, whatever its writer calls it."""
    held = scene.hold(scene.task("With a page"), "ada")
    held.leave("page.html", SCRIPT, "text/html")
    held.complete(summary="Here.")
    digest = sha256(SCRIPT.encode()).hexdigest()
    sent = httpx.get(f"{server.url}/content/{digest}", headers={"authorization": f"Bearer {server.key}"})
    assert sent.text == SCRIPT
    assert sent.headers["content-type"] == "application/octet-stream"
    assert sent.headers["content-disposition"] == "attachment"
    assert sent.headers["x-content-type-options"] == "nosniff"
    assert sent.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_texts_are_shown_as_texts(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task(f"Title {SCRIPT}", description=SCRIPT, input={"x": SCRIPT})
    scene.hold(task, "ada").block(SCRIPT)
    tab.go(f"task/{task}")
    tab.sees("Title <script>")
    tab.go("now")
    tab.page.locator(".needs").get_by_text("Title <script>").wait_for()
    assert tab.page.evaluate("window.ran") is None


def test_the_policy_stops_what_a_fault_would_let_through(tab: Tab, scene: Scene) -> None:
    """Trusted Types: text cannot become markup, even by a mistake in the page."""
    refused = tab.page.evaluate("() => { try { document.body.innerHTML = '<b>x</b>'; } catch (e) { return e.name; } }")
    assert refused == "TypeError"
    tab.page.close()
    tab.errors.clear()  # The browser writes of the violation.
