"""Runs as replies show them: the state of every task and why it waits, counts, the graph and its drawing."""

from __future__ import annotations

from redkey.api.mermaid import mermaid
from redkey.commands.workflows import CancelWorkflow, PauseWorkflow
from redkey.readmodel.plan_text import plan_text
from redkey.readmodel.view import read_document
from redkey.readmodel.workflow_at import run_at, run_now
from redkey.readmodel.workflows import workflow_graph, workflow_state
from redkey.shapes.workflows import Counts, Edge, Graph, Node, WorkflowState
from tests.harness.runs import RunDesk, plan_of, step


def state_of(desk: RunDesk, at: int = 0) -> WorkflowState:
    """The run now by its rows, or at a place of the ledger by its records."""
    if at:
        found = run_at(desk.store, desk.topic, desk.workflow, at)
        assert found is not None
    else:
        found = run_now(desk.store, desk.topic, desk.workflow)
    text = plan_text(desk.store, desk.topic, desk.workflow.content_sha256)
    return workflow_state(found, text, lambda sha256: read_document(desk.store, desk.topic, sha256))


def test_every_task_of_a_run_says_where_it_is_and_what_it_waits_for() -> None:
    desk = RunDesk()
    desk.start(plan_of(step("a"), step("b", "a"), step("c"), step("d", "b", "c"), parallel=1))
    desk.take("a")
    seen = {one.plan_task_id: one for one in state_of(desk).tasks}
    assert {key: one.state for key, one in seen.items()} == {
        "a": "claimed",
        "b": "waiting",
        "c": "waiting",
        "d": "waiting",
    }
    assert (seen["b"].blocked_by, seen["b"].waits_because) == (("a",), "dependency")
    assert (seen["c"].blocked_by, seen["c"].waits_because) == ((), "parallel_limit")
    assert seen["d"].depends_on == ("b", "c")
    claim = seen["a"].claim
    assert claim is not None
    assert (claim.agent_id, seen["a"].title, seen["a"].role) == (desk.workers[0], "Write a", "role_writer")
    desk.do(PauseWorkflow(desk.run))
    paused = state_of(desk)
    assert (paused.status, {one.plan_task_id: one.waits_because for one in paused.tasks}["c"]) == ("paused", "paused")
    assert (paused.critical_path, paused.max_parallel_tasks) == (("a", "b", "d"), 1)


def test_the_rows_and_the_records_of_a_run_show_the_same_at_every_place() -> None:
    desk = RunDesk()
    desk.start(plan_of(step("a", approvalGate=True), step("b", "a"), step("c"), attempts=2))
    seen: dict[int, WorkflowState] = {}

    def look() -> None:
        seen[desk.world.sequence] = state_of(desk)

    look()
    desk.finish("a")
    look()
    desk.reject("a", "Too short.")
    look()
    desk.break_down("c")
    look()
    desk.finish("a")
    desk.approve("a")
    look()
    desk.do(CancelWorkflow(desk.run))
    look()
    assert {place: state_of(desk, place) for place in seen} == seen
    last = seen[desk.world.sequence]
    assert (last.status, last.counts) == ("cancelled", Counts(total=3, completed=1, failed=1, cancelled=1, open=0))
    assert {one.cancelled_because for one in last.tasks if one.state == "cancelled"} == {"workflow_cancelled"}


def test_a_gate_is_shown_with_its_task_while_it_is_open() -> None:
    desk = RunDesk()
    desk.start(plan_of(step("a", approvalGate={"approvers": ["role_writer"]}), step("b", "a")))
    desk.finish("a")
    (waiting, after) = state_of(desk).tasks
    assert (waiting.state, after.state) == ("awaiting_approval", "waiting")
    assert waiting.gate is not None
    assert (waiting.gate.state, waiting.gate.approvers, waiting.gate.title) == ("open", ("role_writer",), "Write a")
    desk.approve("a")
    (waiting, after) = state_of(desk).tasks
    assert (waiting.state, waiting.gate, waiting.completed_by) == ("completed", None, desk.workers[0])
    assert after.state == "available"


def test_the_graph_has_levels_edges_and_gates() -> None:
    desk = RunDesk()
    desk.start(plan_of(step("a"), step("b", "a", approvalGate=True), step("c", "a", "b")))
    found = run_now(desk.store, desk.topic, desk.workflow)
    graph = workflow_graph(found, None)
    assert [(node.id, node.level, node.gated, node.title) for node in graph.nodes] == [
        ("a", 0, False, ""),
        ("b", 1, True, ""),
        ("c", 2, False, ""),
    ]
    assert [(edge.source, edge.to) for edge in graph.edges] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_a_title_cannot_write_diagram_code() -> None:
    hostile = 'x"] --> evil["<script>; click n0 href "javascript:0"'
    nodes = (
        Node(id="a", title=hostile, role="role_writer", state="working", level=0),
        Node(id="b", role="role_writer", state="completed", level=1, gated=True),
    )
    graph = Graph(workflow_id="wf_x", status="running", nodes=nodes, edges=(Edge(source="a", to="b"),))
    first, drawn, gate, edge, *classes = mermaid(graph).splitlines()
    assert (first, edge) == ("flowchart LR", "  n0 --> n1")
    assert drawn.startswith('  n0["x#34;#93; --#62; evil#91;')
    assert drawn.endswith('<br/><small>role_writer</small>"]:::working')
    assert gate == '  n1{{"b<br/><small>role_writer</small>"}}:::completed'
    assert [line.split()[1] for line in classes] == ["working", "completed"]
