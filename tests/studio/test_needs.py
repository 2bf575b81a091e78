"""Now: every action that removes a cause, and causes that many others must not hide."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator

from redkey.client import RedKey
from tests.a2a.receiver import Receiver, receiving
from tests.harness.server import Server, serving
from tests.studio.conftest import Tab
from tests.studio.scene import PLAN, Scene

FAILED = 60


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    """A server that may call webhooks on this machine, and gives them up at once."""
    port = urlsplit(receiver.url).port
    config = f"[outbox]\nallow_private = true\nports = [{port}]\nattempts = 1\nretry_seconds = 0.1\n"
    with serving(tmp_path_factory.mktemp("needs"), config=config) as running:
        yield running


@pytest.fixture(scope="module")
def scene(rk: RedKey) -> Iterator[Scene]:
    """An agent and nothing to do."""
    scene = Scene(rk)
    scene.agent("ada", "researcher")
    yield scene
    scene.close()


def _line(tab: Tab, text: str) -> Locator:
    line = tab.page.locator(".needs li").filter(has_text=text).first
    line.wait_for()
    return line


def _press(line: Locator, name: str) -> None:
    line.get_by_role("button", name=name, exact=True).click()


def test_a_block_is_answered_from_now(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("Needs a city")
    scene.hold(task, "ada").block("Which city?")
    line = _line(tab, "Which city?")
    _press(line, "Answer…")
    line.get_by_label("Your answer").fill("Zurich")
    _press(line, "Send")
    tab.done("Answer sent.")
    line.wait_for(state="detached")
    assert rk.tasks.get(task).answer == "Zurich"
    rk.tasks.cancel(task)


def test_work_is_sent_back_from_now(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("Too short", approval_gate=True, retry={"max_attempts": 3})
    scene.hold(task, "ada").complete(summary="Here.")
    line = _line(tab, "“Too short” is completed and needs approval")
    _press(line, "Send back…")
    line.get_by_label("What is missing?").fill("A title")
    _press(line, "Send back")
    tab.done("Sent back.")
    line.wait_for(state="detached")
    again = rk.tasks.get(task)
    assert (again.attempt, again.note) == (2, "A title")
    rk.tasks.cancel(task)


def test_a_paused_run_is_resumed_from_now(tab: Tab, rk: RedKey, scene: Scene) -> None:
    scene.agent("pia", "producer")
    run = rk.workflows.start(scene.queue, plan={**PLAN, "name": "resumed-from-now"}).workflow_id
    rk.workflows.pause(run)
    line = _line(tab, "is paused")
    _press(line, "Resume the run")
    tab.done("Run resumed.")
    line.wait_for(state="detached")
    assert rk.workflows.get(run).status == "running"
    rk.workflows.cancel(run)


def test_an_agent_is_activated_from_now(tab: Tab, rk: RedKey, scene: Scene) -> None:
    agent = scene.agent("resting", "sleeper")
    rk.agents.deactivate(agent)
    task = scene.task("For the one who rests", required_roles=["role_sleeper"])
    line = _line(tab, "Every eligible agent is deactivated")
    _press(line, "Activate resting")
    tab.done("Agent activated.")
    line.wait_for(state="detached")
    assert rk.agents.get(agent).active
    rk.tasks.cancel(task)


def test_a_broken_agent_is_deactivated_from_now(tab: Tab, rk: RedKey, scene: Scene) -> None:
    agent = scene.agent("wrecked", "researcher")
    rk.agents.heartbeat(agent, pause="start_failed", pause_seconds=3600)
    line = _line(tab, "wrecked cannot start")
    _press(line, "Deactivate")
    tab.done("Agent deactivated.")
    line.wait_for(state="detached")
    assert not rk.agents.get(agent).active


def _parked(rk: RedKey, scene: Scene, receiver: Receiver) -> str:
    """A webhook that was given up because its receiver answered with an error."""
    receiver.status = 500
    hook = rk.webhooks.create(receiver.url, types=["task.created"]).webhook_id
    rk.tasks.cancel(scene.task("Tells the webhook"))
    return hook


def test_a_dead_webhook_is_tried_again_from_now(tab: Tab, rk: RedKey, scene: Scene, receiver: Receiver) -> None:
    hook = _parked(rk, scene, receiver)
    line = _line(tab, f"Webhook {receiver.url}")
    before, receiver.status = len(receiver.got), 204
    _press(line, "Try again")
    tab.done("Webhook resumed.", receipt=False)
    line.wait_for(state="detached")
    receiver.wait(before + 1)
    rk.webhooks.remove(hook)


def test_webhooks_are_tried_again_and_removed_on_their_page(
    tab: Tab, rk: RedKey, scene: Scene, receiver: Receiver
) -> None:
    hook = _parked(rk, scene, receiver)
    tab.go("access")
    row = tab.page.get_by_role("row").filter(has_text=receiver.url)
    row.get_by_text("parked").wait_for()
    before, receiver.status = len(receiver.got), 204
    row.get_by_role("button", name="Try again").click()
    tab.done("Webhook resumed.", receipt=False)
    row.get_by_text("parked").wait_for(state="detached")
    receiver.wait(before + 1)
    row.get_by_role("button", name="Remove").click()
    row.get_by_role("button", name="Go back").click()
    assert [one.webhook_id for one in rk.webhooks.list()] == [hook]
    row.get_by_role("button", name="Remove").click()
    row.get_by_role("button", name="Confirm: remove").click()
    tab.done("Webhook removed.")
    row.wait_for(state="detached")
    assert list(rk.webhooks.list()) == []


def test_many_failures_hide_no_other_cause_and_are_counted(tab: Tab, rk: RedKey, scene: Scene) -> None:
    many = rk.queues.create(name="many").queue_id
    rk.tasks.create_many(many, [{"title": f"Fails {number}"} for number in range(FAILED)])
    worker = scene.acting("ada")
    for task in list(rk.tasks.list(many, state="available")):
        claim = worker.tasks.claim(task.task_id, agent_id=scene.agents["ada"])
        worker.claims.fail(claim.claim_id, reason="No luck.")
    paused = rk.queues.create(name="stopped").queue_id
    rk.queues.update(paused, paused=True)
    rk.tasks.create_many(paused, [{"title": f"Waits {number}"} for number in range(3)])
    waiting = scene.task("For a lawyer", required_roles=[rk.roles.create(name="lawyer").id])
    _line(tab, "3 tasks cannot start: the queue stopped is paused.")
    _line(tab, "no agent has the role lawyer")
    # Ten failures one by one, the others as a number with a link; the figure counts them all, and the two others.
    _line(tab, "50 more failed tasks in many")
    figure = tab.page.locator(".figures .panel").filter(has_text="need a human").locator("b")
    figure.get_by_text("62", exact=True).wait_for()
    _press(_line(tab, "“Fails"), "Dismiss")
    figure.get_by_text("61", exact=True).wait_for()
    tab.page.reload()
    figure.get_by_text("61", exact=True).wait_for()
    tab.page.get_by_role("link", name="49 more failed tasks in many").click()
    tab.sees(f"{FAILED} tasks")
    tab.page.get_by_role("button", name="Failed", pressed=True).wait_for()
    rk.queues.update(paused, paused=False)
    rk.tasks.cancel(waiting)
