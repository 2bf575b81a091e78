"""Tasks, queues and roles by their use cases: created, listed, explained, changed, retried, talked about."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.claims import claim_task
from redkey.services.use_cases.holds import block_claim
from redkey.services.use_cases.queues import (
    create_queue,
    get_queue,
    list_available,
    list_queues,
    list_tasks,
    patch_queue,
)
from redkey.services.use_cases.roles import create_role, get_role, grant_role, list_roles, revoke_role
from redkey.services.use_cases.tasks import (
    add_message,
    cancel_task,
    create_task,
    create_tasks,
    explain_task,
    get_context_state,
    get_task,
    list_messages,
    raise_concern,
    retry_task,
    unblock_task,
)
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.claims import BlockReport, ClaimRequest, Rejected
from redkey.shapes.fields import PageQuery
from redkey.shapes.queues import AvailableFilter, NewQueue, QueuePatch, TaskFilter
from redkey.shapes.roles import NewRole
from redkey.shapes.tasks import Answer, NewConcern, NewMessage, NewTask, NewTasks, TaskQuery, TextPart
from tests.harness.callers import Callers, with_callers


async def new_task(callers: Callers, title: str = "Write", **more: object) -> str:
    made = await callers.call(create_task, "work", NewTask(title=title, **more))
    return str(made.task_id)


def test_a_task_is_shown_as_it_was_at_any_place_of_the_ledger(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="Work"))
        task_id = await new_task(callers, description="All of it.", input={"guest": "Ada"})
        before = callers.head
        await callers.call(cancel_task, task_id)
        now = await callers.call(get_task, task_id, TaskQuery())
        then = await callers.call(get_task, task_id, TaskQuery(at=before))
        assert (now.state, then.state) == ("cancelled", "available")
        assert (then.title, then.description, then.input) == ("Write", "All of it.", {"guest": "Ada"})
        with pytest.raises(Refused) as refused:
            await callers.call(get_task, task_id, TaskQuery(at=callers.head + 1))
        assert refused.value.code == "sequence_ahead"
        again = await callers.call(retry_task, task_id)
        assert (again.status, again.attempt) == ("available", 2)

    with_callers(tmp_path, test)


def test_each_task_of_a_batch_has_its_own_answer(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="Work"))
        batch = (NewTask(title="One"), NewTask(title="Two", required_roles=("nobody",)))
        found = await callers.call(create_tasks, "work", NewTasks(tasks=batch))
        assert found.items[0].task is not None
        assert found.items[1].problem is not None
        assert found.items[1].problem.code == "unknown_role"
        listed = await callers.call(list_tasks, "work", TaskFilter(state="available"))
        assert [task.task_id for task in listed.items] == [found.items[0].task.task_id]

    with_callers(tmp_path, test)


def test_a_task_that_waits_says_for_what_and_moves_when_it_is_answered(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="Work"))
        agent = await callers.call(register_card, AgentRegistration(card={"name": "Atlas"}))
        first = await new_task(callers)
        second = await new_task(callers, "Publish", depends_on=(first,))
        (reason,) = (await callers.call(explain_task, second)).reasons
        assert (reason.code, reason.next.task_id) == ("unmet_dependency", first)
        assert first in reason.message
        claimed = await callers.call(claim_task, first, ClaimRequest(agent_id=agent.agent_id))
        blocked = BlockReport(reason="Which guest?", blocker_type="ambiguity")
        await callers.call(block_claim, claimed.claim_id, blocked)
        (reason,) = (await callers.call(explain_task, first)).reasons
        assert (reason.code, reason.next.action) == ("blocked", "unblock")
        answered = await callers.call(unblock_task, first, Answer(answer="Ada."))
        task = await callers.call(get_task, first, TaskQuery())
        assert (answered.status, task.answer, task.blocker) == ("available", "Ada.", None)

    with_callers(tmp_path, test)


def test_messages_and_concerns_are_listed_in_order(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="Work"))
        agent = await callers.call(register_card, AgentRegistration(card={"name": "Atlas"}, issue_key=True))
        task_id = await new_task(callers, context_id="project:book")
        await callers.call(add_message, task_id, NewMessage(parts=(TextPart(text="Hello"),), metadata={"page": 1}))
        await callers.call(claim_task, task_id, ClaimRequest(agent_id=agent.agent_id))
        me = callers.with_key(agent.api_key)
        await callers.call(add_message, task_id, NewMessage(parts=(TextPart(text="Hi"),)), caller=me)
        await callers.call(raise_concern, task_id, NewConcern(concern="Too long."))
        first = await callers.call(list_messages, task_id, PageQuery(limit=2))
        assert [(said.role, said.parts[0].text) for said in first.items] == [("human", "Hello"), ("agent", "Hi")]
        assert first.items[0].metadata == {"page": 1}
        state = await callers.call(get_context_state, "project:book")
        assert (state.task_count, state.terminal) == (1, False)
        with pytest.raises(Refused) as refused:
            await callers.call(get_context_state, "project:film")
        assert refused.value.code == "context_not_found"

    with_callers(tmp_path, test)


def test_a_queue_is_changed_and_a_caller_that_waits_is_answered_when_a_task_comes(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="Work"))
        assert [queue.queue_id for queue in (await callers.call(list_queues, PageQuery())).items] == ["queue_work"]
        changed = await callers.call(patch_queue, "work", QueuePatch(lease_seconds=90, description="Daily."))
        assert changed == await callers.call(get_queue, "queue_work")
        assert (changed.lease_seconds, changed.name, changed.description) == (90, "Work", "Daily.")
        with pytest.raises(Refused) as refused:
            await callers.call(patch_queue, "work", QueuePatch())
        assert refused.value.code == "nothing_to_change"
        waiting = asyncio.create_task(callers.call(list_available, "work", AvailableFilter(wait=60)))
        # A request is sent to the queue only after the waiting caller has looked and found nothing.
        await asyncio.sleep(0)
        task_id = await new_task(callers)
        assert [task.task_id for task in (await waiting).items] == [task_id]

    with_callers(tmp_path, test)


def test_a_role_opens_its_tasks_to_those_who_have_it(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="Work"))
        made = await callers.call(create_role, NewRole(name="Writer", capabilities=("Prose",)))
        agent = await callers.call(register_card, AgentRegistration(card={"name": "Atlas"}))
        task_id = await new_task(callers, required_roles=("writer",))
        rejected = await callers.call(claim_task, task_id, ClaimRequest(agent_id=agent.agent_id))
        assert isinstance(rejected, Rejected)
        assert (await callers.call(grant_role, "writer", agent.agent_id)).status == "granted"
        role = await callers.call(get_role, "roles.writer")
        assert (role.id, role.agents, role.capabilities) == (made.id, (agent.agent_id,), ("prose",))
        assert [one.id for one in (await callers.call(list_roles, PageQuery())).items] == [made.id]
        claimed = await callers.call(claim_task, task_id, ClaimRequest(agent_id=agent.agent_id))
        assert claimed.status == "claimed"
        assert (await callers.call(revoke_role, "writer", agent.agent_id)).status == "revoked"
        assert (await callers.call(get_role, "writer")).agents == ()

    with_callers(tmp_path, test)
