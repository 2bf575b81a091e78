"""Following a workspace by notices: from a place on, with the text that belongs to each event, until it is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.commands.registry import EraseContent
from redkey.readmodel.rows import entity
from redkey.services.notices import Notice, Notices, Words
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.claims import claim_task
from redkey.services.use_cases.inbox import send_message
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.tasks import create_task
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.claims import ClaimRequest
from redkey.shapes.inbox import NewInboxMessage
from redkey.shapes.queues import NewQueue
from redkey.shapes.tasks import NewTask
from tests.harness.callers import Callers, with_callers


def notices_of(callers: Callers) -> Notices:
    return Notices(callers.store, callers.app.subscriptions)


async def kinds(callers: Callers, after: int, *types: str) -> list[Notice]:
    """The notices of some types after a place."""
    following = notices_of(callers).follow(callers.workspace_id, after)
    try:
        return list((await following.next()).notices(lambda kind: kind in types))
    finally:
        following.leave()


def test_a_follower_is_woken_by_what_is_recorded_and_gets_it_again_until_it_moves_on(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        following = notices_of(callers).follow(callers.workspace_id)
        assert following.position == callers.head
        waiting = asyncio.ensure_future(following.next())
        await callers.call(create_queue, NewQueue(name="work"))
        async with asyncio.timeout(30):
            # Without being woken it would look again after a minute.
            batch = await waiting
        assert [one.event.type for one in batch.notices(lambda _: True)] == ["queue.created"]
        assert batch.reached == callers.head
        assert (await following.next()).reached == batch.reached
        following.position = batch.reached
        await callers.call(create_task, "work", NewTask(title="Research"))
        found = list((await following.next()).notices(lambda kind: kind.startswith("task.")))
        assert [one.event.type for one in found] == ["task.created", "task.available"]
        assert {(one.event.data["taskId"], one.title) for one in found} == {(found[0].task_id, "Research")}
        assert callers.app.subscriptions.count == 1
        following.leave()
        assert callers.app.subscriptions.count == 0

    with_callers(tmp_path, test)


def test_mail_and_lost_claims_name_their_agent_by_id_and_slug(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        atlas, boreas = [
            (await callers.call(register_card, AgentRegistration(card={"name": name}))).agent_id
            for name in ("Atlas", "Boreas")
        ]
        await callers.call(create_queue, NewQueue(name="work"))
        before = callers.head
        task = (await callers.call(create_task, "work", NewTask(title="Research"))).task_id
        for agent_id in (atlas, boreas):
            await callers.call(claim_task, task, ClaimRequest(agent_id=agent_id))
        await callers.call(send_message, NewInboxMessage(to=atlas, subject="Well done", body="All of it."))
        await callers.call(send_message, NewInboxMessage(to="human", subject="Done"))
        won, missed, mail, human = await kinds(
            callers, before, "task.claimed", "task.claim_missed", "task.claim_rejected", "inbox.sent"
        )
        assert (won.event.type, won.agent, won.title) == ("task.claimed", (), "Research")
        assert (missed.event.type, missed.agent, missed.title) == ("task.claim_missed", (boreas, "boreas"), "Research")
        assert (mail.agent, mail.message) == ((atlas, "atlas"), Words("Well done", "All of it."))
        assert (human.agent, human.message) == ((), Words("Done", ""))

    with_callers(tmp_path, test)


def test_an_erased_text_leaves_its_event(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        before = callers.head
        sent = await callers.call(send_message, NewInboxMessage(to="human", subject="Gone soon"))
        message = entity(callers.store.row(callers.topic, "message", sent.message_id))
        erase = EraseContent(message.body_sha256)
        await callers.app.coordinator.submit(callers.topic, callers.admin.actor, erase)
        [notice] = await kinds(callers, before, "inbox.sent")
        assert (notice.event.event_id, notice.message) == (sent.event_id, Words("", ""))

    with_callers(tmp_path, test)


def test_an_unknown_workspace_cannot_be_followed(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for workspace_id in ("", "wk_01JTMX9A2B3C4D5E6F7G8H9JKM"):
            with pytest.raises(Refused) as refused:
                notices_of(callers).follow(workspace_id)
            assert refused.value.code == "workspace_not_found"
        assert callers.app.subscriptions.count == 0

    with_callers(tmp_path, test)
