"""A LangGraph graph on a queue: interrupts block and answers resume, in whatever process, also after kill -9."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from redkey.adapters import langgraph
from redkey.client import RedKey
from redkey.client.worker import Block
from redkey.errors import WorkInterrupted
from tests.harness.acts import until
from tests.harness.samples import assignment
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


def test_an_interrupted_graph_survives_its_worker_and_is_finished_by_another(
    folder: Path, server: Server, record_property: Any
) -> None:
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
            # Reported by the first worker, and not again by the second, whose graph has the same total.
            assert task.cost_usd == 0.25
    # No node ran twice: what was done before the block was done once, by the first worker.
    calls = (folder / "calls").read_text().splitlines()
    assert [line.split()[0] for line in calls] == [f"g{number}" for number in range(ROUNDS)]
    assert all(line.split()[1].startswith("first") for line in calls)
    record_property("proven", f"{ROUNDS} of {ROUNDS} interrupted graphs were finished by another worker")


def test_a_graph_without_a_checkpointer_is_refused() -> None:
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(dict)
    graph.add_node("one", lambda state: state)
    graph.add_edge(START, "one")
    graph.add_edge("one", END)
    with pytest.raises(ValueError, match="checkpointer"):
        langgraph.handler(graph.compile())


class FakeContext:
    """What of a context the handler uses; it keeps what the handler reports."""

    def __init__(self, attempt: int = 1, answer: str = "", *, lost: bool = False) -> None:
        self.task, self.input, self.answer, self._lost = assignment(attempt=attempt), {"path": []}, answer, lost
        self.costs: list[float] = []
        self.said: list[str] = []

    def check(self) -> None:
        if self._lost:
            raise WorkInterrupted("lost", code="lease_lost")

    def usage(self, used: list[dict[str, float]]) -> None:
        self.costs += [one["costUsd"] for one in used]

    def progress(self, text: str) -> None:
        self.said.append(text)


class State(TypedDict, total=False):
    """The state of the graph below."""

    path: Annotated[list[str], operator.add]
    cost: float


def questions() -> Any:
    """A graph of four nodes: the second and the third run side by side and ask a question each."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import interrupt

    def title(state: Any) -> Any:
        return {"path": [f"title {interrupt('Which title?')}"]}

    def cover(state: Any) -> Any:
        return {"path": [f"cover {interrupt('Which cover?')}"]}

    graph = StateGraph(State)
    graph.add_node("draft", lambda state: {"path": ["draft"], "cost": 0.1})
    graph.add_node("title", title)
    graph.add_node("cover", cover)
    graph.add_node("print", lambda state: {"path": ["print"], "cost": 0.4})
    for start, end in ((START, "draft"), ("draft", "title"), ("draft", "cover"), (["title", "cover"], "print")):
        graph.add_edge(start, end)
    graph.add_edge("print", END)
    return graph.compile(checkpointer=InMemorySaver())


def handle(graph: Any, context: FakeContext) -> Any:
    handler = langgraph.handler(graph, to_output=lambda state: state["path"], cost_usd=lambda state: state["cost"])
    return handler(context)  # type: ignore[arg-type]


def test_open_questions_are_asked_one_after_another_and_each_cost_is_reported_once() -> None:
    graph, first = questions(), FakeContext()
    with pytest.raises(Block, match="Which title"):
        handle(graph, first)
    assert (first.costs, first.said) == ([0.1], ["draft done"])
    # The lease was lost before the question was reported: it is asked again, and no node runs.
    again = FakeContext()
    with pytest.raises(Block, match="Which title"):
        handle(graph, again)
    assert (again.costs, again.said) == ([], [])
    with pytest.raises(Block, match="Which cover"):
        handle(graph, FakeContext(answer="A"))
    last = FakeContext(answer="B")
    done = handle(graph, last)
    assert done.output == ["draft", "cover B", "title A", "print"]
    assert (last.costs, done.cost_usd) == ([0.3], 0.3)
    assert last.said[-1] == "print done"


def test_a_retry_starts_from_the_beginning() -> None:
    graph = questions()
    for attempt in (1, 2):
        context = FakeContext(attempt)
        with pytest.raises(Block, match="Which title"):
            handle(graph, context)
        assert (context.costs, context.said) == ([0.1], ["draft done"])


def test_a_lost_lease_stops_the_graph_before_its_next_node_and_its_cost_is_reported() -> None:
    graph, context = questions(), FakeContext(lost=True)
    with pytest.raises(WorkInterrupted):
        handle(graph, context)
    assert (context.costs, context.said) == ([0.1], [])
    assert graph.get_state({"configurable": {"thread_id": "task_1:1"}}).values["path"] == ["draft"]
