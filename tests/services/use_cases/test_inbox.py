"""Sending and listing messages: one recipient rule, one secret rule, whichever door the caller came through."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.inbox import (
    list_agent_inbox,
    list_inbox,
    read_message,
    recipient,
    send_message,
)
from redkey.services.use_cases.roles import create_role, grant_role
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.inbox import AgentInboxFilter, InboxFilter, NewInboxMessage, SentMessages
from redkey.shapes.roles import NewRole
from tests.harness.callers import Callers, with_callers
from tests.harness.secret_samples import with_checksum


async def agent_named(callers: Callers, name: str, *roles: str) -> str:
    made = await callers.call(register_card, AgentRegistration(card={"name": name}))
    for role in roles:
        await callers.call(grant_role, role, made.agent_id)
    return str(made.agent_id)


def to(name: str, subject: str = "Hello") -> NewInboxMessage:
    return NewInboxMessage(to=name, subject=subject)


def test_a_name_is_an_agent_then_a_role_and_human_is_always_the_humans(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_role, NewRole(name="Writer"))
        atlas = await agent_named(callers, "Atlas")
        expected = {
            "human": "human",
            atlas: f"agent:{atlas}",
            "atlas": f"agent:{atlas}",
            "agent:atlas": f"agent:{atlas}",
            "writer": "role:role_writer",
            "role_writer": "role:role_writer",
            "role:writer": "role:role_writer",
        }
        assert {name: recipient(callers.admin, name) for name in expected} == expected
        # What it gives is a name too, so it can be used as one.
        assert {name: recipient(callers.admin, name) for name in expected.values()} == {
            name: name for name in expected.values()
        }
        with pytest.raises(Refused) as refused:
            recipient(callers.admin, "boreas", "/toAgent")
        assert (refused.value.status, refused.value.code, refused.value.pointer) == (
            422,
            "recipient_unknown",
            "/toAgent",
        )
        assert recipient(callers.admin, "boreas", or_humans=True) == "human"

    with_callers(tmp_path, test)


def test_mail_to_a_role_is_one_message_for_each_holder(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_role, NewRole(name="Writer"))
        holders = {await agent_named(callers, name, "writer") for name in ("Atlas", "Boreas")}
        sent: SentMessages = await callers.call(send_message, to("writer"))
        assert {one.to for one in sent.messages} == holders
        assert (sent.message_id, sent.event_id) == (sent.messages[0].message_id, sent.messages[0].event_id)
        for agent_id in holders:
            page = await callers.call(list_agent_inbox, agent_id, AgentInboxFilter())
            assert [one.subject for one in page.items] == ["Hello"]

    with_callers(tmp_path, test)


def test_a_message_that_brings_its_id_is_sent_once(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        message_id = "msg_" + callers.app.services.ids.ulid()
        sent: SentMessages = await callers.call(send_message, to("human"), message_id=message_id)
        assert sent.message_id == message_id
        head = callers.head
        with pytest.raises(Refused) as refused:
            await callers.call(send_message, to("human"), message_id=message_id)
        assert (refused.value.code, callers.head) == ("message_exists", head)

    with_callers(tmp_path, test)


def test_a_secret_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        with pytest.raises(Refused) as refused:
            await callers.call(send_message, to("human", f"the key is {with_checksum('ghp_')}"))
        (finding,) = refused.value.findings()
        assert (refused.value.code, finding.pointer, callers.head) == ("secret_detected", "/subject", head)

    with_callers(tmp_path, test)


def test_authority_is_judged_by_the_use_case(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        reader, head = callers.caller("read"), callers.head
        with pytest.raises(InsufficientScope):
            await callers.call(send_message, to("human"), caller=reader)
        assert callers.head == head
        atlas, boreas = await agent_named(callers, "Atlas"), await agent_named(callers, "Boreas")
        own = callers.caller("agent", agent_id=atlas)
        await callers.call(send_message, to(atlas, "for Atlas"))
        await callers.call(send_message, to(boreas, "for Boreas"))
        page = await callers.call(list_inbox, InboxFilter(), caller=own)
        assert [one.subject for one in page.items] == ["for Atlas"]
        for refused in (
            callers.call(list_inbox, InboxFilter(to=boreas), caller=own),
            callers.call(list_agent_inbox, boreas, AgentInboxFilter(), caller=own),
        ):
            with pytest.raises(Refused) as cause:
                await refused
            assert cause.value.status == 404

    with_callers(tmp_path, test)


def test_read_and_unread_messages_share_one_order_over_pages(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        sent = [await callers.call(send_message, to("human", f"Number {number}")) for number in range(5)]
        first = await callers.call(read_message, sent[1].message_id)
        again = await callers.call(read_message, sent[1].message_id)
        assert (first.status, first.event_id != "", again.event_id) == ("read", True, "")
        found, after = [], ""
        while True:
            page = await callers.call(list_inbox, InboxFilter(limit=2, after=after))
            found.extend(one.subject for one in page.items)
            if page.next is None:
                break
            after = page.next
        assert found == [f"Number {number}" for number in range(5)]
        unread = await callers.call(list_inbox, InboxFilter(unread=True))
        assert [one.subject for one in unread.items] == [f"Number {number}" for number in (0, 2, 3, 4)]

    with_callers(tmp_path, test)
