"""`redkey mcp` over standard input and output: tools, races, leases that the process keeps, and slots."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_types import TextResourceContents

from redkey.client import RedKey
from tests.client.worker.crew import until
from tests.harness.server import Server, serving
from tests.mcp.conftest import Agent, agent, run

TOOLS = {
    *("wait_for_task", "claim_task", "complete_task", "fail_task", "block_task", "release_task", "report_progress"),
    *("add_artifact", "get_artifact", "create_task", "start_plan", "list_tasks", "explain_task", "list_approvals"),
    *("decide_approval", "send_message", "read_inbox", "get_receipt", "bus_send", "bus_receive", "bus_agents"),
}


async def claimed(worker: Agent, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await worker("wait_for_task", **arguments))["claim"]
    assert found["outcome"] == "claimed", found
    return found


def test_every_tool_has_a_description_annotations_and_schemas(shop: Path) -> None:
    async def test() -> None:
        # No server is needed to list them.
        async with agent(shop) as one:
            listed = (await one.client.list_tools()).tools
            assert {tool.name for tool in listed} == TOOLS
            for tool in listed:
                assert tool.description
                assert tool.annotations is not None
                assert tool.output_schema is not None
                assert tool.input_schema["additionalProperties"] is False
            prompts = {prompt.name for prompt in (await one.client.list_prompts()).prompts}
            assert prompts == {"work_the_queue", "plan_this_goal", "review_and_approve"}
            templates = (await one.client.list_resource_templates()).resource_templates
            assert {str(one.uri_template) for one in templates} == {
                f"redkey://{kind}/{{id}}" for kind in ("task", "plan", "queue")
            }
        assert not (shop / ".redkey").exists()

    run(test)


def test_an_agent_works_a_task_from_its_creation_to_its_receipt(shop: Path, server: Server, rk: RedKey) -> None:
    async def test() -> None:
        async with agent(shop, server) as one:
            made = (await one("create_task", title="Research", outputs=["facts"], input={"guest": "Ida"}))["task"]
            claim = await claimed(one)
            assert (claim["task"]["task_id"], claim["task"]["input"]) == (made["task_id"], {"guest": "Ida"})
            assert (await one("report_progress", message="Half of it.", percent=50.4))["report"]["recorded"]
            said = rk.tasks.get(made["task_id"]).progress
            assert said is not None
            assert (said.text, said.percent) == ("Half of it.", 50)
            assert "missing_artifact" in await one.refusal("complete_task", summary="Done.")
            (shop / "facts.md").write_text("Five facts.")
            await one("add_artifact", name="facts", path="facts.md", media_type="text/markdown")
            held = await one("list_tasks", held_by_me=True)
            assert [task["state"] for task in held["tasks"]] == ["working"]
            ended = (await one("complete_task", summary="Five facts.", output={"facts": 5}))["task"]
            read = (await one("get_artifact", task_id=made["task_id"], name="facts"))["artifact"]
            assert read["content"] == "Five facts."
            saved = await one("get_artifact", task_id=made["task_id"], name="facts", save_to="copy.md")
            assert Path(saved["artifact"]["saved_to"]).read_text() == "Five facts."
            await one("get_receipt", event_id=ended["event_id"], save_to="receipt.json")
            view = (await one.client.read_resource(f"redkey://task/{made['task_id']}")).contents[0]
            assert isinstance(view, TextResourceContents)
            assert json.loads(view.text)["state"] == "completed"

    run(test)
    verified = [sys.executable, "-m", "redkey", "receipt", "verify", str(shop / "receipt.json")]
    assert subprocess.run(verified, capture_output=True, timeout=120).returncode == 0
    # The ledger names the agent, not the person who installed it.
    task = rk.tasks.list("default", state="completed").page().items[0]
    actors = {event.type: event.actor.id for event in rk.tasks.events(task.task_id) if event.actor.type == "agent"}
    agent_id = rk.tasks.get(task.task_id).completed_by
    assert (actors["task.created"], actors["task.complete"]) == ("claude-code-shop", agent_id)
    assert rk.agents.get(agent_id).name == "claude-code@shop"


def test_lineage_and_extensions_are_taken_and_given_back(shop: Path, server: Server, rk: RedKey) -> None:
    """Every tool that records something takes extensions; its own record carries them."""

    def data(name: str) -> dict[str, Any]:
        return {"extensions": {"redkey.test": {"of": name, "at": [1, None]}}}

    async def test() -> None:
        async with agent(shop, server) as one:
            before = rk.tasks.get((await one("create_task", title="Before"))["task"]["task_id"])
            lineage = {
                "context_id": "project:p1",
                "correlation_id": "project:all",
                "parent_task_id": before.task_id,
                "reference_task_ids": [before.task_id],
            }
            asked = {"title": "Research", "priority": "high", "needs_approval": True, **lineage, **data("created")}
            made = (await one("create_task", **asked))["task"]
            claim = (await one("claim_task", task_id=made["task_id"], **data("claim")))["claim"]
            assert claim["task"]["lineage"] == {**lineage, **data("created")}
            shown = (await one("explain_task", task_id=made["task_id"]))["explanation"]
            assert shown["lineage"] == {**lineage, **data("created")}
            await one("report_progress", message="Half of it.", **data("progress"))
            await one("add_artifact", name="facts", content="Five.", **data("artifact"))
            ended = (await one("complete_task", summary="Done.", **data("complete")))["task"]
            # The agent may not decide on its own work: the next ones are about other tasks.
            assert "own_gate" in await one.refusal("decide_approval", gate_id=ended["gate_id"], approve=True)
            for name, arguments in (
                ("release_task", {}),
                ("block_task", {"question": "Which?"}),
            ):
                await claimed(one)
                await one(name, **arguments, **data(name))
            rk.tasks.unblock(before.task_id, answer="This.")
            await claimed(one, **data("wait"))
            await one("fail_task", reason="No.", kind="rejected", **data("fail_task"))
            await one("send_message", to="human", subject="Done", **data("inbox"))
            await one("send_message", to="claude-code-shop", subject="Note")
            [read] = (await one("read_inbox", **data("read")))["messages"]
            assert read["subject"] == "Note"
            plan = json.loads((Path(__file__).parents[1] / "seeds/examples/004-plan.json").read_text())
            await one("start_plan", plan=plan, **data("plan"))
            assert "wire_too_large" in await one.refusal(
                "create_task", title="x", extensions={"redkey.test": "x" * 2000}
            )

    run(test)
    said = {
        (event.type, event.extensions["redkey.test"]["of"])
        for event in rk.ledger.query()
        if event.extensions and "redkey.test" in event.extensions
    }
    assert said == {
        ("task.created", "created"),
        ("task.progress", "progress"),
        ("artifact.ready", "artifact"),
        ("task.complete", "complete"),
        ("task.released", "release_task"),
        ("task.blocked", "block_task"),
        ("task.failed", "fail_task"),
        ("inbox.sent", "inbox"),
        ("inbox.read", "read"),
        ("task.claim_attempted", "claim"),
        ("task.claim_attempted", "wait"),
        ("workflow.started", "plan"),
    }


def test_a_lost_race_is_a_result_that_names_the_winner(shop: Path, server: Server) -> None:
    async def test() -> None:
        async with agent(shop, server) as first, agent(shop, server) as second:
            made = (await first("create_task", title="One"))["task"]
            await first("claim_task", task_id=made["task_id"])
            lost = (await second("claim_task", task_id=made["task_id"]))["claim"]
            assert lost["outcome"] == "missed"
            assert "claude-code-shop" in lost["won_by"]
            assert "Do not try it again" in lost["next_step"]
            assert (await second("wait_for_task", wait_seconds=0))["claim"]["outcome"] == "nothing_yet"
            await second("create_task", title="Two")
            await claimed(second)
            assert "You do not hold" in await second.refusal("complete_task", claim_id=made["task_id"])
            await second("release_task")
            assert "You hold no task" in await second.refusal("complete_task")

    run(test)


def test_the_answer_to_a_question_comes_with_the_next_claim(shop: Path, server: Server, rk: RedKey) -> None:
    async def test() -> None:
        async with agent(shop, server) as one:
            made = (await one("create_task", title="Ask"))["task"]
            await claimed(one)
            await one("block_task", question="Which colour?", suggestion="Name one.")
            assert (await one("explain_task", task_id=made["task_id"]))["explanation"]["question"] == "Which colour?"
            rk.tasks.unblock(made["task_id"], answer="Blue.")
            assert (await claimed(one))["task"]["answer"] == "Blue."
            await one("fail_task", reason="No paint.", kind="rejected")

    run(test)


def test_a_wait_tells_of_its_progress_and_ends_with_a_task(shop: Path, server: Server, rk: RedKey) -> None:
    async def test() -> None:
        async with agent(shop, server) as one:
            await one("list_tasks")
            waiting = asyncio.ensure_future(one("wait_for_task", wait_seconds=50))
            while not one.progress:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(rk.tasks.create, "default", title="Late")
            assert (await waiting)["claim"]["outcome"] == "claimed"
            assert "Waiting for a task on default" in one.progress[0]

    run(test)


def test_bad_input_is_a_sentence_with_the_next_step(shop: Path, server: Server) -> None:
    async def test() -> None:
        async with agent(shop, server) as one:
            assert "The tools are: " in await one.refusal("no_such_tool")
            assert "Its arguments are: task_id" in await one.refusal("claim_task", task_id="x", colour="red")
            assert "task_id: Field required" in await one.refusal("claim_task")
            assert "task_not_found" in await one.refusal("claim_task", task_id="task_1")
            assert "You hold no task" in await one.refusal("complete_task")
            assert "less than or equal" in await one.refusal("wait_for_task", wait_seconds=100)
            assert "queue" in await one.refusal("wait_for_task", queue="no such queue", wait_seconds=0)
            assert "plan" in await one.refusal("start_plan", plan={"tasks": "none"})
            assert "not JSON" in await one.refusal("start_plan", path=__file__)
            assert "one of content" in await one.refusal("add_artifact", name="x")
            await one("create_task", title="T")
            await claimed(one)
            assert "no file" in await one.refusal("add_artifact", name="x", path="missing.md")
            assert "not base64" in await one.refusal("add_artifact", name="x", content_base64="%%%")
            assert "no artifact" in await one.refusal(
                "get_artifact", task_id=(await one("list_tasks", held_by_me=True))["tasks"][0]["task_id"], name="x"
            )
            assert "gate_not_found" in await one.refusal("decide_approval", gate_id="gate_1", approve=True)
            assert "note" in await one.refusal("decide_approval", gate_id="gate_1", approve=False)

    run(test)


def test_a_client_that_leaves_gives_its_task_back_at_once(shop: Path, server: Server, rk: RedKey) -> None:
    made = ""

    async def test() -> None:
        nonlocal made
        async with agent(shop, server) as one:
            made = (await one("create_task", title="T"))["task"]["task_id"]
            await claimed(one)

    run(test)
    # Not by its lease: it was released.
    until(rk, "task.released", made)
    assert rk.tasks.get(made).state == "available"


def slot_of(state: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(state.glob("redkey/agents/*/claude-code@shop.json")).read_text())
    return found


def test_a_client_that_is_killed_keeps_its_task_for_one_lease(shop: Path, server: Server, rk: RedKey) -> None:
    made = ""

    async def test() -> None:
        nonlocal made
        async with agent(shop, server, "--lease", "5") as one:
            made = (await one("create_task", title="T"))["task"]["task_id"]
            await claimed(one)
            # The process keeps the lease, not the model.
            await asyncio.to_thread(until, rk, "task.lease_extended", made)
            os.kill(slot_of(shop.parent / "state")["pid"], signal.SIGKILL)

    run(test)
    until(rk, "task.lease_expired", made)

    async def again() -> None:
        # The next process of the slot is the same agent.
        async with agent(shop, server, "--lease", "5") as one:
            assert (await claimed(one))["task"]["task_id"] == made
            await one("complete_task")

    run(again)
    agents = {event.data["agentId"] for event in rk.tasks.events(made, type="task.claimed")}
    assert len(agents) == 1


def test_what_a_killed_process_held_comes_first_for_the_next_one_of_its_slot(
    shop: Path, server: Server, rk: RedKey
) -> None:
    async def killed() -> None:
        async with agent(shop, server) as one:
            await one("create_task", title="Held")
            await claimed(one)
            os.kill(slot_of(shop.parent / "state")["pid"], signal.SIGKILL)

    async def after() -> None:
        async with agent(shop, server) as one:
            claim = await claimed(one, wait_seconds=0)
            assert claim["task"]["title"] == "Held"
            assert "when your last process ended" in claim["next_step"]
            await one("complete_task")

    run(killed)
    run(after)


def test_two_windows_in_one_folder_are_two_agents_and_a_slot_is_taken_over(shop: Path, server: Server) -> None:
    async def test() -> None:
        async with agent(shop, server) as first:
            await first("list_tasks")
            async with agent(shop, server) as second, agent(shop, server, name="Codex CLI") as third:
                talk = [(await one("bus_agents"))["you"] for one in (first, second, third)]
                assert talk == ["claude-code.shop", "claude-code-2.shop", "codex-cli.shop"]
                await first("bus_send", to="claude-code-2.shop", text="Hello.")
                heard = (await second("bus_receive", wait_seconds=50))["messages"]
                assert [(one["sender"], one["text"]) for one in heard] == [("claude-code.shop", "Hello.")]
                assert "Its agents are: " in await first.refusal("bus_send", to="bob", text="Hello.")
            async with agent(shop, server) as fourth:
                assert (await fourth("bus_agents"))["you"] == "claude-code-2.shop"

    run(test)


def test_a_message_waits_for_its_reader(shop: Path, server: Server) -> None:
    async def test() -> None:
        async with agent(shop, server) as first, agent(shop, server) as second:
            await second("list_tasks")
            await first("list_tasks")
            names = sorted([(await one("bus_agents"))["you"] for one in (first, second)])
            assert names == ["claude-code-2.shop", "claude-code.shop"]
            sender, reader = (first, second) if (await first("bus_agents"))["you"] == names[1] else (second, first)
            await sender("send_message", to="claude-code-2-shop", subject="Look", body="At this.")
            assert [one["subject"] for one in (await reader("read_inbox"))["messages"]] == ["Look"]
            assert (await reader("read_inbox"))["messages"] == []

    run(test)


def test_a_revoked_key_and_a_server_that_is_gone_are_told_and_mended(shop: Path, place: Path) -> None:
    async def test(server: Server, rk: RedKey) -> None:
        async with agent(shop, server) as one:
            await one("list_tasks")
            workspace = next(iter(rk.workspaces.list())).workspace_id
            key = next(key for key in rk.keys.list(workspace) if key.name == "claude-code@shop")
            rk.keys.revoke(workspace, key.key_id)
            assert "expired or was revoked" in await one.refusal("list_tasks")
            assert (await one("list_tasks"))["tasks"] == [], "the next call has a new key"
            server.stop()
            began = time.monotonic()
            assert "did not answer" in await one.refusal("list_tasks")
            assert time.monotonic() - began < 50

    with serving(place) as server, RedKey(server.url, server.key) as rk:
        run(lambda: test(server, rk))


@pytest.mark.parametrize("module", ["redkey.client", "redkey.app", "redkey.cli.mcp"])
def test_what_needs_no_mcp_does_not_import_it(module: str) -> None:
    code = f"import sys, {module}; print(sorted(m for m in ('mcp', 'mcp_types', 'pydantic') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]"
