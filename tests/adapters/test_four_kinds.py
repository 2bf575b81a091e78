"""Agents of four kinds finish one plan together, each called in its own way; their costs add up to the cent."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redkey.client import RedKey
from redkey.wire import files
from tests.harness.models import Reply, model_server
from tests.harness.scene import Scene, output, scene, until
from tests.harness.server import serving

pytest.importorskip("langgraph", reason="the extra redkey[langgraph] is not installed")
pytest.importorskip("a2a", reason="the extra redkey[a2a] is not installed")

from tests.runner import test_a2a_executor as remote

MODEL = "qwen3:8b"
GRAPH = """
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from redkey.adapters import langgraph
from redkey.client import RedKey


class State(TypedDict, total=False):
    script: str


graph = StateGraph(State)
graph.add_node("draft", lambda state: {"script": "Welcome to the show."})
graph.add_edge(START, "draft")
graph.add_edge("draft", END)
handle = langgraph.handler(
    graph.compile(checkpointer=InMemorySaver()),
    to_input=lambda ctx: {"script": ctx.read("guest_brief").decode()},
    to_output=lambda state: None,
    artifacts={"script_draft": "script"},
    cost_usd=lambda state: 0.11,
)
with RedKey() as rk:
    rk.worker(queue="podcast", roles=["writer"], agent="writer")(handle)
    rk.run()
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Scene]:
    with serving(tmp_path) as running, scene(tmp_path, running, "podcast") as made:
        yield made


@pytest.fixture
def workflow_id(stage: Scene) -> str:
    """The run; it makes the roles that agents are granted, with what they are able to do."""
    stage.rk.queues.create("podcast")
    plan = files.load("examples/podcast/plan.json")
    return stage.rk.workflows.start("podcast", plan=plan, input={"guestName": "Piers Gorman"}).workflow_id


@pytest.fixture
def graph(stage: Scene, workflow_id: str) -> Iterator[None]:
    """The writer: a LangGraph graph in a process of its own."""
    script = stage.directory / "writer.py"
    script.write_text(GRAPH)
    known = {"REDKEY_URL": stage.server.url, "REDKEY_API_KEY": stage.server.key}
    process = subprocess.Popen([sys.executable, str(script)], env={**os.environ, **known})
    yield
    process.terminate()
    process.wait(60)


@pytest.fixture
def reviewer() -> Iterator[str]:
    """The reviewer: a remote agent, on the A2A SDK's own server in another thread."""
    notes = {"path": "review_notes.md", "operation": "create", "content": "Good."}
    envelope = json.loads(output(summary="Reviewed.", artifacts=[notes]))
    ready, stop = threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def act(context: Any, updater: Any) -> None:
        await updater.add_artifact([remote.data(envelope)], name="output")
        await updater.complete()

    async def serve() -> None:
        found["loop"] = asyncio.get_running_loop()
        async with remote.serving(act) as (url, _):
            found["url"] = url
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    yield found["url"]
    found["loop"].call_soon_threadsafe(stop.set)
    thread.join()


def test_a_program_a_model_a_graph_and_a_remote_agent_finish_the_podcast(
    stage: Scene, workflow_id: str, graph: None, reviewer: str
) -> None:
    packet = {"path": "research_packet.md", "operation": "create", "content": "Facts, by example.com."}
    replies = {1: Reply(tools=(("list_files", {}),), input_tokens=100_000, output_tokens=1000)}
    done = Reply(output(summary="Researched.", artifacts=[packet]), input_tokens=20_000, output_tokens=500)
    prices = stage.directory / "prices.json"
    prices.write_text(json.dumps({"models": {MODEL: {"input": 1, "output": 10}}}))
    script = f"""
echo '{{"cost_usd": 0.07}}' > "$REDKEY_USAGE_FILE"
echo 'The guest is Piers Gorman.' > guest_brief.md
echo '{output(summary="Known.")}'
"""

    def options(name: str, role: str, *more: str) -> list[str]:
        identity = {"slug": name, "name": name, "department": "dev", "reports_to": "human", "model": MODEL}
        card, work = (
            stage.card(name, identity=identity, capabilities=["web_search", "source_review"]),
            stage.directory / f"work-{name}",
        )
        return [
            "--card",
            str(card),
            "--queue",
            "podcast",
            "--role",
            role,
            "--work",
            str(work),
            "--memory",
            "off",
            *more,
        ]

    with model_server(lambda number, request: replies.get(number, done)) as model:
        for runner in (
            options("producer", "producer", "--exec", stage.script("agent.sh", script)),
            options("researcher", "researcher", "--openai", f"{model.url}/v1", "--prices", str(prices)),
            options("reviewer", "reviewer", "--a2a", reviewer),
        ):
            stage.start(runner)
        try:
            until(lambda: len(list(stage.rk.gates.list())) == 1, 180)
        except AssertionError:
            steps = stage.rk.workflows.state(workflow_id).tasks
            tasks = [stage.rk.tasks.get(step.task_id) for step in steps if step.task_id]
            logs = [path.read_text() for path in stage.directory.glob("runner-*.log")]
            raise AssertionError("\n".join([*map(str, tasks), *logs])) from None
        (gate,) = stage.rk.gates.list()
        # Who did the work may not approve it; the runners act under the first key.
        workspace = next(iter(stage.rk.workspaces.list())).workspace_id
        other = stage.rk.keys.create(workspace, scopes=["admin"], name="approver")
        with RedKey(stage.server.url, other.api_key) as human:
            human.gates.approve(gate.gate_id)
        until(lambda: stage.rk.workflows.get(workflow_id).status == "completed", 60)
    tasks = stage.rk.workflows.state(workflow_id).tasks
    completed = [
        event for task in tasks for event in stage.rk.tasks.events(task.task_id) if event.type == "task.complete"
    ]
    assert len(completed) == 4
    # A2A has no field for costs; the model's two turns are 120,000 tokens in and 1,500 out. RedKey adds them up.
    assert sorted(stage.rk.tasks.get(task.task_id).cost_usd for task in tasks if task.task_id) == [0, 0.07, 0.11, 0.135]
    names = {one.agent_id: one.slug for one in stage.rk.agents.list()}
    by_agent = {names[one.agent_id]: one.cost_usd for one in stage.rk.usage.get(by="agent").items if one.agent_id}
    assert {name: usd for name, usd in by_agent.items() if usd} == {
        "producer": 0.07,
        "researcher": 0.135,
        "writer": 0.11,
    }
    assert stage.rk.usage.get(by="task").total.cost_usd == 0.315
