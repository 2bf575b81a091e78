"""Acting: everything that a button does, judged by the API."""

from __future__ import annotations

import json
import re

import httpx2 as httpx

from redkey.client import Claimed, RedKey
from tests.harness.server import Server
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import PLAN, Scene


def test_a_task_is_created_and_cancelled_and_tried_again(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Title").fill("From the page")
    page.get_by_label("Description").fill("Something <b>bold</b>.")
    page.get_by_role("combobox", name="Queue").select_option(scene.queue)
    page.get_by_label("Required role").select_option("role_writer")
    page.get_by_label("Input (JSON, optional)").fill("{wrong")
    tab.sees("The input is not JSON")
    page.get_by_label("Input (JSON, optional)").fill('{"n": 1}')
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", level=1, name="From the page").wait_for()
    tab.sees("Something <b>bold</b>.")
    found = [one for one in rk.tasks.list(scene.queue, state="available") if one.title == "From the page"]
    (task_id,) = [one.task_id for one in found]
    assert rk.tasks.get(task_id).input == {"n": 1}
    page.get_by_role("button", name="Cancel").click()
    tab.done("Task cancelled.")
    assert rk.tasks.get(task_id).state == "cancelled"
    page.get_by_role("button", name="Retry").click()
    tab.done("Task retried.")
    assert rk.tasks.get(task_id).state == "available"


def test_an_action_shows_its_receipt(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("With a receipt")
    tab.go(f"task/{task}")
    tab.page.get_by_role("button", name="Cancel").click()
    tab.page.locator(".notices").get_by_role("link", name="Receipt").click()
    tab.sees("task.cancelled · record")


def test_a_block_is_answered(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("Ask me")
    scene.hold(task, "bob").block("Which colour?")
    tab.go(f"task/{task}")
    tab.sees("Which colour?")
    tab.page.get_by_label("Your answer").fill("Green")
    tab.page.get_by_role("button", name="Answer").click()
    tab.done("Answer sent.")
    assert scene.acting("bob").tasks.claim(task, agent_id=scene.agents["bob"], with_task=True).task.answer == "Green"


def test_a_message_reaches_the_task_and_the_agent(tab: Tab, rk: RedKey, scene: Scene) -> None:
    tab.go(f"task/{scene.tasks['Compare three vector stores']}")
    tab.page.get_by_label("Message to its worker").fill("Mind the price")
    tab.page.get_by_role("button", name="Send").click()
    tab.done("Message sent.")
    messages = list(rk.tasks.messages(scene.tasks["Compare three vector stores"]))
    assert "Mind the price" in str(messages)
    tab.go(f"agent/{scene.agents['cleo']}")
    tab.page.get_by_label("Subject").fill("Hello")
    tab.page.get_by_role("button", name="Send").click()
    tab.done("Message sent to its inbox.")
    assert [one.subject for one in rk.agents.inbox(scene.agents["cleo"])] == ["Hello"]


def test_work_is_sent_back_and_approved(tab: Tab, rk: RedKey, scene: Scene) -> None:
    for title in ("To be sent back", "To be approved"):
        task = scene.task(title, approval_gate=True, retry={"max_attempts": 3})
        scene.hold(task, "dan").complete(summary=f"{title}: here it is.")
    gates = {one.title: one.gate_id for one in rk.gates.list()}
    tab.go(f"approval/{gates['To be sent back']}")
    tab.sees("To be sent back: here it is.")
    assert tab.page.get_by_role("button", name="Send back").is_disabled()
    tab.page.get_by_label("Note").fill("Too short")
    tab.page.get_by_role("button", name="Send back").click()
    tab.done("Sent back with your note.")
    again = rk.tasks.get(scene.tasks["To be sent back"])
    assert (again.attempt, again.note) == (2, "Too short")
    tab.go(f"approval/{gates['To be approved']}")
    tab.sees("To be approved: here it is.")
    tab.page.get_by_role("button", name="Approve").click()
    tab.done("Approved.")
    assert rk.gates.get(gates["To be approved"]).state == "approved"
    tab.sees("This approval is approved")


def test_a_plan_is_checked_simulated_started_paused_and_cancelled(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    tab.go("plans")
    plan = page.get_by_label("Plan (plan.json)")
    plan.fill("{")
    tab.sees("This is not JSON")
    plan.fill(json.dumps({**PLAN, "tasks": [{**PLAN["tasks"][0], "dependsOn": ["nothing"]}]}))
    tab.sees("The plan is not valid yet.")
    before = rk.usage.get().total.events
    plan.fill(json.dumps({**PLAN, "name": "from-the-page"}))
    tab.sees("The plan is valid.")
    page.get_by_role("button", name="Simulate").click()
    tab.sees("finished after")
    assert rk.usage.get().total.events == before
    page.get_by_role("button", name="Start the run").click()
    page.get_by_role("heading", level=1, name="from-the-page").wait_for()
    (run,) = [one for one in rk.workflows.list() if one.name == "from-the-page"]
    page.get_by_role("button", name="Pause").click()
    tab.done("Run paused.")
    assert rk.workflows.get(run.workflow_id).status == "paused"
    page.get_by_role("button", name="Resume").click()
    tab.done("Run resumed.")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Confirm: cancel the run").click()
    tab.done("Run cancelled.")
    assert rk.workflows.get(run.workflow_id).status == "cancelled"


def test_one_speaks_on_the_bus_to_one_agent_and_to_all(tab: Tab, server: Server, scene: Scene) -> None:
    bus = f"{server.url}/api/sessions"
    headers = {"authorization": f"Bearer {server.key}"}
    page = tab.page
    tab.go("bus")
    page.get_by_label("Name of the new session").fill("Planning")
    page.get_by_role("button", name="New session").click()
    tab.done("Session created.", receipt=False)
    page.get_by_role("heading", name="Planning").wait_for()
    (key,) = [one["id"] for one in httpx.get(bus, headers=headers).json() if one["name"] == "Planning"]
    for name in ("ann", "bob"):
        made = httpx.post(f"{bus}/{key}/agents", headers=headers, json={"id": name, "name": name.title()})
        assert made.status_code == 201
    # Who is there is seen as it changes.
    page.locator(".row").filter(has_text="Ann").get_by_text("away").wait_for()
    page.get_by_role("combobox", name="To").select_option("bob")
    page.get_by_role("textbox", name="Message").fill("Only for <b>Bob</b>")
    page.get_by_role("button", name="Send").click()
    tab.done("Message sent.", receipt=False)
    page.locator("ol").get_by_text("Only for <b>Bob</b>").wait_for()
    assert page.get_by_role("textbox", name="Message").input_value() == ""
    page.get_by_role("combobox", name="To").select_option("")
    page.get_by_role("textbox", name="Message").fill("For all of you")
    page.get_by_role("button", name="Send").click()
    page.locator("ol").get_by_text("For all of you").wait_for()
    events = httpx.get(f"{bus}/{key}/events", headers=headers).json()
    sent = [one["payload"]["envelope"] for one in events if one["type"] == "message.send"]
    assert [(one["payload"]["text"], one.get("dst"), one.get("topic")) for one in sent] == [
        ("Only for <b>Bob</b>", "bob", None),
        ("For all of you", None, "agents"),
    ]
    # What others say comes by itself.
    said = httpx.post(
        f"{bus}/{key}/messages", headers=headers, json={"text": "Here I am", "src": "ann", "to": "agents"}
    )
    assert said.status_code == 202
    page.locator("ol li").filter(has_text="Here I am").get_by_text("Ann", exact=True).wait_for()
    page.get_by_role("button", name="Close session").click()
    page.get_by_role("button", name="Confirm: close").click()
    tab.done("Session closed.", receipt=False)
    tab.sees("This session is closed.")
    assert page.get_by_role("button", name="Send").count() == 0
    assert httpx.get(f"{bus}/{key}", headers=headers).json()["status"] == "closed"


def test_progress_is_shown_with_its_text_and_queues_with_their_throughput(tab: Tab, rk: RedKey, scene: Scene) -> None:
    queue = rk.queues.create(name="pace").queue_id
    agent = rk.agents.register(card={"name": "Pacer"}).agent_id
    task = rk.tasks.create(queue, title="Slow work").task_id
    hold = rk.tasks.claim(task, agent)
    assert isinstance(hold, Claimed)
    rk.claims.start(hold.claim_id)
    rk.claims.report_progress(hold.claim_id, text="Read 3 of 10 <b>sources</b>", percent=30)
    tab.go(f"task/{task}")
    tab.sees("Read 3 of 10 <b>sources</b>")
    tab.sees("30 %")
    tab.go("queues")
    rk.claims.complete(hold.claim_id, summary="Done.")
    row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name="pace"))
    # The seventh column: completed tasks a minute. There was none before.
    row.get_by_role("cell").nth(6).filter(has_not_text=re.compile("^0$")).wait_for()


def test_queues_are_created_and_paused(tab: Tab, rk: RedKey, scene: Scene) -> None:
    tab.go("queues")
    tab.page.get_by_label("New queue").fill("fresh")
    tab.page.get_by_role("button", name="Create").click()
    tab.done("Queue created.")
    row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name="fresh"))
    row.get_by_role("button", name="Pause").click()
    tab.done("Queue paused")
    row.get_by_role("button", name="Resume").wait_for()
    assert rk.queues.get("queue_fresh").paused


