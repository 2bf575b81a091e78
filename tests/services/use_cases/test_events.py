"""Events by their use cases: pages of what happened, and followers that end with their authority."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.events import (
    agent_events,
    claim_events,
    follow_agent,
    follow_workflow,
    get_event,
    query_ledger,
    stream,
    task_events,
    workflow_events,
)
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.roles import create_role, list_roles
from redkey.services.use_cases.tasks import create_task
from redkey.shapes.events import EventQuery, LedgerQuery, StreamQuery
from redkey.shapes.fields import PageQuery
from redkey.shapes.queues import NewQueue
from redkey.shapes.roles import NewRole
from redkey.shapes.tasks import NewTask
from tests.harness.callers import Callers, with_callers


async def furnish(callers: Callers) -> str:
    """A queue with a task; the id of the task."""
    await callers.call(create_queue, NewQueue(name="q"))
    task = await callers.call(create_task, "q", NewTask(title="one"))
    task_id: str = task.task_id
    return task_id


def test_a_query_gives_pages_that_follow_each_other_in_both_orders(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        task_id = await furnish(callers)
        whole = await callers.call(query_ledger, LedgerQuery(limit=100))
        assert [one.sequence for one in whole.items] == list(range(1, callers.head + 1))
        assert whole.next is None
        first = await callers.call(query_ledger, LedgerQuery(limit=2))
        second = await callers.call(query_ledger, LedgerQuery(limit=100, after=first.next))
        assert (*first.items, *second.items) == whole.items
        newest = await callers.call(query_ledger, LedgerQuery(limit=1, order="desc"))
        assert newest.items == whole.items[-1:]
        of_task = await callers.call(task_events, task_id, EventQuery())
        assert of_task == await callers.call(query_ledger, LedgerQuery(task_id=task_id))
        assert {one.data["taskId"] for one in of_task.items} == {task_id}
        of_queue = await callers.call(query_ledger, LedgerQuery(queue_id="queues.q", type="task.created,queue.created"))
        assert [one.type for one in of_queue.items] == ["queue.created", "task.created"]
        event = of_task.items[0]
        assert get_event(callers.admin, event.event_id) == event

    with_callers(tmp_path, test)


def test_days_and_times_bound_a_query(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await furnish(callers)
        whole = await callers.call(query_ledger, LedgerQuery())
        middle = whole.items[2].timestamp
        since = await callers.call(query_ledger, LedgerQuery(from_=middle))
        until = await callers.call(query_ledger, LedgerQuery(to=middle))
        assert (*until.items, *since.items) == whole.items
        assert (await callers.call(query_ledger, LedgerQuery(to="2020-01-01"))).items == ()

    with_callers(tmp_path, test)


def test_what_cannot_be_asked_is_named(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for asked, pointer in (
            (LedgerQuery(type="task.created,task.dreamt"), "/type"),
            (LedgerQuery(from_="yesterday"), "/from"),
            (LedgerQuery(to="2026-13-01"), "/to"),
            (LedgerQuery(after="x"), "/after"),
        ):
            with pytest.raises(Refused) as caught:
                await callers.call(query_ledger, asked)
            assert (caught.value.status, [one.pointer for one in caught.value.findings()]) == (422, [pointer])
        for use, missing in (
            (task_events, "task_x"),
            (claim_events, "clm_x"),
            (agent_events, "agt_x"),
            (workflow_events, "wf_x"),
        ):
            with pytest.raises(Refused) as caught:
                await callers.call(use, missing, EventQuery())
            assert caught.value.status == 404
        first = (await callers.call(query_ledger, LedgerQuery(limit=1))).items[0]
        for event_id in ("evt_01M3250V0000000000000ZZZZZ", first.event_id.removeprefix("evt_"), "x"):
            with pytest.raises(Refused) as caught:
                get_event(callers.admin, event_id)
            assert caught.value.code == "event_not_found"

    with_callers(tmp_path, test)


def test_a_follower_gets_what_it_wants_from_its_place_on(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await furnish(callers)
        whole = stream(callers.admin, StreamQuery(after=0))
        tasks = stream(callers.admin, StreamQuery(types="task.created", after=0))
        later = stream(callers.admin, StreamQuery())
        assert whole.take().count(b"\ndata: ") == callers.head == whole.position
        assert tasks.take().count(b"\ndata: ") == 1
        assert later.take() == b""
        waiting = asyncio.ensure_future(later.wait(30))
        await callers.call(create_role, NewRole(name="writer"))
        await waiting
        assert b"role.created" in later.take()
        for one in (whole, tasks, later):
            assert not one.ended
            one.leave()
        assert callers.app.subscriptions.count == 0

    with_callers(tmp_path, test)


def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for after, code in ((-1, "cursor_invalid"), (1 << 40, "cursor_invalid"), (1 << 39, "cursor_beyond_head")):
            with pytest.raises(Refused) as caught:
                stream(callers.admin, StreamQuery(after=after))
            assert (caught.value.status, caught.value.code) == (422, code)
        for use, missing in ((follow_agent, "agent"), (follow_workflow, "workflow")):
            with pytest.raises(Refused) as caught:
                use(callers.admin, "x", EventQuery(), None)
            assert caught.value.code == f"{missing}_not_found"
        assert callers.app.subscriptions.count == 0

    with_callers(tmp_path, test)


def test_too_many_followers_are_told_when_to_try_again(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        limit = callers.app.config.limits.subscribers
        callers.app.subscriptions.count = limit
        with pytest.raises(Refused) as caught:
            stream(callers.admin, StreamQuery())
        assert (caught.value.status, caught.value.retry_seconds) == (503, 5)
        callers.app.subscriptions.count = 0

    with_callers(tmp_path, test)


def test_a_follower_ends_when_the_server_stops(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        following = stream(callers.admin, StreamQuery())
        waiting = asyncio.ensure_future(following.wait(30))
        await asyncio.sleep(0)
        callers.app.subscriptions.begin_stop()
        await waiting
        assert following.ended
        following.leave()

    with_callers(tmp_path, test)


def test_reading_needs_a_scope(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        nobody = callers.caller()
        with pytest.raises(InsufficientScope):
            stream(nobody, StreamQuery())
        with pytest.raises(InsufficientScope):
            get_event(nobody, "evt_x")
        assert (await callers.call(list_roles, PageQuery(), caller=callers.caller("read"))).items == ()

    with_callers(tmp_path, test)
