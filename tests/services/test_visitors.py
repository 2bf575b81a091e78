"""Operators act in other workspaces as long as their key lives: the unit that records an act looks once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.commands.registry import CreateKey, GrantCredits, RevokeKey
from redkey.services.workspaces import check_visitor, setting_of
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.wire.ids import ulid
from tests.harness.desk import CountedIds, HandClock
from tests.harness.office import Office


async def operators() -> tuple[Office, Office, Actor, Actor]:
    """Two servers, each opened on a workspace of its own, and the only operator of each workspace."""
    disk, clock = MemoryDisk(), HandClock()
    one, other = (Office(MemoryStore(clock, disk), CountedIds(lane)) for lane in (1, 2))
    found: list[Any] = []
    for number, office in enumerate((one, other)):
        await office.begin("wk_" + ulid(number, bytes(10)))
        key_id = "key_" + office.ids.ulid()
        await office.do(CreateKey(key_id, "rk_x", ("operator",)))
        with office.store.write(office.topic) as unit:
            unit.put_fact(office.topic, setting_of(office.admin.workspace_id), office.topic)
        found.append(Actor(office.admin.workspace_id, key_id, frozenset({"operator"})))
    return one, other, *found


def refusals(answers: list[Any]) -> list[tuple[int, str]]:
    return [(one.status, one.code) for one in answers if isinstance(one, Refused)]


@pytest.mark.parametrize("servers", ["one", "two"])
def test_operators_that_revoke_each_other_at_once_do_not_both_succeed(servers: str) -> None:
    async def whole() -> None:
        one, other, first, second = await operators()
        at = other if servers == "two" else one
        answers = await asyncio.gather(
            one.coordinator.submit(other.topic, first, RevokeKey(second.key_id)),
            at.coordinator.submit(one.topic, second, RevokeKey(first.key_id)),
            return_exceptions=True,
        )
        assert refusals(answers) == [(401, "invalid_token")]
        keys = [
            one.coordinator.peek(one.topic).keys[first.key_id],
            one.coordinator.peek(other.topic).keys[second.key_id],
        ]
        assert sorted(bool(key.revoked_at) for key in keys) == [False, True]

    asyncio.run(whole())


def test_a_revoked_operator_does_nothing_more_anywhere() -> None:
    async def whole() -> None:
        one, other, first, second = await operators()
        await one.coordinator.submit(other.topic, first, GrantCredits(5), idem="a" * 32, body="b" * 16)
        await other.coordinator.submit(one.topic, second, RevokeKey(first.key_id))
        for key in ({}, {"idem": "a" * 32, "body": "b" * 16}):
            with pytest.raises(Refused) as refused:
                await one.coordinator.submit(other.topic, first, GrantCredits(5), **key)
            assert (refused.value.status, refused.value.code) == (401, "invalid_token")
        with one.store.write(one.topic) as unit, pytest.raises(Refused):
            check_visitor(unit, first)
        assert (await one.coordinator.submit(one.topic, second, GrantCredits(5))).records

    asyncio.run(whole())


def test_a_caller_has_the_scopes_of_its_key_at_most() -> None:
    async def whole() -> None:
        one, other, first, _ = await operators()
        await one.do(CreateKey("key_" + ulid(7, bytes(10)), "rk_y", ("admin",)))
        climber = Actor(first.workspace_id, "key_" + ulid(7, bytes(10)), frozenset({"operator"}))
        unknown = Actor(first.workspace_id, "key_" + ulid(8, bytes(10)), frozenset({"operator"}))
        answers = await asyncio.gather(
            *(one.coordinator.submit(other.topic, caller, GrantCredits(5)) for caller in (climber, unknown)),
            return_exceptions=True,
        )
        assert refusals(answers) == [(403, "insufficient_scope"), (401, "invalid_token")]

    asyncio.run(whole())