def test_keys_are_made_and_revoked(tab: Tab, open_tab: OpenTab, rk: RedKey, server: Server, scene: Scene) -> None:
    tab.go("access")
    tab.page.get_by_label("Name").fill("for a test")
    tab.page.get_by_label("Scope").select_option("read")
    tab.page.get_by_role("button", name="Create a key").click()
    tab.sees("Copy the key now")
    key = tab.page.locator(".made code").inner_text()
    tab.page.get_by_role("button", name="Done").click()
    assert tab.page.get_by_text(key).count() == 0
    other = open_tab().login(key)
    assert other.page.get_by_role("button", name="New task").count() == 0
    prefix = key.rpartition("_")[0]
    tab.page.get_by_role("button", name=f"Revoke {prefix}").click()
    tab.page.get_by_role("button", name="Confirm: revoke").click()
    tab.done("Key revoked")
    assert next(one for one in rk.keys.list(server.workspace_id) if one.prefix == prefix).revoked_at
    other.sees("Your key was revoked or has expired")
    other.errors.clear()  # The browser writes of the 401 itself.


def test_roles_are_granted_and_agents_switched_off_and_on(tab: Tab, rk: RedKey, scene: Scene) -> None:
    agent = scene.agents["cleo"]
    tab.go(f"agent/{agent}")
    tab.page.get_by_role("combobox", name="Role").select_option("role_editor")
    tab.page.get_by_role("button", name="Grant").click()
    tab.done("Role granted.")
    assert "role_editor" in rk.agents.get(agent).roles
    tab.page.get_by_role("button", name="Revoke editor").click()
    tab.done("Role editor revoked.")
    assert "role_editor" not in rk.agents.get(agent).roles
    tab.page.get_by_role("button", name="Deactivate", exact=True).click()
    tab.done("Agent deactivated")
    tab.page.get_by_role("button", name="Activate", exact=True).click()
    tab.done("Agent activated.")
    assert rk.agents.get(agent).active


def test_a_key_without_rights_sees_no_buttons(open_tab: OpenTab, rk: RedKey, server: Server, scene: Scene) -> None:
    key = rk.keys.create(server.workspace_id, scopes=["read"]).api_key
    tab = open_tab().login(key)
    tab.sees("Needs a human")
    for place in ("now", f"task/{scene.tasks['Book a studio']}", "approvals", "queues", f"agent/{scene.agents['ada']}"):
        tab.go(place)
        names = {one.inner_text() for one in tab.page.locator("main button").all()}
        # These change nothing but what the tab shows.
        assert names <= {"Preview", "Download", "Dismiss", ""}, place
