"""A LangGraph graph on a queue: interrupts block and answers resume, in whatever process, also after kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redkey.client import RedKey
from tests.harness.acts import until
from tests.harness.server import Server, serving

pytest.importorskip("langgraph", reason="the extra redkey[langgraph] is not installed")
LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
ROUNDS = 50 if LONG else 2

WORKER = """
import operator, sqlite3, sys, time
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from redkey.adapters import langgraph
from redkey.client import RedKey

folder, name = Path(sys.argv[1]), sys.argv[2]


class State(TypedDict, total=False):
    guest: str
    path: Annotated[list[str], operator.add]
    report: str
    cost: float


def research(state):
    with (folder / "calls").open("a") as out:
        out.write(f"{state['guest']} {name}\\n")
    return {"path": ["research"], "cost": 0.25}


def ask(state):
    return {"path": [f"asked: {interrupt('Which title for ' + state['guest'] + '?')}"]}


def write(state):
    return {"path": ["write"], "report": f"{state['guest']}, {state['path'][-1]}"}


graph = StateGraph(State)
for node in (research, ask, write):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "research")
graph.add_edge("research", "ask")
graph.add_edge("ask", "write")
graph.add_edge("write", END)
saver = SqliteSaver(sqlite3.connect(folder / "checkpoints.sqlite", check_same_thread=False, timeout=60))
compiled = graph.compile(checkpointer=saver)
handle = langgraph.handler(
    compiled,
    to_output=lambda state: {"path": state["path"]},
    artifacts={"report": "report"},
    cost_usd=lambda state: state["cost"],
)
with RedKey() as rk:
    rk.worker(queue="graphs", agent=name)(handle)
    print("ready", flush=True)
    rk.run()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


class Worker:
    """A process that runs the graph."""

    def __init__(self, folder: Path, server: Server, name: str) -> None:
        script = folder / "worker.py"
        script.write_text(WORKER)
        known = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
        command = [sys.executable, str(script), str(folder), name]
        self.process = subprocess.Popen(command, env={**os.environ, **known}, stdout=subprocess.PIPE)

    def end(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "graph"
    made.mkdir()
    return made


def test_an_interrupted_graph_survives_its_worker_and_is_finished_by_another(folder: Path, server: Server) -> None:
    """Each round: a worker runs into the interrupt and is killed, the block is answered, another worker finishes."""
    with RedKey(server.url, server.key) as rk:
        rk.queues.create("graphs")
        for number in range(ROUNDS):
            task_id = rk.tasks.create("graphs", title="t", input={"guest": f"g{number}"}, outputs=["report"]).task_id
            first = Worker(folder, server, f"first-{number % 2}")
            try:
                until(lambda task_id=task_id: rk.tasks.get(task_id).state == "blocked", 120)
            finally:
                first.end(signal.SIGKILL)
            blocker: Any = rk.tasks.get(task_id).blocker
            assert blocker.reason == f"Which title for g{number}?"
            rk.tasks.unblock(task_id, f"title {number}")
            second = Worker(folder, server, f"second-{number % 2}")
            try:
                until(lambda task_id=task_id: rk.tasks.get(task_id).state == "completed", 120)
            finally:
                second.end(signal.SIGTERM)
            task = rk.tasks.get(task_id)
            assert task.output == {"path": ["research", f"asked: title {number}", "write"]}
            assert rk.content.get(task.artifacts[0].sha256) == f"g{number}, asked: title {number}".encode()
            (done,) = [one for one in rk.tasks.events(task_id) if one.type == "task.complete"]
            assert done.data["costUsd"] == 0.25
    # No node ran twice: what was done before the block was done once, by the first worker.
    calls = (folder / "calls").read_text().splitlines()
    assert [line.split()[0] for line in calls] == [f"g{number}" for number in range(ROUNDS)]
    assert all(line.split()[1].startswith("first") for line in calls)


def test_a_graph_without_a_checkpointer_is_refused() -> None:
    from langgraph.graph import END, START, StateGraph

    from redkey.adapters import langgraph

    graph = StateGraph(dict)
    graph.add_node("one", lambda state: state)
    graph.add_edge(START, "one")
    graph.add_edge("one", END)
    with pytest.raises(ValueError, match="checkpointer"):
        langgraph.handler(graph.compile())


def test_a_lost_lease_stops_the_graph_before_its_next_node() -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    from redkey.adapters import langgraph
    from redkey.errors import WorkInterrupted
    from tests.harness.samples import assignment

    ran: list[str] = []

    class Context:
        """What of a context the handler uses, with a lease that is lost after the first node."""

        task, input = assignment(), {"x": 1}

        def check(self) -> None:
            raise WorkInterrupted("lost", code="lease_lost")

    graph = StateGraph(dict)
    graph.add_node("one", lambda state: ran.append("one") or {"x": 2})
    graph.add_node("two", lambda state: ran.append("two") or {"x": 3})
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    with pytest.raises(WorkInterrupted):
        langgraph.handler(graph.compile(checkpointer=InMemorySaver()))(Context())  # type: ignore[arg-type]
    assert ran == ["one"]
