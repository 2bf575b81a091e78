"""Ledger queries: pages of any size and any cost, in both orders, find everything that speaks of a thing, once."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.commands.claims import CompleteClaim, FailClaim
from redkey.commands.registry import CreateQueue
from redkey.commands.tasks import CreateTask
from redkey.services.queries import Question, query
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.runs import RunDesk, plan_of, step

OTHER = "queue_other"


@pytest.fixture(scope="module")
def desk() -> RunDesk:
    """A run in one queue, simple tasks in both, some in a context of their own; won, missed, retried, failed."""
    desk = RunDesk()
    desk.do(CreateQueue(OTHER, {}))
    desk.start(plan_of(step("a"), step("b", "a"), attempts=2, on_failure="reopen"), workers=2)
    for number in range(12):
        queue = OTHER if number % 3 else QUEUE
        task = _task(desk, queue, "deal:acme" if number % 4 == 0 else "")
        claim = desk.hold(task, desk.workers[0])
        desk.claim(task, desk.workers[1])
        desk.do(FailClaim(claim, "error", ref_of("why")) if number % 5 == 0 else CompleteClaim(claim))
        if number == 6:
            desk.break_down("a")
    desk.finish("a")
    desk.finish("b", 1)
    return desk


def _task(desk: Desk, queue: str, context: str) -> str:
    task_id = "task_" + desk.ids.ulid()
    desk.do(CreateTask(task_id, queue, ref_of(task_id), context_id=context))
    return task_id


def _spoken_of(desk: RunDesk) -> dict[str, list[int]]:
    """Which records speak of each queue and run, by what the wires themselves say of tasks."""
    queue_of: dict[str, str] = {}
    run_of: dict[str, str] = {}
    found: dict[str, list[int]] = {}
    for one in desk.records():
        payload, stream = one.wire["payload"], one.wire["stream"]["stream_id"].split(":")
        task = stream[1] if stream[0] == "task" else payload.get("task_id", "")
        if one.wire["type"] == "task.created":
            queue_of[task] = payload["queue_id"]
            run_of[task] = payload.get("workflow_id", "")
        names = {stream[1], payload.get("queue_id"), payload.get("workflow_id"), queue_of.get(task), run_of.get(task)}
        for name in names & {QUEUE, OTHER, desk.run}:
            found.setdefault(name, []).append(one.sequence)
    return found


def _pages(desk: RunDesk, question: Question, limit: int, cost: int) -> list[int]:
    """All that is found, page by page; no page looks through more than it may."""
    found: list[int] = []
    after: int | None = None
    for _ in range(10_000):
        page = query(desk.store, desk.topic, question, after, limit, cost)
        assert len(page.events) <= min(limit, cost)
        found += [event.sequence for event in page.events]
        if page.next is None:
            return found
        assert after is None or (page.next < after if question.newest_first else page.next > after)
        after = page.next
    raise AssertionError("no end")


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(("limit", "cost"), [(1, 1), (2, 3), (500, 7), (3, 500), (500, 500), (500, 20_000)])
def test_pages_of_a_queue_and_of_a_run_are_whole(desk: RunDesk, limit: int, cost: int, newest_first: bool) -> None:
    expected = _spoken_of(desk)
    assert set(expected) == {QUEUE, OTHER, desk.run}
    for field, name in (("queue_id", QUEUE), ("queue_id", OTHER), ("workflow_id", desk.run)):
        asked: dict[str, Any] = {field: name, "newest_first": newest_first}
        order = expected[name][::-1] if newest_first else expected[name]
        assert _pages(desk, Question(**asked), limit, cost) == order


def test_a_run_is_found_by_the_index_and_nothing_else_is_looked_at(desk: RunDesk) -> None:
    """As many records as speak of it are enough to find them all in one page."""
    count = len(_spoken_of(desk)[desk.run])
    page = query(desk.store, desk.topic, Question(workflow_id=desk.run), None, 500, count + 1)
    assert (len(page.events), page.next) == (count, None)


def test_a_queue_and_an_agent_together_are_found_by_the_agent(desk: RunDesk) -> None:
    agent = desk.workers[1]
    of_agent = _pages(desk, Question(agent_id=agent), 500, 500)
    both = _pages(desk, Question(agent_id=agent, queue_id=OTHER), 2, 3)
    assert both == [place for place in of_agent if place in set(_spoken_of(desk)[OTHER])]
    assert both
