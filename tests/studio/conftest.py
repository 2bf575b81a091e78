"""The Studio under test: the system's Chromium, driven by Playwright, against real servers."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from redkey.client import RedKey
from tests.harness.server import Server, serving
from tests.studio.scene import Scene, build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE_MS = int(os.environ.get("REDKEY_TEST_PATIENCE_MS", "60000"))
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def why_not() -> str:
    """Return why nothing here can run; empty if it can."""
    if not any(shutil.which(name) for name in _NAMES):
        return "no Chromium: apt-get install chromium"
    return "" if importlib.util.find_spec("playwright") else "no playwright in this environment"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has the browser and runs everything here; without one, say why nothing ran."""
    reason = why_not()
    for item in items:
        if Path(__file__).parent in item.path.parents and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("studio"))
            if reason:
                item.add_marker(pytest.mark.skip(reason=f"the Studio was not tested: {reason}"))


@dataclass
class Tab:
    """A tab, and what went wrong in it."""

    page: Page
    server: Server
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("response", lambda reply: self.errors.append(reply.url) if reply.status >= 400 else None)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.server.url, "data:", "blob:")):
            self.foreign.append(request.url)

    def login(self, key: str = "") -> Tab:
        """Log in with a key, and wait until the page lives."""
        self.page.goto(f"{self.server.url}/")
        self.page.fill("input[name=key]", key or self.server.key)
        self.page.get_by_role("button", name="Log in with the key").click()
        self.page.get_by_text("live", exact=True).wait_for()
        return self

    def go(self, place: str) -> None:
        """Open a page of the Studio, and wait until it has loaded."""
        self.page.goto(f"{self.server.url}/studio/#/{place}")
        self.page.get_by_text("Loading…").wait_for(state="detached")
        self.page.locator("main h1").first.wait_for(state="attached")

    def sees(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.page.get_by_text(text).first.wait_for()

    def done(self, text: str, *, receipt: bool = True) -> None:
        """Wait until the page says that an action succeeded, with the receipt of its event if it is on the ledger."""
        notice = self.page.locator(".notices .panel").filter(has_text=text).last
        notice.wait_for()
        assert notice.get_by_role("link", name="Receipt").count() == int(receipt), text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module. It ends with the module: while it lives, this thread can run no event loop."""
    from playwright.sync_api import sync_playwright

    program = next(path for name in _NAMES if (path := shutil.which(name)))
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield running
        finally:
            running.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with nothing in it."""
    with serving(tmp_path_factory.mktemp("studio")) as running:
        yield running


@pytest.fixture(scope="module")
def rk(server: Server) -> Iterator[RedKey]:
    """The SDK with the server's first key."""
    with RedKey(url=server.url, api_key=server.key) as client:
        yield client


@pytest.fixture(scope="module")
def scene(rk: RedKey) -> Iterator[Scene]:
    """Something to see on every page."""
    made = build(rk)
    yield made
    made.close()


OpenTab = Callable[..., Tab]


@pytest.fixture
def open_tab(browser: Browser, server: Server) -> Iterator[OpenTab]:
    """Open tabs, each with a storage of its own. At the end none of them may have met an error or asked elsewhere."""
    contexts: list[BrowserContext] = []
    tabs: list[Tab] = []

    def opened(at: Server = server, *, width: int = 1440, scheme: str = "light", motion: str = "reduce") -> Tab:
        size: Any = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion=motion)  # type: ignore[arg-type]
        contexts.append(context)
        tabs.append(Tab(context.new_page(), at))
        return tabs[-1]

    yield opened
    for context in contexts:
        context.close()
    assert [line for tab in tabs for line in tab.errors] == []
    assert [url for tab in tabs for url in tab.foreign] == []


@pytest.fixture
def tab(open_tab: OpenTab) -> Tab:
    """A tab that is logged in with the first key."""
    return open_tab().login()
