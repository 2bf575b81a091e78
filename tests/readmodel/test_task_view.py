"""Tasks, queues, agents and keys as replies show them: what rows and documents say, with and without the documents."""

from __future__ import annotations

from redkey.commands.claims import AddArtifact, BlockClaim, FailClaim, StartClaim
from redkey.commands.tasks import CancelTask
from redkey.readmodel.agent_view import agent_view, role_view
from redkey.readmodel.explain import explain
from redkey.readmodel.rows import entity
from redkey.readmodel.task_at import task_at
from redkey.readmodel.task_view import assignment, claim_view, queue_view, summary_view, task_view
from redkey.readmodel.view import Document, document_of, moment
from redkey.reducers.entities import Task
from tests.harness.desk import QUEUE, Desk, ref_of


def row_of(desk: Desk, task_id: str) -> Task:
    row = desk.store.row(desk.topic, "task", task_id)
    assert row is not None
    found: Task = entity(row)
    return found


def read_nothing(sha256: str) -> Document | None:
    return None


def test_a_task_is_shown_with_its_document_and_marked_when_it_was_erased() -> None:
    desk = Desk()
    task_id = desk.task(outputs=("text",), lease_seconds=90)
    task = row_of(desk, task_id)
    document = {
        "title": "Write",
        "description": "All of it.",
        "completionCriteria": ["done"],
        "input": {"guest": "Ada"},
    }
    shown = task_view(task, {task.content_sha256: document}.get)
    assert (shown.title, shown.description, shown.input) == ("Write", "All of it.", {"guest": "Ada"})
    assert (shown.state, shown.outputs, shown.lease_seconds, shown.claim) == ("available", ("text",), 90, None)
    assert (shown.completion_criteria, shown.erased) == (("done",), False)
    erased = task_view(task, read_nothing)
    assert (erased.title, erased.input, erased.erased) == ("", None, True)
    assert (erased.task_id, erased.state, erased.outputs) == (task_id, "available", ("text",))
    summary = summary_view(task, document, read_nothing)
    assert (summary.task_id, summary.title, summary.priority) == (task_id, "Write", shown.priority)


def test_a_hold_a_block_and_a_failure_are_shown_while_they_last() -> None:
    desk = Desk()
    atlas = desk.agent("atlas")
    task_id = desk.task()
    claim_id = desk.hold(task_id, atlas)
    held = claim_view(row_of(desk, task_id))
    assert held is not None
    assert (held.claim_id, held.agent_id, held.started_at) == (claim_id, atlas, None)
    desk.do(StartClaim(claim_id))
    desk.do(BlockClaim(claim_id, "ambiguity", ref_of("Which guest?")))
    reasons = {ref_of("Which guest?").sha256: {"reason": "Which guest?"}}
    blocked = task_view(row_of(desk, task_id), reasons.get)
    assert blocked.blocker is not None
    assert (blocked.state, blocked.blocker.reason, blocked.claim) == ("blocked", "Which guest?", None)
    other = desk.task()
    desk.do(FailClaim(desk.hold(other, atlas), "error", ref_of("Broken.")))
    failed = task_view(row_of(desk, other), {ref_of("Broken.").sha256: {"reason": "Broken."}}.get)
    assert failed.failure is not None
    assert (failed.state, failed.failure.kind, failed.failure.reason) == ("failed", "error", "Broken.")


def test_a_task_at_a_place_is_what_it_was_there() -> None:
    desk = Desk()
    atlas = desk.agent("atlas")
    task_id = desk.task()
    made = desk.world.sequence
    claim_id = desk.hold(task_id, atlas)
    held = desk.world.sequence
    content = ref_of("the text")
    desk.do(AddArtifact(claim_id, "art_01ARZ3NDEKTSV4RRFFQ69G5FAV", "text", content, content.sha256, content.bytes))
    added = desk.world.sequence
    desk.do(CancelTask(task_id))
    now = row_of(desk, task_id)
    states = [task_at(desk.store, desk.topic, now, place) for place in (made - 1, made, held, added)]
    assert states[0] is None or states[0].state == "created"
    assert [(task.state, task.claim_id) for task in states[1:] if task is not None] == [
        ("available", ""),
        ("claimed", claim_id),
        ("claimed", claim_id),
    ]
    assert [len(task.artifacts) for task in states[1:] if task is not None] == [0, 0, 1]
    assert now.state == "cancelled"


def test_an_assignment_says_what_a_holder_needs() -> None:
    desk = Desk()
    task = row_of(desk, desk.task())
    given = assignment(task, 1, {"title": "Write", "input": [1]}, note="Shorter.", prior_context=("Before.",))
    assert (given.title, given.input, given.note, given.prior_context) == ("Write", [1], "Shorter.", ("Before.",))
    assert (given.task_id, given.attempt, given.erased) == (task.task_id, 1, False)
    assert assignment(task, 1, None).erased


def test_queues_agents_and_roles_are_shown_with_and_without_their_documents() -> None:
    desk = Desk()
    atlas = desk.agent("atlas", "role_writer", capabilities=("prose",))
    agent = agent_view(desk.world.agents[atlas], None)
    assert (agent.slug, agent.active, agent.lost, agent.capabilities) == ("atlas", True, False, ("prose",))
    assert (agent.capacity, agent.in_use, agent.card) == (None, None, None)
    assert agent.roles == desk.world.agents[atlas].roles
    queue = queue_view(desk.world.queues[QUEUE], {"name": "Work", "description": "Daily."})
    assert (queue.queue_id, queue.name, queue.description, queue.paused) == (QUEUE, "Work", "Daily.", False)
    role = role_view(desk.world.roles[agent.roles[0]], {"name": "Writer"})
    assert (role.id, role.name, role.agents) == (agent.roles[0], "Writer", (atlas,))


def test_a_task_that_no_agent_can_take_says_what_is_missing() -> None:
    desk = Desk()
    task_id = desk.task(capabilities=("prose",))
    found = explain(desk.world, desk.world.tasks[task_id])
    assert (found.state, found.running) == ("available", False)
    assert found.reasons
    assert all(reason.message.endswith(".") and reason.next.action for reason in found.reasons)
    claim_id = desk.hold(desk.task(), desk.agent("atlas"))
    running = explain(desk.world, desk.world.tasks[desk.world.claims[claim_id]])
    assert (running.running, running.reasons) == (True, ())


def test_documents_and_times_that_are_none() -> None:
    assert document_of(b'{"name":"Work"}') == {"name": "Work"}
    assert moment(0) is None
    assert moment(1_000_000_000) == "1970-01-01T00:00:01.000000000Z"
