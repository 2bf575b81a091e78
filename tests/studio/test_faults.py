"""Eight faults, side by side: Now names the cause of each, and two clicks remove it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from redkey.client import RedKey
from tests.harness.server import Server, serving
from tests.studio.conftest import Tab
from tests.studio.scene import Scene

CREDITS = 1000


def _closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that may call webhooks on this machine, and gives them up at once."""
    port = _closed_port()
    config = f"[outbox]\nallow_private = true\nports = [{port}]\nattempts = 1\nretry_seconds = 0.1\n"
    with serving(tmp_path_factory.mktemp("faults"), config=config) as running:
        with RedKey(url=running.url, api_key=running.key) as rk:
            rk.webhooks.create(f"http://127.0.0.1:{port}/hook", types=["task.created"])
        yield running


@pytest.fixture(scope="module")
def scene(rk: RedKey) -> Iterator[Scene]:
    """The faults."""
    scene = Scene(rk)
    scene.agent("ada", "researcher")
    scene.agent("broken", "researcher")
    rk.roles.create(name="lawyer")
    scene.task("Nobody may do this", required_roles=["role_lawyer"])
    paused = rk.queues.create(name="paused").queue_id
    scene.tasks["Stuck in a queue"] = rk.tasks.create(paused, title="Stuck in a queue").task_id
    rk.queues.update(paused, paused=True)
    first = scene.task("The first of two", retry={"max_attempts": 1})
    scene.task("The second of two", depends_on=[first])
    scene.hold(first, "ada").fail("No luck.")
    gate = scene.task("To approve", approval_gate=True)
    scene.hold(gate, "ada").complete(summary="Here.")
    rk.agents.heartbeat(scene.agents["broken"], pause="start_failed", pause_seconds=3600)
    crash = rk.queues.create(name="crashes", max_lease_losses=1, lease_seconds=5).queue_id
    scene.tasks["Crashes"] = rk.tasks.create(crash, title="Crashes", retry={"max_attempts": 1}).task_id
    rk.tasks.claim(scene.tasks["Crashes"], agent_id=scene.agents["ada"], lease_seconds=5)
    yield scene
    scene.close()


def test_each_cause_is_named_and_removed_in_two_clicks(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    needs = page.locator(".needs li")

    def fix(text: str, *buttons: str) -> None:
        line = needs.filter(has_text=text).first
        line.wait_for()
        assert len(buttons) <= 2
        for button in buttons:
            line.get_by_role("button", name=button, exact=True).click()
        line.wait_for(state="detached")
        # Every action shows the receipt of its event.
        page.locator(".notices .panel").last.get_by_role("link", name="Receipt").wait_for()

    line = needs.filter(has_text="no agent has the role lawyer").first
    line.get_by_role("combobox", name="Agent").select_option(label="ada")
    fix("no agent has the role lawyer", "Grant lawyer")
    assert "role_lawyer" in rk.agents.get(scene.agents["ada"]).roles
    fix("the queue paused is paused", "Resume the queue")
    fix("“The second of two” failed: it depends on “The first of two”", "Retry both")
    assert rk.tasks.get(scene.tasks["The first of two"]).state == "available"
    assert rk.tasks.get(scene.tasks["The second of two"]).state == "created"
    fix("“Crashes” failed: agents lost its lease too often", "Retry")
    fix("“To approve” is completed and needs approval", "Approve")
    fix("Webhook http://127.0.0.1", "Remove", "Confirm: remove")
    assert list(rk.webhooks.list()) == []
    fix("broken cannot start", "Let it claim again")
    # Last: from here on everything costs.
    rk.billing.set_prices({"task.created": CREDITS})
    rk.billing.grant(CREDITS)
    scene.task("The last that is paid for")
    fix("No credits left", "Grant credits…", "Grant")
    balance = rk.billing.credits().balance
    assert balance is not None
    assert balance > CREDITS
