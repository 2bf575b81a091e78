"""Every control of the Studio is pressed by a test: what the other tests leave, and the list of all of them."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import httpx2 as httpx

from redkey.client import RedKey
from tests.harness.server import Server
from tests.studio.conftest import OpenTab, Tab
from tests.studio.controls import controls
from tests.studio.scene import PLAN, SCRIPT_MARKDOWN, Scene

# Component -> module -> test -> the names of the controls that the test presses. `*` has a name for each of its items.
PRESSED: dict[str, dict[str, list[str]]] = {
    "Access": {
        "test_actions.test_keys_are_made_and_revoked": ["Create a key", "Done", "Revoke", "Scope"],
        "test_needs.test_webhooks_are_tried_again_and_removed_on_their_page": ["Remove", "Try again"],
    },
    "Agent": {
        "test_actions.test_a_message_reaches_the_task_and_the_agent": ["Send"],
        "test_actions.test_roles_are_granted_and_agents_switched_off_and_on": [
            "Activate",
            "Deactivate",
            "Grant",
            "Revoke",
            "Role",
        ],
        "test_controls.test_the_card_of_an_agent_is_shown": ["Show the whole card"],
    },
    "Agents": {
        "test_controls.test_inactive_agents_and_more_than_a_page_are_shown": ["Show inactive agents", "Show more"]
    },
    "Approvals": {"test_actions.test_work_is_sent_back_and_approved": ["Approve", "Send back"]},
    "Bus": {
        "test_actions.test_one_speaks_on_the_bus_to_one_agent_and_to_all": [
            "Close session",
            "New session",
            "Send",
            "To",
        ],
        "test_controls.test_an_older_session_of_the_bus_is_opened": ["*"],
    },
    "ConcernActions": {
        "test_faults.test_each_cause_is_named_and_removed_in_two_clicks": [
            "Agent",
            "Approve",
            "Grant",
            "Grant credits…",
            "Let it claim again",
            "Remove",
            "Resume the queue",
            "Retry",
            "Retry both",
        ],
        "test_needs.test_a_block_is_answered_from_now": ["Answer…", "Send"],
        "test_needs.test_work_is_sent_back_from_now": ["Send back", "Send back…"],
        "test_needs.test_a_paused_run_is_resumed_from_now": ["Resume the run"],
        "test_needs.test_an_agent_is_activated_from_now": ["Activate"],
        "test_needs.test_a_broken_agent_is_deactivated_from_now": ["Deactivate"],
        "test_needs.test_a_dead_webhook_is_tried_again_from_now": ["Try again"],
        "test_needs.test_many_failures_hide_no_other_cause_and_are_counted": ["Dismiss"],
    },
    "Confirm": {"test_needs.test_webhooks_are_tried_again_and_removed_on_their_page": ["*", "Confirm:", "Go back"]},
    "Dialog": {"test_controls.test_keys_and_menu_open_and_close": ["Close"]},
    "Ledger": {
        "test_controls.test_the_ledger_is_searched": ["Agent", "Back to live", "Older", "Search"],
        "test_receipts.test_every_level_is_verified_in_the_page": ["Receipt file"],
    },
    "Login": {
        "test_login.test_a_tab_has_the_rights_that_were_chosen": ["*", "Open the Studio"],
        "test_login.test_a_wrong_key_is_refused_in_words": ["Log in with the key"],
        "test_login.test_a_person_logs_in_by_the_login_page_and_out_again": ["Log in by e-mail"],
    },
    "NewTask": {
        "test_actions.test_a_task_is_created_and_cancelled_and_tried_again": ["Create", "Queue", "Required role"],
        "test_controls.test_a_queue_is_paused_filled_and_looked_through": ["A human approves the result", "Priority"],
    },
    "Notices": {"test_controls.test_keys_and_menu_open_and_close": ["Close this message"]},
    "Plans": {
        "test_actions.test_a_plan_is_checked_simulated_started_paused_and_cancelled": ["Simulate", "Start the run"],
        "test_controls.test_a_run_starts_from_the_example_and_from_a_published_plan": [
            "Insert an example",
            "Queue",
            "Use",
        ],
    },
    "Preview": {"test_controls.test_artifacts_are_shown_by_their_kind_and_downloaded": ["Download", "Preview"]},
    "Queue": {
        "test_controls.test_a_queue_is_paused_filled_and_looked_through": ["*", "New task here", "Pause", "Resume"]
    },
    "Queues": {"test_actions.test_queues_are_created_and_paused": ["Create", "Pause", "Resume"]},
    "RaceLanes": {"test_pages.test_the_race_names_winner_and_losers": ["As a list"]},
    "Receipt": {"test_receipts.test_a_receipt_is_verified_in_the_page": ["Download", "Verify"]},
    "Run": {
        "test_actions.test_a_plan_is_checked_simulated_started_paused_and_cancelled": ["Cancel", "Pause", "Resume"],
        "test_pages.test_any_moment_of_a_run_is_shown": ["Back to now", "Moment of the run"],
    },
    "Shell": {
        "test_actions.test_a_task_is_created_and_cancelled_and_tried_again": ["New task"],
        "test_controls.test_keys_and_menu_open_and_close": ["Keys ?", "Menu"],
        "test_live.test_a_page_whose_file_does_not_come_offers_to_load_again": ["Load again"],
        "test_login.test_the_key_stays_in_the_tab": ["Log out"],
    },
    "Task": {
        "test_actions.test_a_task_is_created_and_cancelled_and_tried_again": ["Cancel", "Retry"],
        "test_actions.test_a_block_is_answered": ["Answer"],
        "test_actions.test_a_message_reaches_the_task_and_the_agent": ["Send"],
    },
    "Usage": {"test_controls.test_usage_is_grouped_and_grows": ["Group by"]},
    "Verify": {"test_receipts.test_every_level_is_verified_in_the_page": ["Witnesses and mirror"]},
}
# As small as a picture can be.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
MANY_AGENTS = 201


def test_every_control_is_pressed_by_a_test() -> None:
    """A new control is not finished before a test presses it."""
    named = {(component, name) for component, tests in PRESSED.items() for names in tests.values() for name in names}
    assert named == controls()
    silent = [
        (test, name)
        for tests in PRESSED.values()
        for test, names in tests.items()
        for name in names
        if name != "*" and name not in _source(test)
    ]
    assert silent == []


def _source(test: str) -> str:
    module, _, name = test.partition(".")
    return inspect.getsource(getattr(importlib.import_module(f"tests.studio.{module}"), name))


def _sequences(tab: Tab) -> list[int]:
    found = tab.page.locator("main ol a.mono").all_inner_texts()
    return [int(one) for one in found]


def test_the_ledger_is_searched(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    tab.go("ledger")
    page.get_by_label("Type").fill("task.claimed")
    page.get_by_role("combobox", name="Agent").select_option(scene.agents["ada"])
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name="Back to live").wait_for()
    found = rk.ledger.query(type="task.claimed", agent_id=scene.agents["ada"], order="desc")
    assert _sequences(tab) == [one.sequence for one in found]
    task = scene.tasks["Book a studio"]
    page.get_by_label("Type").fill("")
    page.get_by_role("combobox", name="Agent").select_option("")
    page.get_by_label("Task", exact=True).fill(task)
    with page.expect_response("**/ledger/query*"):
        page.get_by_role("button", name="Search").click()
    expected = [one.sequence for one in rk.ledger.query(task_id=task, order="desc")]
    page.locator("main ol li").nth(len(expected)).wait_for(state="detached")
    assert _sequences(tab) == expected
    page.get_by_label("Task", exact=True).fill("")
    page.get_by_label("From").fill("2031-01-01T00:00")
    page.get_by_role("button", name="Search").click()
    tab.sees("No events yet.")
    page.get_by_label("From").fill("")
    page.get_by_role("button", name="Search").click()
    page.locator("main ol li").nth(99).wait_for()
    page.get_by_role("button", name="Older").click()
    page.locator("main ol li").nth(100).wait_for()
    shown = _sequences(tab)
    assert shown == list(range(shown[0], shown[-1] - 1, -1))
    page.get_by_role("button", name="Back to live").click()
    new = scene.task("Seen in the ledger")
    page.locator("main ol").get_by_text("Seen in the ledger").first.wait_for()
    rk.tasks.cancel(new)


def test_a_queue_is_paused_filled_and_looked_through(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    queue = rk.queues.create(name="shelf").queue_id
    done = rk.tasks.create(queue, title="Done here").task_id
    scene.hold(done, "bob").complete(summary="Done.")
    broken = rk.tasks.create(queue, title="Broken here").task_id
    scene.hold(broken, "bob").fail("No luck.")
    dropped = rk.tasks.create(queue, title="Dropped here").task_id
    rk.tasks.cancel(dropped)
    tab.go(f"queue/{queue}")
    tab.sees("No tasks here.")
    for name, title in (("Completed", "Done here"), ("Failed", "Broken here"), ("Cancelled", "Dropped here")):
        page.get_by_role("button", name=name, exact=True).click()
        page.get_by_role("link", name=title).wait_for()
        assert page.locator("main .task").count() == 1
    page.get_by_role("button", name="Pause").click()
    tab.done("Queue paused")
    assert rk.queues.get(queue).paused
    page.get_by_role("button", name="Resume").click()
    tab.done("Queue resumed.")
    assert not rk.queues.get(queue).paused
    page.get_by_role("button", name="New task here").click()
    page.get_by_label("Title").fill("Put here")
    page.get_by_label("Priority").select_option("urgent")
    page.get_by_label("A human approves the result").check()
    page.get_by_role("button", name="Create", exact=True).click()
    tab.done("Task created.")
    (made,) = rk.tasks.list(queue, state="available")
    task = rk.tasks.get(made.task_id)
    assert (task.title, task.priority) == ("Put here", "urgent")
    scene.hold(made.task_id, "bob").complete(summary="Done.")
    (gate,) = [one for one in rk.gates.list() if one.task_id == made.task_id]
    rk.gates.approve(gate.gate_id)


def test_a_run_starts_from_the_example_and_from_a_published_plan(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    other = rk.queues.create(name="plans-queue").queue_id
    tab.go("plans")
    page.get_by_role("button", name="Insert an example").click()
    tab.sees("The plan is valid.")
    page.get_by_role("combobox", name="Queue").select_option(other)
    page.get_by_label("Input of the run (JSON, optional)").fill('{"guest": "Ada"}')
    page.get_by_role("button", name="Start the run").click()
    tab.done("Run started.")
    (run,) = [one for one in rk.workflows.list() if one.name == "two-steps"]
    assert run.queue_id == other
    started = next(iter(rk.ledger.query(type="workflow.started", workflow_id=run.workflow_id)))
    kept = [rk.content.get(one["sha256"]) for one in started.data.values() if isinstance(one, dict)]
    assert any(b'{"guest":"Ada"}' in one for one in kept)
    rk.workflows.cancel(run.workflow_id)
    draft = rk.definitions.create({**PLAN, "name": "kept-plan"})
    rk.definitions.publish(draft.definition_id)
    tab.go("plans")
    row = page.locator(".row").filter(has_text="kept-plan")
    row.get_by_role("button", name="Use").click()
    tab.sees("The plan is valid.")
    assert json.loads(page.get_by_label("Plan (plan.json)").input_value())["name"] == "kept-plan"


def test_the_card_of_an_agent_is_shown(tab: Tab, scene: Scene) -> None:
    tab.go(f"agent/{scene.agents['ada']}")
    tab.page.get_by_text("Show the whole card").click()
    tab.page.locator("details pre").get_by_text('"description": "ada works here."').wait_for()


def test_inactive_agents_and_more_than_a_page_are_shown(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    for number in range(MANY_AGENTS):
        rk.agents.register(card={"name": f"crowd-{number}"})
    gone = rk.agents.register(card={"name": "gone"}).agent_id
    rk.agents.deactivate(gone)
    tab.go("agents")
    page.get_by_role("button", name="Show more").click()
    active = sum(one.active for one in rk.agents.list())
    rows = page.locator("tbody tr")
    rows.nth(active - 1).wait_for()
    assert rows.count() == active
    page.get_by_label("Show inactive agents").check()
    page.get_by_role("row").filter(has_text="gone").get_by_text("inactive", exact=True).wait_for()


def test_an_older_session_of_the_bus_is_opened(tab: Tab, server: Server) -> None:
    bus, headers = f"{server.url}/api/sessions", {"authorization": f"Bearer {server.key}"}
    for name in ("first", "second"):
        talk = httpx.post(bus, headers=headers, json={"name": f"The {name} talk"}).json()["id"]
        httpx.post(f"{bus}/{talk}/agents", headers=headers, json={"id": "ann", "name": "Ann"}).raise_for_status()
        message = {"text": f"Said in the {name}", "kind": "user", "to": "agents"}
        httpx.post(f"{bus}/{talk}/messages", headers=headers, json=message).raise_for_status()
    tab.go("bus")
    tab.page.get_by_role("button", name="The second talk").click()
    tab.page.locator("ol").get_by_text("Said in the second").wait_for()
    tab.page.get_by_role("button", name="The first talk").click()
    tab.page.locator("ol").get_by_text("Said in the first").wait_for()
    assert tab.page.get_by_text("Said in the second").count() == 0


def test_keys_and_menu_open_and_close(open_tab: OpenTab, scene: Scene) -> None:
    tab = open_tab(width=390).login()
    page = tab.page
    assert not page.get_by_role("link", name="Race").is_visible()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name="Keys ?").click()
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    dialog.get_by_role("button", name="Close").click()
    dialog.wait_for(state="detached")
    page.get_by_role("link", name="Race").click()
    page.get_by_role("heading", level=1, name="Race").wait_for()
    page.fill("input[type=search]", "nothing is called so")
    page.keyboard.press("Enter")
    tab.done("Nothing found for", receipt=False)
    page.get_by_role("button", name="Close this message").click()
    page.get_by_text("Nothing found for").wait_for(state="detached")


def test_artifacts_are_shown_by_their_kind_and_downloaded(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    task = scene.task("Many kinds")
    held = scene.hold(task, "ada")
    held.leave("facts.json", '{"a":{"b":1}}', "application/json")
    held.leave("script.md", SCRIPT_MARKDOWN, "text/markdown")
    held.leave("notes.txt", "Only a note.", "text/plain")
    long = rk.content.put(b"long " * 500_000)
    held.rk.claims.add_artifact(held.claim_id, "long.txt", sha256=long.sha256, bytes=2_500_000, media_type="text/plain")
    held.leave("secret.txt", "To be erased", "text/plain")
    held.rk.claims.add_artifact(held.claim_id, "dot.png", content_base64=PIXEL, media_type="image/png")
    held.complete(summary="Here.")
    digests = {one.name: one.sha256 for one in rk.tasks.get(task).artifacts}
    rk.content.erase(digests["secret.txt"])
    tab.go(f"task/{task}")

    def shown(name: str) -> None:
        page.locator(".artifact").filter(has_text=name).get_by_role("button", name="Preview").click()

    shown("facts.json")
    page.locator("pre").get_by_text('{\n  "a": {\n    "b": 1\n  }\n}').wait_for()
    shown("script.md")
    page.locator(".doc .heading").get_by_text("Cold open").wait_for()
    shown("notes.txt")
    page.locator("pre").get_by_text("Only a note.").wait_for()
    shown("long.txt")
    tab.sees("It is too large to be shown here. Download it.")
    shown("dot.png")
    page.wait_for_function("() => document.querySelector('.shown img')?.naturalWidth === 1")
    shown("secret.txt")
    page.locator(".shown").get_by_text("There is no such content").wait_for()
    page.locator(".artifact").filter(has_text="secret.txt").get_by_role("button", name="Download").click()
    tab.done("There is no such content", receipt=False)
    tab.errors.clear()  # The browser writes of the 404 itself.
    with page.expect_download() as saved:
        page.locator(".artifact").filter(has_text="notes.txt").get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "notes.txt"
    assert Path(saved.value.path()).read_text() == "Only a note."


def test_usage_is_grouped_and_grows(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    tab.go("usage")
    page.get_by_label("Group by").select_option("agent")
    page.get_by_role("row").filter(has_text="cleo").wait_for()
    claims = page.get_by_role("row").filter(has_text="All").get_by_role("cell").nth(2)
    before = int(claims.inner_text().replace(",", ""))
    scene.hold(scene.task("Counted at once"), "dan").complete(summary="Done.")
    claims.filter(has_not_text=f"{before:,}").wait_for()
    assert int(claims.inner_text().replace(",", "")) == before + 1


def test_the_attempts_of_a_task_are_listed(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("Twice", retry={"max_attempts": 2, "on_failure": "reopen"})
    scene.hold(task, "ada").fail("Not yet.")
    scene.hold(task, "bob").complete(summary="Done.", cost_usd=0.25)
    tab.go(f"task/{task}")
    rows = tab.page.locator("section", has=tab.page.get_by_role("heading", name="Attempts")).locator("tbody tr")
    rows.nth(1).wait_for()
    told = [row.locator("td").all_inner_texts() for row in rows.all()]
    assert [(one[0].split()[-1], one[1], one[4], one[5]) for one in told] == [
        ("1", "ada", "failed", ""),
        ("2", "bob", "completed", "$0.25"),
    ]


def test_a_task_with_a_long_history_shows_its_newest_events(tab: Tab, rk: RedKey, scene: Scene) -> None:
    task = scene.task("A long history")
    for number in range(200):
        rk.tasks.add_message(task, f"Remark {number}")
    scene.hold(task, "ada").complete(summary="Done.")
    assert len(list(rk.tasks.events(task))) > 200
    tab.go(f"task/{task}")
    tab.page.locator("section", has=tab.page.get_by_role("heading", name="Events")).get_by_text("completed").wait_for()


def test_the_pace_of_a_queue_is_known_after_a_reload(tab: Tab, rk: RedKey, scene: Scene) -> None:
    page = tab.page
    queue = rk.queues.create(name="known-pace").queue_id
    for number in range(20):
        task = rk.tasks.create(queue, title=f"Done {number}").task_id
        scene.hold(task, "ada").complete(summary="Done.")
    missed = rk.tasks.create(queue, title="Missed").task_id
    scene.hold(missed, "ada")
    scene.acting("bob").tasks.claim(missed, agent_id=scene.agents["bob"])

    def told() -> list[str]:
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="known-pace"))
        row.get_by_role("cell").nth(8).get_by_text("1", exact=True).wait_for()
        return [one.inner_text() for one in row.get_by_role("cell").all()[6:9]]

    tab.go("queues")
    assert told() == ["2.0", "21", "1"]
    page.reload()
    assert told() == ["2.0", "21", "1"]
